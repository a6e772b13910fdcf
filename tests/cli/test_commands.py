"""The commands at work: train, evaluate, predict and inspect on small slices of the embedded sample."""

from __future__ import annotations

import gc
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
from run_command import TINY, assert_refused, run_command, run_process

from nlpcapsule.cli import train as train_command
from nlpcapsule.cli.files import RowFile
from nlpcapsule.training import fit_labels

LABEL_FIGURES = {f"{name}@{k}" for name in ("P", "nDCG") for k in (1, 3, 5)}


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def ids_in(path: Path) -> list[str]:
    return [row["id"] for row in rows_of(path.read_text(encoding="utf-8"))]


def test_training_says_what_it_read_where_the_model_is_and_what_to_do_next(
    sample: Path, tmp_path: Path
) -> None:
    train, dev = sample / "documents-train.jsonl", sample / "documents-dev.jsonl"
    out = tmp_path / "a model"
    done = run_command("train", train, "--dev", dev, "--output", out, *TINY)
    assert (done.code, done.out) == (0, "")
    assert f"{train}: 60 rows read\n" in done.err
    assert f"{dev}: 20 rows read\n" in done.err
    name = shlex.quote(str(out))
    place, following = done.err.splitlines()[-2:]
    assert place == f"the model is in {name}"
    assert following == f"next: nlpcapsule evaluate {name} DATA, predict {name} INPUT, or serve {name}"
    assert not (out / "checkpoint").exists()


def test_quiet_training_says_nothing(sample: Path, tmp_path: Path) -> None:
    done = run_command("train", sample / "documents-train.jsonl", "--output", tmp_path / "model", "-q", *TINY)
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize(
    ("task", "row", "problem"),
    [
        ("labels", '{"text": "word word", "labels": []}', "no document has a label"),
        ("answers", '{"question": "a", "candidates": [{"text": "b", "label": 0}]}', "no candidate is marked"),
    ],
)
def test_rows_that_were_skipped_are_told_before_why_there_is_nothing_to_learn(
    task: str, row: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{row}\nnot JSON\n", encoding="utf-8")
    done = run_command("train", path, "--task", task, "--output", tmp_path / "model", "--skip-bad-rows", "-q")
    assert_refused(done, problem)
    assert "1 bad row skipped" in done.err
    assert "line 2: invalid JSON" in done.err


def test_the_rows_of_a_stream_are_gone_when_the_training_begins(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[weakref.ref] = []
    kept: list[object] = []

    def noted(*arguments: Any) -> RowFile:
        rows = RowFile(*arguments)
        read.append(weakref.ref(rows))
        return rows

    def fit(*arguments: object) -> None:
        gc.collect()
        kept.extend(reference() for reference in read)

    monkeypatch.setattr(train_command, "RowFile", noted)
    monkeypatch.setattr(fit_labels, "fit_labels", fit)
    rows, dev = (sample / "documents-train.jsonl").read_bytes(), sample / "documents-dev.jsonl"
    done = run_command("train", "-", "--dev", dev, "--output", tmp_path / "model", *TINY, stdin=rows)
    assert (done.code, kept) == (0, [None, None]), done.err


def test_evaluating_a_label_model_writes_precision_and_ndcg_as_fractions(
    label_model: Path, sample: Path, tmp_path: Path
) -> None:
    file = tmp_path / "new folder" / "figures.json"
    done = run_command("evaluate", label_model, sample / "documents-train.jsonl", "--json", file)
    figures = json.loads(file.read_text())
    assert done.code == 0
    assert figures.keys() >= LABEL_FIGURES
    assert all(0 <= figures[name] <= 1 for name in LABEL_FIGURES)
    assert figures["documents"] == 60
    assert f"{figures['P@1']:.4f}" in done.out
    assert done.err == ""


def test_evaluating_an_answer_model_writes_map_and_mrr(
    answer_model: Path, sample: Path, tmp_path: Path
) -> None:
    file = tmp_path / "figures.json"
    done = run_command("evaluate", answer_model, sample / "questions-dev.jsonl", "--json", file)
    figures = json.loads(file.read_text())
    assert done.code == 0
    assert 0 < figures["MAP"] <= 1
    assert 0 < figures["MRR"] <= 1
    assert figures["questions"] == 8


def test_predicting_labels_gives_one_line_per_row_in_order(
    label_model: Path, sample: Path, tmp_path: Path
) -> None:
    data, output = sample / "documents-dev.jsonl", tmp_path / "ranked.jsonl"
    done = run_command("predict", label_model, data, "--top-k", "3", "--output", output)
    assert (done.code, done.out, done.err) == (0, "", "")
    rows = rows_of(output.read_text(encoding="utf-8"))
    assert [row["id"] for row in rows] == ids_in(data)
    for row in rows:
        scores = [entry["score"] for entry in row["labels"]]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_a_threshold_leaves_labels_out_that_do_not_reach_it(label_model: Path, sample: Path) -> None:
    data = sample / "documents-dev.jsonl"
    every, some, tuned = (
        rows_of(run_command("predict", label_model, data, "--top-k", "50", *options).out)
        for options in ([], ["--threshold", "0.1"], ["--threshold", "tuned"])
    )
    least = json.loads((label_model / "facts.json").read_text(encoding="utf-8"))["threshold"]
    for row, above, chosen in zip(every, some, tuned, strict=True):
        assert above["labels"] == [entry for entry in row["labels"] if entry["score"] >= 0.1]
        assert chosen["labels"] == [entry for entry in row["labels"] if entry["score"] >= round(least, 6)]


@pytest.mark.parametrize("value", ["much", "1.5", "-0.1", "nan"])
def test_a_threshold_that_is_none_is_refused(label_model: Path, sample: Path, value: str) -> None:
    done = run_command("predict", label_model, sample / "documents-dev.jsonl", "--threshold", value)
    assert done.code == 2
    assert "is not a number from 0 to 1, nor 'tuned'" in done.err
    assert "Traceback" not in done.err


def test_predicting_answers_ranks_all_candidates_of_each_question(answer_model: Path, sample: Path) -> None:
    data = sample / "questions-dev.jsonl"
    done = run_command("predict", answer_model, data)
    asked = rows_of(data.read_text(encoding="utf-8"))
    ranked = rows_of(done.out)
    assert [(row["id"], row["question"]) for row in ranked] == [(row["id"], row["question"]) for row in asked]
    for row, question in zip(ranked, asked, strict=True):
        answers = [entry["answer"] for entry in row["ranking"]]
        assert sorted(answers) == sorted(candidate["text"] for candidate in question["candidates"])


def test_of_the_answers_only_the_best_may_be_asked_for(answer_model: Path, sample: Path) -> None:
    data = sample / "questions-dev.jsonl"
    whole = rows_of(run_command("predict", answer_model, data).out)
    cut = rows_of(run_command("predict", answer_model, data, "--top-k", "2").out)
    assert [row["ranking"] for row in cut] == [row["ranking"][:2] for row in whole]
    least = sorted(answer["score"] for answer in whole[0]["ranking"])[1]
    some = rows_of(run_command("predict", answer_model, data, "--threshold", least).out)
    for row, all_of_them in zip(some, whole, strict=True):
        kept = [answer for answer in all_of_them["ranking"] if answer["score"] > least + 1e-6]
        assert row["ranking"][: len(kept)] == kept
        assert all(answer["score"] >= least - 1e-6 for answer in row["ranking"])
    done = run_command("predict", answer_model, data, "--threshold", "tuned")
    assert_refused(done, "--threshold tuned is for models that rank labels; give a number")


@pytest.mark.parametrize(("command", "option"), [("predict", "--output"), ("evaluate", "--json")])
def test_an_output_never_replaces_the_data_it_is_made_of(
    command: str, option: str, label_model: Path, sample: Path, tmp_path: Path
) -> None:
    data = (sample / "documents-train.jsonl").read_bytes()
    texts = tmp_path / "texts.jsonl"
    texts.write_bytes(data)
    for output in (texts, tmp_path / ".." / tmp_path.name / "texts.jsonl"):
        done = run_command(command, label_model, texts, option, output)
        assert_refused(done, rf"{option} .*texts\.jsonl is what is read: name another file")
    assert texts.read_bytes() == data


@pytest.mark.parametrize(("command", "option"), [("predict", "--output"), ("evaluate", "--json")])
def test_an_output_never_goes_into_the_model_folder(
    command: str, option: str, label_model: Path, sample: Path, tmp_path: Path
) -> None:
    model, other_name, stored = tmp_path / "model", tmp_path / "other name", tmp_path / "stored.json"
    shutil.copytree(label_model, model)
    other_name.symlink_to(model)
    (model / "labels.json").rename(stored)
    (model / "labels.json").symlink_to(stored)
    before = {path: path.read_bytes() for path in model.iterdir() if path.is_file()}
    for output in (
        model / "config.json",
        model / "labels.json",  # the link itself would be replaced
        model / "new folder" / "new.json",
        other_name / "config.json",
    ):
        done = run_command(command, model, sample / "documents-train.jsonl", option, output)
        assert_refused(done, rf"{option} .*\.json lies in the model folder .*model: name another place")
    assert {path: path.read_bytes() for path in model.iterdir() if path.is_file()} == before
    assert (model / "labels.json").is_symlink()


def test_predictions_are_the_same_from_a_file_gzip_stdin_and_csv(
    label_model: Path, sample: Path, tmp_path: Path
) -> None:
    rows = rows_of((sample / "documents-dev.jsonl").read_text(encoding="utf-8"))
    lines = "".join(json.dumps({"id": row["id"], "text": row["text"]}) + "\n" for row in rows).encode()
    (tmp_path / "a.jsonl").write_bytes(lines)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines))
    cells = "".join(f'{row["id"]},"{row["text"].replace(chr(34), chr(34) * 2)}"\n' for row in rows)
    (tmp_path / "a.csv").write_text("id,text\n" + cells, encoding="utf-8")
    expected = run_command("predict", label_model, sample / "documents-dev.jsonl").out
    assert len(rows_of(expected)) == 20
    for name in ("a.jsonl", "a.jsonl.gz", "a.csv"):
        done = run_command("predict", label_model, tmp_path / name)
        assert (done.code, done.out, done.err) == (0, expected, ""), name
    for stdin in (lines, gzip.compress(lines)):
        assert run_command("predict", label_model, "-", stdin=stdin).out == expected


def test_a_plain_text_file_is_one_text_per_line_blank_ones_too(label_model: Path) -> None:
    done = run_command("predict", label_model, "-", stdin=b"the street is dark\n\nmy bin is full\n")
    rows = rows_of(done.out)
    assert [row["id"] for row in rows] == [None, None, None]
    assert all(len(row["labels"]) == 5 for row in rows)
    # Texts to predict need no labels, so nothing is said about missing ones.
    assert done.err == "<stdin>: read as txt, by its first line; --format names another format\n"


def test_top_k_above_the_number_of_labels_gives_them_all(label_model: Path) -> None:
    labels = len(json.loads((label_model / "labels.json").read_text(encoding="utf-8")))
    done = run_command("predict", label_model, "-", "--top-k", "99999", stdin=b"the street is dark\n")
    names = [entry["label"] for entry in rows_of(done.out)[0]["labels"]]
    assert len(names) == len(set(names)) == labels


def test_unusable_labels_do_not_hinder_prediction(label_model: Path, answer_model: Path) -> None:
    row = b'{"text": "the street is dark", "labels": "lamp;street"}\n'
    assert run_command("predict", label_model, "-", stdin=row).code == 0
    question = b'{"question": "who?", "candidates": ["he", {"text": "she", "label": "unsure"}]}\n'
    done = run_command("predict", answer_model, "-", stdin=question)
    assert {entry["answer"] for entry in rows_of(done.out)[0]["ranking"]} == {"he", "she"}


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "inspect"])
def test_skipped_rows_are_counted_and_shown_even_when_quiet(
    command: str, label_model: Path, sample: Path, tmp_path: Path
) -> None:
    lines = (sample / "documents-train.jsonl").read_text(encoding="utf-8").splitlines()
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join([lines[0], "no JSON", *lines[1:], '{"labels": []}']), encoding="utf-8")
    arguments = {
        "train": [data, "--output", tmp_path / "model", "--quiet", *TINY],
        "evaluate": [label_model, data],
        "predict": [label_model, data],
        "inspect": [label_model, data, "--output", tmp_path / "inspection"],
    }
    done = run_command(command, *arguments[command], "--skip-bad-rows")
    assert done.code == 0
    assert f"{data}: 60 rows read; 2 bad rows skipped\n" in done.err
    assert f"  {data}, line 2: invalid JSON" in done.err
    assert f"  {data}, line 62: the key 'text' is missing" in done.err
    if command == "predict":
        assert [row["id"] for row in rows_of(done.out)] == ids_in(sample / "documents-train.jsonl")


def test_inspecting_prints_the_routing_and_writes_plots_and_numbers(
    label_model: Path, sample: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "inspection"
    done = run_command(
        "inspect", label_model, sample / "documents-train.jsonl", "--output", folder, "--document", 2
    )
    assert done.code == 0
    assert "routing kde, iterations: 3 for every document" in done.out
    assert str(folder) in done.out.splitlines()[-1]
    assert json.loads((folder / "inspection.json").read_text())["instance"]["document"] == 2
    assert "What iterations changed" in done.out
    assert {path.stem for path in folder.glob("*.svg")} == {
        "agreement",
        "changes",
        "iterations",
        "loss",
        "probabilities",
    }


def test_settings_come_from_the_file_and_single_ones_win(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        '[model]\nname = "kim-cnn"\nembedding_size = 8\nfilters = 4\n'
        "[training]\nepochs = 7\nbatch_size = 16\n"
    )
    out = tmp_path / "model"
    train = sample / "documents-train.jsonl"
    done = run_command("train", train, "--output", out, "--config", tmp_path / "c.toml", "--set", "epochs=1")
    assert done.code == 0, done.err
    config = json.loads((out / "config.json").read_text())
    assert (config["model"]["name"], config["model"]["filters"]) == ("kim-cnn", 4)
    assert (config["training"]["epochs"], config["training"]["batch_size"]) == (1, 16)


def test_keys_and_separators_can_be_named(tmp_path: Path) -> None:
    table = "key,body,topics\n" + "".join(f"k{i},dark street lamp,a|b\n" for i in range(6))
    (tmp_path / "t.csv").write_text(table)
    keys = ["--text-key=body", "--id-key=key"]
    labels = ["--labels-key=topics", "--label-separator=|"]
    out = tmp_path / "model"
    assert run_command("train", tmp_path / "t.csv", "--output", out, *keys, *labels, *TINY).code == 0
    assert run_command("evaluate", out, tmp_path / "t.csv", *keys, *labels).code == 0
    rows = rows_of(run_command("predict", out, tmp_path / "t.csv", *keys).out)
    assert [row["id"] for row in rows] == [f"k{i}" for i in range(6)]
    assert {entry["label"] for entry in rows[0]["labels"]} == {"a", "b"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_training_data_may_come_through_stdin_or_a_pipe_that_can_be_read_once(
    sample: Path, tmp_path: Path
) -> None:
    data = (sample / "documents-train.jsonl").read_bytes()
    assert run_command("train", "-", "--output", tmp_path / "stdin", *TINY, stdin=data).code == 0
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'wb').write({data!r})"]):
        done = run_command("train", pipe, "--output", tmp_path / "piped", *TINY)
    assert done.code == 0, done.err
    weights = [(tmp_path / name / "network.safetensors").read_bytes() for name in ("stdin", "piped")]
    assert weights[0] == weights[1]


def test_text_and_labels_in_any_script_go_through_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "中文标签": "北京今天下雨，街道很湿。",
        "تصنيف": "السماء تمطر اليوم في القاهرة",
        "टैग": "आज दिल्ली में बारिश हो रही है",
        "🌧️ rain": "it rains 🌧️🌧️ cats 🐈 and dogs 🐕",
    }
    rows = [{"id": f"№{i}", "text": text, "labels": [label]} for i, (label, text) in enumerate(texts.items())]
    data = tmp_path / "данные.jsonl"
    data.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows * 8), encoding="utf-8")
    out = tmp_path / "模型"
    training = ["--set=epochs=30", "--set=learning_rate=0.02"]
    done = run_command("train", data, "--dev", data, "--output", out, *TINY, *training)
    assert done.code == 0, done.err
    done = run_command("evaluate", out, data, "--json", tmp_path / "f.json")
    assert done.code == 0
    assert json.loads((tmp_path / "f.json").read_text())["P@1"] == 1.0
    done = run_command("predict", out, data, "--top-k", "1")
    assert [(row["id"], row["labels"][0]["label"]) for row in rows_of(done.out)[:4]] == [
        (row["id"], row["labels"][0]) for row in rows
    ]
    assert "中文标签" in done.out, "written as it is, not as \\u escapes"
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    assert run_process("predict", out, data, "--top-k", "1").out == done.out, "UTF-8 on any terminal"


def test_an_interrupted_training_exits_130_and_can_be_resumed(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = sample / "documents-train.jsonl"
    arguments = ["train", train, *TINY, "--set=epochs=2"]
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    assert run_command(*arguments, "--output", straight).code == 0

    from nlpcapsule.training.label_task import LabelTask

    with monkeypatch.context() as patch:
        batches = LabelTask.batches

        def interrupted(self: LabelTask, epoch: int) -> Any:
            if epoch == 1:
                raise KeyboardInterrupt
            return batches(self, epoch)

        patch.setattr(LabelTask, "batches", interrupted)
        done = run_command(*arguments, "--output", stopped)
    assert done.code == 130
    assert done.err.splitlines()[-1] == "stopped; the same command with --resume continues from here"
    assert "Traceback" not in done.err
    refused = run_command("predict", stopped, train)
    assert "training has not finished" in refused.errors[0]
    assert run_command(*arguments, "--output", stopped, "--resume").code == 0
    assert (stopped / "network.safetensors").read_bytes() == (straight / "network.safetensors").read_bytes()
    again = run_command(*arguments, "--output", stopped, "--resume")
    assert (again.code, again.err) == (0, f"{stopped} is finished; nothing is left to do\n")


@pytest.mark.parametrize("arguments", [["nowhere.jsonl"], ["{train}", "--dev", "nowhere.jsonl"]])
def test_resuming_a_finished_training_still_asks_for_data_that_are_there(
    arguments: list[str], label_model: Path, sample: Path
) -> None:
    named = [argument.format(train=sample / "documents-train.jsonl") for argument in arguments]
    done = run_command("train", *named, "--output", label_model, "--resume", *TINY)
    assert_refused(done, r"nowhere\.jsonl: there is no such file; check the path")


def test_an_interruption_before_training_begins_leaves_nothing(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nlpcapsule.training.prepared_labels.prepare_labels", interrupted)
    done = run_command("train", sample / "documents-train.jsonl", "--output", tmp_path / "out", *TINY)
    assert (done.code, done.err) == (130, "stopped before the first checkpoint; nothing is kept\n")
    assert not (tmp_path / "out").exists()
