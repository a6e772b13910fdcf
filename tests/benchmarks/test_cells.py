"""Cells are run once each and hold all it takes to repeat them; what was stopped goes on."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from made_up_cells import write_cell
from tiny_data import tiny_answers, tiny_parts, write_vectors

from benchmarks import run_cell as run_cell_module
from benchmarks import run_cells as run_cells_module
from benchmarks import run_labels as run_labels_module
from benchmarks.cell import Cell, cell_path, finished_cell
from benchmarks.run_cell import run_cell
from benchmarks.run_cells import run_cells
from benchmarks.table import Options
from nlpcapsule.compare import measuring
from nlpcapsule.compare.measuring import LABEL_FIGURES
from nlpcapsule.compare.record import LOWER_BOUND, load_per_document
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.provenance import hardware
from nlpcapsule.training.label_task import LabelTask

KIM = Cell(
    "labels",
    "letters",
    "CNN-Kim",
    "kim-cnn",
    {"embedding_size": 8, "filters": 4, "training.epochs": 2, "max_tokens": 20},
    seed=2,
)
CAPSULES = Cell(
    "labels",
    "letters",
    "label-query",
    "label-query",
    {"filters": 4, "capsule_size": 4, "condensed": 3, "document_size": 4, "training.epochs": 1},
    seed=1,
)
ONE_VS_REST = Cell("labels", "letters", "one-vs-rest", "one-vs-rest", {}, seed=1)
ANSWERS = Cell(
    "answers",
    "questions",
    "label-query",
    "label-query",
    {"filters": 4, "capsule_size": 4, "condensed": 3, "training.epochs": 1, "max_tokens": 16},
    seed=1,
)
BROKEN = replace(KIM, system="broken", settings={"colour": "red"})

COMMON_FIELDS = {
    "cell",
    "figures",
    "selected on",
    "epochs",
    "training seconds",
    "parameters",
    "model MiB",
    "config",
    "data",
    "gpu memory GiB",
    "process memory GiB",
    "hardware",
    "nlpcapsule",
    "commit",
}


@pytest.fixture(autouse=True)
def _tiny_data(monkeypatch):
    monkeypatch.setattr(run_cell_module, "label_parts", lambda *_: tiny_parts())
    monkeypatch.setattr(run_cell_module, "answer_parts", lambda *_: tiny_answers())


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr(run_labels_module, "fit_labels", lambda *_: pytest.fail("trained again"))


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def strings(value):
    """All strings of a record, keys too."""
    if isinstance(value, dict):
        return [text for item in value.items() for text in strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def figures_alone(record):
    """What training decides: losses and figures, without clocks and memory."""
    losses = [epoch["loss"] for epoch in record.epochs]
    return {"loss": losses, "figures": record.figures, "selected on": record.selected_on}


def test_a_label_cell_holds_all_that_is_needed_to_repeat_it(tmp_path):
    record = run_cell(KIM, None, tmp_path, "abc123")
    written = read(tmp_path / f"{KIM.name}.json")
    assert record.to_json() == written
    own = {"network alone", "milliseconds per document", "documents by routing iterations"}
    assert written.keys() == COMMON_FIELDS | own
    assert record.cell == KIM
    assert record.config["training"]["seed"] == 2
    assert record.config["model"]["filters"] == 4
    assert record.data == tiny_parts().fingerprint()
    assert (record.hardware, record.commit) == (hardware(), "abc123")
    assert [epoch["epoch"] for epoch in record.epochs] == [1, 2]
    assert record.figures["documents"] == 24
    assert record.selected_on["documents"] == 20
    assert record.parameters > 0
    assert record.documents_by_iterations is None
    files = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "letters").iterdir()}
    assert files == {f"{KIM.name}.json", f"{KIM.name}.npz"}


def test_a_capsule_cell_counts_documents_by_routing_iterations(tmp_path):
    record = run_cell(CAPSULES, None, tmp_path, "")
    assert sum(record.documents_by_iterations) == 24


def test_a_system_without_a_network_is_a_cell_too(tmp_path):
    record = run_cell(ONE_VS_REST, None, tmp_path, "")
    assert record.parameters is None
    assert record.epochs == []
    assert 0 <= record.figures["P@1"] <= 1


def test_an_answer_cell_is_reported_on_every_part(tmp_path):
    record = run_cell(ANSWERS, None, tmp_path, "")
    assert record.to_json().keys() == COMMON_FIELDS | {"milliseconds per question"}
    assert {part: figures["questions"] for part, figures in record.figures.items()} == {
        "clean": 6,
        "raw": 8,
    }
    assert record.selected_on["questions"] == 5
    assert record.data == tiny_answers().fingerprint()


def test_no_place_on_this_machine_is_written_down(tmp_path, monkeypatch):
    write_vectors(tmp_path, size=10)
    vectors = tmp_path / "vectors" / "glove.6B.100d.trimmed.txt.gz"
    monkeypatch.setattr(run_cell_module, "answer_parts", lambda *_: replace(tiny_answers(), vectors=vectors))
    answers = run_cell(ANSWERS, tmp_path, tmp_path / "cells", "")
    labels = run_cell(KIM, tmp_path, tmp_path / "cells", "")
    assert answers.config["text"]["vectors"] == vectors.name
    for text in strings([answers.to_json(), labels.to_json()]):
        assert not re.match(r"[/~\\]|[A-Za-z]:[/\\]", text), text
        assert str(tmp_path) not in text


def test_figures_per_document_have_the_reported_means(tmp_path):
    figures = run_cell(CAPSULES, None, tmp_path, "").figures
    per_document = load_per_document(tmp_path / f"{CAPSULES.name}.json")
    assert per_document.shape == (4, 24)
    for row, name in zip(per_document, LABEL_FIGURES, strict=True):
        assert row.mean() == pytest.approx(figures[name])


def test_average_precisions_per_question_have_the_reported_mean(tmp_path):
    figures = run_cell(ANSWERS, None, tmp_path, "").figures
    precisions = load_per_document(tmp_path / f"{ANSWERS.name}.json")
    assert precisions.shape == (1, 6)
    assert precisions.mean() == pytest.approx(figures["clean"]["MAP"])


def test_a_finished_cell_is_not_run_again(tmp_path, monkeypatch):
    options = Options(tmp_path, commit="abc123")
    said = []
    run_cells([KIM], options)
    path = options.cells / f"{KIM.name}.json"
    before = path.stat().st_mtime_ns
    monkeypatch.setattr(run_cells_module, "run_cell", lambda *_: pytest.fail("run again"))
    run_cells([KIM], replace(options, say=said.append))
    assert said == ["1 of 1 cells are finished"]
    assert path.stat().st_mtime_ns == before


def test_a_cell_with_other_settings_is_run_anew_and_the_first_is_kept(tmp_path):
    first = run_cell(KIM, None, tmp_path, "")
    other = replace(KIM, settings={**KIM.settings, "filters": 6})
    assert finished_cell(other, tmp_path) is None
    second = run_cell(other, None, tmp_path, "")
    assert second.parameters > first.parameters
    assert finished_cell(KIM, tmp_path) == first
    assert finished_cell(other, tmp_path) == second
    assert cell_path(other, tmp_path).with_suffix(".npz").exists()


def test_a_label_cell_and_an_answer_cell_of_one_name_do_not_take_each_others_place(tmp_path):
    answers = replace(ANSWERS, data="letters")
    records = [run_cell(cell, None, tmp_path, "") for cell in (CAPSULES, answers)]
    assert [finished_cell(cell, tmp_path) for cell in (CAPSULES, answers)] == records


def test_two_tables_share_a_training_that_is_the_same(tmp_path, no_training):
    elsewhere = replace(KIM, system="Kim's network")
    write_cell(KIM, tmp_path, level=0.5)
    record = finished_cell(elsewhere, tmp_path)
    assert record is not None
    assert record.cell == KIM


def stopped_in_its_second_epoch(cell, folder, monkeypatch):
    """Runs a cell until its training is stopped once the first epoch is kept."""
    measure, epochs = LabelTask.dev_metrics, []

    def stop(self, network):
        epochs.append(len(epochs))
        if len(epochs) == 2:
            raise KeyboardInterrupt
        return measure(self, network)

    with monkeypatch.context() as patch:
        patch.setattr(LabelTask, "dev_metrics", stop)
        with pytest.raises(KeyboardInterrupt):
            run_cell(cell, None, folder, "")


def test_a_training_that_was_stopped_goes_on_and_gives_the_same_figures(tmp_path, monkeypatch):
    cell = replace(KIM, settings={**KIM.settings, "training.epochs": 3})
    whole = run_cell(cell, None, tmp_path / "whole", "")
    stopped_in_its_second_epoch(cell, tmp_path / "cut", monkeypatch)
    assert finished_cell(cell, tmp_path / "cut") is None
    resumed = run_cell(cell, None, tmp_path / "cut", "")
    assert figures_alone(resumed) == figures_alone(whole)


def test_a_cell_that_was_stopped_while_it_was_reported_is_not_trained_again(tmp_path, monkeypatch):
    whole = run_cell(KIM, None, tmp_path / "whole", "")
    with monkeypatch.context() as patch:
        patch.setattr(measuring, "label_figures", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_cell(KIM, None, tmp_path / "cut", "")
    monkeypatch.setattr(run_labels_module, "fit_labels", lambda *_: pytest.fail("trained again"))
    reported = run_cell(KIM, None, tmp_path / "cut", "")
    assert figures_alone(reported) == figures_alone(whole)
    assert reported.training_seconds >= round(sum(epoch["seconds"] for epoch in reported.epochs), 1)


@pytest.fixture
def slow_clock(monkeypatch):
    """Every stretch of training takes a hundred seconds."""
    clock = SimpleNamespace(perf_counter=iter(range(0, 10_000, 100)).__next__)
    monkeypatch.setattr(measuring, "time", clock)


def test_seconds_are_a_lower_bound_where_a_training_was_resumed(tmp_path, monkeypatch):
    stopped_in_its_second_epoch(KIM, tmp_path, monkeypatch)
    record = run_cell(KIM, None, tmp_path, "")
    assert record.training_seconds == round(sum(epoch["seconds"] for epoch in record.epochs), 1)
    assert record.to_json()[LOWER_BOUND] is True
    assert not list((tmp_path / "letters").glob("*.work"))


def test_seconds_are_a_lower_bound_where_a_stop_came_before_the_record(tmp_path, monkeypatch, slow_clock):
    with monkeypatch.context() as patch:
        patch.setattr(measuring, "label_figures", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_cell(KIM, None, tmp_path, "")
    record = run_cell(KIM, None, tmp_path, "")
    assert record.training_seconds < 100
    assert record.is_lower_bound


def test_a_training_that_begins_again_does_not_count_what_came_to_nothing(tmp_path, monkeypatch, slow_clock):
    with monkeypatch.context() as patch:
        patch.setattr(run_labels_module, "fit_labels", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_cell(KIM, None, tmp_path, "")
    record = run_cell(KIM, None, tmp_path, "")
    assert record.training_seconds == 100
    assert not record.is_lower_bound


def test_half_of_the_training_documents(tmp_path, monkeypatch):
    seen = []
    fit = run_labels_module.fit_labels

    def fit_and_note(data, *rest):
        seen.append(data)
        return fit(data, *rest)

    monkeypatch.setattr(run_labels_module, "fit_labels", fit_and_note)
    for seed in (1, 2):
        cell = replace(KIM, fraction=0.5, seed=seed)
        record = run_cell(cell, None, tmp_path, "")
        assert "-50percent-" in cell.name
        assert (tmp_path / f"{cell.name}.json").exists()
        assert record.figures["documents"] == 24
    first, second = seen
    assert len(first.train) == len(tiny_parts().train) // 2
    assert first.train.fingerprint() == second.train.fingerprint()  # the same half whatever the seed
    assert len(first.labels) == len(tiny_parts().labels)
    assert first.labels.counts.sum() == len(first.train.labels.values)


def test_a_cell_that_fails_is_named_and_does_not_stop_the_others(tmp_path):
    said = []
    options = Options(tmp_path, say=said.append, commit="abc123")
    with pytest.raises(NlpCapsuleError, match="cells failed, the others are kept") as failure:
        run_cells([BROKEN, KIM], options)
    assert "broken on letters, seed 2: unknown setting 'colour'" in str(failure.value)
    assert "CNN-Kim" not in str(failure.value)
    assert finished_cell(KIM, options.cells) is not None
    assert said == [
        "0 of 2 cells are finished",
        "broken on letters, seed 2: started",
        said[2],
        "CNN-Kim on letters, seed 2: started",
        "[2/2] CNN-Kim on letters, seed 2: done",
    ]


@pytest.mark.slow
def test_a_cell_runs_in_a_process_of_its_own(tmp_path, no_training):
    tiny_parts().save(tmp_path / "data" / "letters")  # the process finds them in the data folder
    options = Options(tmp_path / "out", data=tmp_path / "data", jobs=1, commit="abc123")
    run_cells([KIM], options)
    record = finished_cell(KIM, options.cells)
    assert record.commit == "abc123"
    assert record.data == tiny_parts().fingerprint()
    assert not (options.cells / f"{KIM.name}.log").exists()
