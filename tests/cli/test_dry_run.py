"""`train --dry-run`."""

from run_command import TINY, run_command


def test_a_dry_run_prints_a_plan_and_writes_nothing(sample, tmp_path):
    output, data = tmp_path / "model", sample / "documents-train.jsonl"
    done = run_command("train", data, "--output", output, "--model", "label-query", "--dry-run", *TINY)
    assert done.code == 0, done.err
    assert "60 training documents" in done.out
    assert "an epoch" in done.out
    assert not output.exists()
