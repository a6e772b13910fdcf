"""`nlpcapsule compare` from a folder to a table, and what it refuses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from compare_runs import letters, questions, run_compare, write_jsonl, write_letters
from tiny_transformer import write_transformer

from nlpcapsule.compare import comparison
from nlpcapsule.compare.measuring import SystemRun, run_system


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs systems without processes, which would each have to import torch; returns those that were run."""
    ran: list[str] = []

    def run_here(runs: dict[str, SystemRun], *_: object, **__: object) -> dict[str, str]:
        for name, run in runs.items():
            if not run.record.exists():
                ran.append(name)
                run_system(run)
        return {}

    monkeypatch.setattr(comparison, "run_systems", run_here)
    return ran


TINY = [f"--set=hybrid.{setting}" for setting in ("filters=8", "capsule_size=8", "condensed=4", "epochs=1")]


def test_one_system_in_its_own_process_gives_a_table_and_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = write_letters(tmp_path / "mine"), tmp_path / "out"
    monkeypatch.setattr(comparison, "missing_package", {"fasttext": "install it"}.get)
    arguments = ["--data", data, "--systems", "one-vs-rest,fasttext", "--output", out, "--seed", 7]
    done = run_compare(monkeypatch, capsys, *arguments)
    assert done.code == 0, done.err
    assert "[1/1] one-vs-rest: done" in done.err
    assert done.out.strip() == (out / "compare.md").read_text(encoding="utf-8").strip()
    assert "- fasttext: not measured: install it" in done.out
    record = json.loads((out / "compare.json").read_text(encoding="utf-8"))
    found = record["systems"]["one-vs-rest"]
    assert found["config"]["training"]["seed"] == record["seed"] == 7
    assert found["figures"]["P@1"] == 1
    assert 0.1 < found["process memory GiB"] < 8
    assert record["sizes"]["training documents"] == 48
    assert record["command"].startswith(
        "nlpcapsule compare --data mine --systems one-vs-rest,fasttext --seed 7"
    )
    again = run_compare(monkeypatch, capsys, *arguments)
    assert "1 of 1 systems are finished" in again.err
    assert "started" not in again.err
    assert again.out == done.out


def test_ours_is_tested_against_the_best_peer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data, out = write_letters(tmp_path / "mine"), tmp_path / "out"
    few_words = "--set=kim-cnn.epochs=1"
    names = ["--systems", "hybrid,kim-cnn,one-vs-rest", *TINY, few_words]
    done = run_compare(monkeypatch, capsys, "--data", data, *names, "--output", out, "--quiet")
    assert done.code == 0, done.err
    assert in_this_process == ["hybrid", "kim-cnn", "one-vs-rest"]
    systems = json.loads((out / "compare.json").read_text(encoding="utf-8"))["systems"]
    assert {name: systems[name]["best rival"] for name in ("hybrid", "kim-cnn")} == {
        "hybrid": "one-vs-rest",
        "kim-cnn": "hybrid",
    }
    expected = systems["kim-cnn"]["figures"]["P@1"] - systems["hybrid"]["figures"]["P@1"]
    assert systems["kim-cnn"]["difference to the best rival"]["P@1"]["difference"] == pytest.approx(expected)
    assert "hybrid against the best peer, one-vs-rest" in done.out
    assert "| one-vs-rest | 100.00 | 33.33 | 20.00 | 100.00 |" in done.out


def test_answers_are_told_by_their_rows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data, out = tmp_path / "asked", tmp_path / "out"
    write_jsonl(data / "train.jsonl", questions(20))
    write_jsonl(data / "dev.jsonl", questions(8))
    arguments = ["--data", data, "--systems", "bm25", "--output", out]
    done = run_compare(monkeypatch, capsys, *arguments)
    assert done.code == 0, done.err
    assert "selected on the other 10% (there is no test file), reported on dev.jsonl" in done.out
    assert "18 training questions, 2 questions to select on, 8 questions to report on" in done.out
    assert "| bm25 | 100.00 |" in done.out
    assert run_compare(monkeypatch, capsys, *arguments).out == done.out
    assert in_this_process == ["bm25"]


def test_a_label_that_only_test_has_counts_and_can_only_be_missed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data = write_letters(tmp_path / "mine")
    write_jsonl(data / "test.jsonl", [*letters(3), {"text": "the fish", "labels": ["never seen"]}])
    out = tmp_path / "out"
    done = run_compare(monkeypatch, capsys, "--data", data, "--systems", "one-vs-rest", "--output", out)
    assert done.code == 0, done.err
    assert "1 labels to report on that training never saw" in done.out
    assert "| one-vs-rest | 75.00 |" in done.out


def test_ours_uses_label_names_and_peers_do_without(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data, out, names = write_letters(tmp_path / "mine"), tmp_path / "out", tmp_path / "names.json"
    only_here = [{"text": "the comet", "labels": ["sky"]}, {"text": "the moth", "labels": ["nameless"]}]
    write_jsonl(data / "test.jsonl", [*letters(8), *only_here])
    names.write_text(json.dumps({"sky": "comet", "dairy": "milk and cheese"}))
    arguments = ["--data", data, "--systems", "hybrid,one-vs-rest", *TINY, "--output", out]
    done = run_compare(monkeypatch, capsys, *arguments, "--label-names", names)
    assert done.code == 0, done.err
    record = json.loads((out / "compare.json").read_text(encoding="utf-8"))
    assert record["sizes"]["labels"] == 4
    assert record["sizes"]["labels to report on that training never saw"] == 2
    ours, peer = (record["systems"][name]["figures"] for name in ("hybrid", "one-vs-rest"))
    assert ours["unseen true labels"] == peer["unseen true labels"] == 2
    assert ours["recall@5 among unused labels"] == 0.5, "one of the two has a name"
    assert "recall@5 among unused labels" not in peer
    assert "| recall@5 (0 examples) | recall@5 among unused labels |" in done.out
    names.write_text(json.dumps({"sky": "comets and stars"}))
    run_compare(monkeypatch, capsys, *arguments, "--label-names", names)
    assert in_this_process == ["hybrid", "one-vs-rest", "hybrid"], "only hybrid uses the names"


def test_systems_may_read_words_or_a_transformers_word_pieces(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data, out = write_letters(tmp_path / "mine"), tmp_path / "out"
    encoder = write_transformer(tmp_path / "encoder")
    names = ["kim-cnn", "embedding-linear"]
    settings = [
        "--set=all.epochs=1",
        "--set=all.max_tokens=16",
        f"--set=embedding-linear.encoder={encoder}",
    ]
    arguments = ["--data", data, "--systems", ",".join(names), *settings, "--output", out]
    done = run_compare(monkeypatch, capsys, *arguments)
    assert done.code == 0, done.err
    assert in_this_process == names
    record = json.loads((out / "compare.json").read_text(encoding="utf-8"))
    assert list(record["systems"]) == names


def test_bad_rows_are_left_out_and_reported_each_time(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data, out = write_letters(tmp_path / "mine"), tmp_path / "out"
    write_jsonl(data / "train.jsonl", [*letters(48), {"txt": "a"}, {"text": 5, "labels": []}])
    write_jsonl(data / "test.jsonl", [{"text": "a"}, *letters(16)])
    arguments = ["--data", data, "--systems", "one-vs-rest", "--output", out, "--skip-bad-rows", "--quiet"]
    for _ in range(2):
        done = run_compare(monkeypatch, capsys, *arguments)
        assert done.code == 0, done.err
        train, test = data / "train.jsonl", data / "test.jsonl"
        assert f"{train}: 48 rows read; 2 bad rows skipped\n  {train}, line 49: the key 'text'" in done.err
        assert f"{test}: 16 rows read; 1 bad row skipped\n  {test}, line 1: the key 'labels'" in done.err
        assert "dev.jsonl: 12 rows" not in done.err
        assert "3 bad rows left out." in done.out
        record = json.loads((out / "compare.json").read_text(encoding="utf-8"))
        assert record["sizes"]["bad rows left out"] == 3


def test_bad_rows_among_questions_are_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data = tmp_path / "asked"
    write_jsonl(data / "train.jsonl", [*questions(20), {"question": "why"}])
    write_jsonl(data / "test.jsonl", questions(8))
    arguments = ["--data", data, "--systems", "bm25", "--output", tmp_path / "out", "--skip-bad-rows"]
    done = run_compare(monkeypatch, capsys, *arguments)
    assert done.code == 0, done.err
    assert "train.jsonl: 20 rows read; 1 bad row skipped" in done.err
    assert "8 questions to report on, 1 bad rows left out." in done.out


def test_the_recorded_command_runs_again_as_printed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data = tmp_path / "mine"
    data.mkdir()
    for part, count in (("train", 48), ("dev", 12), ("test", 16)):
        rows = [f"{row['text']}\t{row['labels'][0]} | all" for row in letters(count)]
        (data / f"{part}.txt").write_text("\n".join(["the body\ttopics", *rows, "one cell"]) + "\n")
    given = [
        *("--task", "labels", "--format", "tsv", "--text-key", "the body", "--labels-key", "topics"),
        *("--label-separator", " | ", "--skip-bad-rows"),
    ]
    monkeypatch.chdir(tmp_path)
    done = run_compare(
        monkeypatch, capsys, "--data", data, "--systems", "one-vs-rest", "--set", "all.max_tokens=9", *given
    )
    assert done.code == 0, done.err
    command = json.loads(Path("comparison/compare.json").read_text(encoding="utf-8"))["command"]
    assert command == (
        "nlpcapsule compare --data mine --systems one-vs-rest --seed 1 --jobs 1 --task labels --format tsv "
        "--text-key 'the body' --labels-key topics --label-separator ' | ' --skip-bad-rows "
        "--set all.max_tokens=9"
    )
    assert f"Made by `{command}`." in done.out
    again = run_compare(monkeypatch, capsys, *shlex.split(command)[2:])
    assert again.out == done.out
    assert in_this_process == ["one-vs-rest"], "it is the same run"


def test_without_readers_options_the_recorded_command_has_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data, out = write_letters(tmp_path / "mine"), tmp_path / "out"
    run_compare(monkeypatch, capsys, "--data", data, "--systems", "one-vs-rest", "--output", out)
    command = json.loads((out / "compare.json").read_text(encoding="utf-8"))["command"]
    assert command == "nlpcapsule compare --data mine --systems one-vs-rest --seed 1 --jobs 1"


def _failing(runs: dict[str, SystemRun], *_: object, **__: object) -> dict[str, str]:
    return dict.fromkeys(runs, "out of luck")


def test_when_every_system_fails_each_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(comparison, "run_systems", _failing)
    data = write_letters(tmp_path / "mine")
    names = ["--systems", "one-vs-rest,kim-cnn", "--output", tmp_path / "out"]
    done = run_compare(monkeypatch, capsys, "--data", data, *names)
    assert done.code == 2
    assert "error: every system failed:\none-vs-rest: out of luck\nkim-cnn: out of luck" in done.err


def test_one_failure_among_others_is_in_the_table_and_in_the_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_this_process: list[str],
) -> None:
    data, out = write_letters(tmp_path / "mine"), tmp_path / "out"
    run_compare(monkeypatch, capsys, "--data", data, "--systems", "one-vs-rest", "--output", out)
    monkeypatch.setattr(comparison, "run_systems", lambda *_, **__: {"kim-cnn": "out of luck"})
    names = ["--systems", "one-vs-rest,kim-cnn"]
    done = run_compare(monkeypatch, capsys, "--data", data, *names, "--output", out)
    assert done.code == 2
    assert "| one-vs-rest | 100.00 |" in done.out
    assert "- kim-cnn: not measured: failed: out of luck" in done.out
    assert "error: systems failed, the others are kept; the same command tries again" in done.err


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> dict[str, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "run_systems", interrupted)
    data = write_letters(tmp_path / "mine")
    done = run_compare(monkeypatch, capsys, "--data", data, "--output", tmp_path / "out")
    assert done.code == 130
    assert "stopped; the same command continues from here" in done.err


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({}, ["--systems", "one-vs-rst"], "did you mean 'one-vs-rest'"),
        ({}, ["--set", "xml-cnn.colour=red"], "xml-cnn: unknown setting 'colour'"),
        (
            {},
            ["--systems", "hybrid,paper", "--set", "all.embedding_size=4"],
            "--set, paper: model.embedding_size=4",
        ),
        ({}, ["--task", "label"], "for '--task': 'label' is not one of 'labels', 'answers'"),
        ({}, ["--task", "answers", "--systems", "bm25"], "train.jsonl, line 1: this is a document"),
        ({}, ["--split", "train"], "--split: the parts are files here"),
        ({}, ["--jobs", "0"], "--jobs"),
        ({}, ["--label-names", "no-names.json"], "no-names.json: there is no such file"),
        (
            {},
            ["--systems", "omikuji", "--label-names", "n.json"],
            "--label-names is for hybrid, which is not among the systems",
        ),
        ({"train": None}, [], "there is no training file"),
        ({"dev": None, "test": None}, [], "there is nothing to report on"),
        ({"dev": []}, [], "dev.jsonl: it is empty: there are no rows"),
        ({"test": []}, [], "test.jsonl: it is empty: there are no rows"),
        ({"train": [{"text": "a a", "labels": []}]}, [], "train.jsonl: no document has a label"),
        (
            {"dev": [{"text": "a", "labels": ["new"]}]},
            [],
            "dev.jsonl: no document to select on has a label that a training document has",
        ),
        (
            {"test": [{"text": "a", "labels": ["new"]}]},
            [],
            "test.jsonl: no document to report on has a label that a training document has",
        ),
        ({"test": [{"txt": "a", "labels": ["dairy"]}]}, [], "test.jsonl, line 1: the key 'text' is missing"),
    ],
)
def test_bad_input_is_one_message_and_nothing_is_trained(
    files: dict[str, list | None],
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(comparison, "run_systems", lambda *_, **__: pytest.fail("a system was run"))
    data = write_letters(tmp_path / "mine")
    for part, rows in files.items():
        if rows is None:
            (data / f"{part}.jsonl").unlink()
        else:
            write_jsonl(data / f"{part}.jsonl", rows)
    done = run_compare(monkeypatch, capsys, "--data", data, "--output", tmp_path / "out", *options)
    assert done.code == 2, done
    assert done.out == ""
    assert "error: " in done.err
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_folder_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run_compare(monkeypatch, capsys, "--data", tmp_path / "nowhere")
    assert done.code == 2
    assert "nowhere: there is no such folder" in done.err


def test_answers_without_a_right_one_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "asked"
    wrong = [{"question": "q", "candidates": [{"text": "a", "label": 0}]}]
    for part, rows in (("train", questions(8)), ("dev", questions(4)), ("test", wrong)):
        write_jsonl(data / f"{part}.jsonl", rows)
    done = run_compare(
        monkeypatch, capsys, "--data", data, "--systems", "bm25", "--output", tmp_path / "out", "--quiet"
    )
    assert done.code == 2
    assert "test.jsonl: no candidate is marked right (label 1)" in done.err
