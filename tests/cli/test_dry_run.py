"""`train --dry-run`."""

from run_command import TINY, run_command

from nlpcapsule.cli import train


def test_a_dry_run_prints_a_plan_and_writes_nothing(sample, tmp_path):
    output, data = tmp_path / "model", sample / "documents-train.jsonl"
    done = run_command("train", data, "--output", output, "--model", "label-query", "--dry-run", *TINY)
    assert done.code == 0, done.err
    assert "60 training documents" in done.out
    assert "an epoch" in done.out
    assert not output.exists()


def test_a_dry_run_chooses_threads_as_a_training_does(sample, tmp_path, monkeypatch):
    chosen = []
    monkeypatch.setattr(train, "keep_faster_torch_threads", lambda say: chosen.append(say))
    data = sample / "documents-train.jsonl"
    done = run_command("train", data, "--output", tmp_path / "model", "--dry-run", *TINY, "--threads", 1)
    assert done.code == 0, done.err
    assert len(chosen) == 1
    assert "1 process(es) of 1 thread(s)" in done.out
