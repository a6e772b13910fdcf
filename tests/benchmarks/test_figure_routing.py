"""The routing figure: networks are trained once, inspected once, and put together from what is finished."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_data import tiny_parts

from benchmarks import figure_routing
from benchmarks.figure_routing import FIGURE_ROUTING, inspect_trained, routing_settings
from benchmarks.inspection_record import InspectionRecord
from benchmarks.table import Options
from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError, ModelFolderError, NlpCapsuleError
from nlpcapsule.model_folder import load_model
from nlpcapsule.networks.label_query import LabelQuerySettings

TINY = {"max_tokens": 12, "training.epochs": 2, "training.batch_size": 16, "filters": 4, "condensed": 4}
SETTINGS = {
    "paper": {**TINY, "capsule_size": 4, "windows": [2, 4], "candidates": 5},
    "label-query": {
        **TINY,
        "routing": "adaptive-kde",
        "capsule_size": 4,
        "document_size": 4,
    },
}
STEMS = {
    f"figure-routing-{name}-{what}"
    for name in ("paper", "label-query")
    for what in ("loss", "agreement", "iterations")
}


@pytest.fixture(scope="module")
def small():
    """The same code with tiny networks on a few letters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure_routing, "SMOKE", SETTINGS)
        patch.setattr(LabelQuerySettings, "epsilon", 1e-6)
        patch.setattr(figure_routing, "label_parts", lambda *_: tiny_parts())
        patch.setattr(figure_routing, "LOSS_DOCUMENTS", 30)
        patch.setattr(figure_routing, "COUNTED_DOCUMENTS", 20)
        yield


@pytest.fixture(scope="module")
def made(small, tmp_path_factory):
    """Options of a finished run, and its record."""
    options = Options(output=tmp_path_factory.mktemp("out"), budget="smoke", commit="abc")
    return options, FIGURE_ROUTING.make(options)


@pytest.mark.parametrize("budget", ["smoke", "full"])
@pytest.mark.parametrize("system", figure_routing.SYSTEMS)
def test_settings_are_adaptive_and_half_precise_on_a_gpu_alone(system, budget):
    for on_gpu, precision in ((True, "bf16"), (False, "float32")):
        config = Config.build("labels", system, overrides=routing_settings(system, budget, on_gpu))
        assert config.model.routing == "adaptive-kde"
        assert config.training.precision == precision
        assert config.training.negatives == "batch"


def test_the_record_has_both_curves_and_the_histogram(made):
    _, record = made
    assert record["command"] == "python -m benchmarks reproduce figure-routing --budget smoke"
    assert (record["commit"], record["seeds"], record["trained on"]) == ("abc", [1], "sample")
    assert record["data"] == dict.fromkeys(("paper", "label-query"), tiny_parts().fingerprint())
    for system in record["systems"].values():
        assert list(system["loss by iterations"]) == ["1", "2", "3", "4", "5"]
        assert len(system["agreement of one document"]) == 10
        assert sum(system["documents by iterations"]) == 20
        assert 1 <= system["that document stops after"] <= system["most iterations"]
        assert system["commit"] == "abc"
    assert record["systems"]["paper"]["labels routed to"] == 5
    assert record["systems"]["label-query"]["labels routed to"] == len(tiny_parts().labels)
    json.dumps(record, allow_nan=False)


def test_iterations_are_those_of_the_kept_model(made):
    options, record = made
    model = load_model(options.cells / "figure-routing" / "label-query")
    report = tiny_parts().report.take(range(20))
    ranked = model.rank_tokens(report.tokens.cut(12), 1)
    assert (
        record["systems"]["label-query"]["documents by iterations"] == np.bincount(ranked.iterations).tolist()
    )


def test_loss_is_of_training_documents(made):
    """A loss over other documents would be another number."""
    options, record = made
    model = load_model(options.cells / "figure-routing" / "label-query")
    parts = tiny_parts()
    train = replace(parts.train.take(range(30)), tokens=parts.train.take(range(30)).tokens.cut(12))
    found = figure_routing.inspect_encoded(model, train).loss_by_iterations
    losses = record["systems"]["label-query"]["loss by iterations"]
    assert [losses[str(number)] for number in found] == pytest.approx(list(found.values()), rel=1e-5)


def test_what_is_finished_is_neither_trained_nor_inspected_again(made, monkeypatch):
    options, record = made
    for name in ("label_parts", "fit_labels", "inspect_encoded"):
        monkeypatch.setattr(figure_routing, name, lambda *_, **__: pytest.fail("made again"))
    assert FIGURE_ROUTING.make(options)["systems"] == record["systems"]
    assert FIGURE_ROUTING.make(replace(options, run=False))["systems"] == record["systems"]


def test_a_trained_network_is_only_inspected(made, monkeypatch):
    options, record = made
    monkeypatch.setattr(figure_routing, "fit_labels", lambda *_: pytest.fail("trained again"))
    settings = routing_settings("paper", "smoke", on_gpu=False)
    again = inspect_trained(tiny_parts(), "paper", settings, options.cells / "figure-routing" / "paper")
    assert again.loss_by_iterations == pytest.approx(record["systems"]["paper"]["loss by iterations"])


def test_a_network_trained_otherwise_is_not_taken(made):
    options, _ = made
    settings = {**routing_settings("paper", "smoke", on_gpu=False), "training.epochs": 3}
    with pytest.raises(NlpCapsuleError, match="trained with other settings"):
        inspect_trained(tiny_parts(), "paper", settings, options.cells / "figure-routing" / "paper")


def test_a_stopped_training_goes_on(small, tmp_path, monkeypatch):
    settings = routing_settings("label-query", "smoke", on_gpu=False)
    whole = inspect_trained(tiny_parts(), "label-query", settings, tmp_path / "whole")
    seen = []

    def stop(self, title, record):
        seen.append(record["epoch"])
        if seen == [1, 2]:
            raise KeyboardInterrupt

    monkeypatch.setattr(figure_routing.TrainingProgress, "epoch", stop)
    with pytest.raises(KeyboardInterrupt):
        inspect_trained(tiny_parts(), "label-query", settings, tmp_path / "stopped")
    resumed = inspect_trained(tiny_parts(), "label-query", settings, tmp_path / "stopped")
    assert seen == [1, 2, 2], "the first epoch was not trained again"
    assert resumed.loss_by_iterations == pytest.approx(whole.loss_by_iterations, rel=1e-5)


def test_a_folder_of_something_else_is_left_alone(small, tmp_path):
    (tmp_path / "letter.txt").write_text("dear reader", encoding="utf-8")
    settings = routing_settings("paper", "smoke", on_gpu=False)
    with pytest.raises(ModelFolderError):
        inspect_trained(tiny_parts(), "paper", settings, tmp_path)


def test_without_running_only_what_is_finished_is_shown(small, tmp_path, made):
    options, record = made
    here = replace(options, output=tmp_path, run=False)
    folder = here.cells / "figure-routing"
    folder.mkdir(parents=True)
    (folder / "paper.json").write_text(json.dumps(record["systems"]["paper"]), encoding="utf-8")
    partial = FIGURE_ROUTING.make(here)
    assert partial["systems"].keys() == {"paper"}
    assert "## label-query\n\nNot run yet." in FIGURE_ROUTING.markdown(partial)


@pytest.mark.parametrize("system", figure_routing.SYSTEMS)
def test_the_published_records_are_read_and_written_as_they_are(system):
    path = Path(__file__).parents[2] / "results" / "figure-routing.json"
    values = json.loads(path.read_text(encoding="utf-8"))["systems"][system]
    assert InspectionRecord.from_json(values).to_json() == values


def test_an_unknown_system_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"no system 'label-qery'.*label-query"):
        FIGURE_ROUTING.make(Options(output=tmp_path, systems=("label-qery",)))


def test_page_and_pictures_show_the_numbers(made):
    _, record = made
    page = FIGURE_ROUTING.markdown(record)
    system = record["systems"]["paper"]
    assert f"| 5 | {system['loss by iterations']['5']:.4f} |" in page
    pictures = FIGURE_ROUTING.plots(record)
    assert pictures.keys() == STEMS
    assert "Loss with a fixed number of iterations" in pictures["figure-routing-paper-loss"]
    assert "Routing iterations per document" in pictures["figure-routing-label-query-iterations"]
