"""Inspecting the routing of trained label models."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from label_vocabulary import vocabulary_of
from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import encode_documents
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.losses import label_loss
from nlpcapsule.report.inspection import inspect_model
from nlpcapsule.report.iteration_effects import effects_of_iterations
from nlpcapsule.report.routing import inspect_routing
from nlpcapsule.scoring.build import network_scorer, nominator_config
from nlpcapsule.scoring.documents import LabelRankings
from nlpcapsule.scoring.models import AnswerModel, LabelModel

SMALL = [
    "condensed=4",
    "filters=8",
    "capsule_size=8",
    "embedding_size=16",
    "text.max_tokens=20",
    "inference.batch_size=4",
]
CNN = ["filters=8", "embedding_size=16", "text.max_tokens=20"]
PER_CLASS = "paper, a matrix per label"
WORDS = [f"word{number}" for number in range(30)]
PLOTS = {"iterations.svg", "agreement.svg", "loss.svg", "changes.svg", "probabilities.svg"}
FILES = PLOTS | {"inspection.json", "agreement.jsonl"}


def some_documents(count: int = 14) -> list[Document]:
    generator = np.random.default_rng(3)
    return [
        Document(
            " ".join(generator.choice(WORDS, size=generator.integers(2, 20))),
            tuple(f"label{n}" for n in generator.choice(6, size=2, replace=False)),
            f"document-{number}",
        )
        for number in range(count)
    ]


DOCUMENTS = some_documents()


def model_of(name: str, *assignments: str, candidates: int = 0) -> LabelModel:
    """An untrained model with weights large enough that its documents disagree about when to stop."""
    per_class = name == PER_CLASS
    if per_class:
        name, assignments = "paper", ("votes=class", *assignments)
    settings = SMALL if name in ("label-query", "paper", "official") else CNN
    if name in ("paper", "official"):
        assignments = (*assignments, f"inference.candidates={candidates}")
    if name == "label-query":
        assignments = ("routing=adaptive-kde", *assignments)
    config = Config.build(model=name, assignments=[*settings, *assignments])
    tokenizer = WordTokenizer.train([document.text for document in DOCUMENTS], min_count=1)
    labels = vocabulary_of([document.labels for document in DOCUMENTS])
    network: Any = build_network(config, tokenizer.size, label_count=len(labels)).eval()
    with torch.no_grad():
        if name == "label-query":
            network.document.encoder.embedding.table.weight.mul_(20)
            if network.vote_scale is not None:
                network.vote_scale.log_spread.fill_(-1.5)
            if network.document.compress_query is not None:
                network.document.compress_query.mul_(10)
        elif name == "paper":
            network.document.embedding.table.weight.mul_(20)
            if per_class:
                network.transform.mul_(10)
            else:
                network.transform.rows.mul_(3e4)
        elif name == "official":
            network.transform.rows.mul_(1e5)
    nominator = None
    if candidates:
        nominator = build_network(nominator_config(config), tokenizer.size, label_count=len(labels)).eval()
    return LabelModel(config, tokenizer, labels, network_scorer(config, tokenizer, network, nominator))


def routed_by_model(model: LabelModel) -> LabelRankings:
    return model.rank_tokens(model.encode([document.text for document in DOCUMENTS]), 3)


def loss_one_by_one(model: LabelModel, routing: str, iterations: int) -> float:
    """The loss with a network built anew for a routing and a number of iterations, document by document."""
    settings = model.config.model.model_copy(update={"routing": routing, "iterations": iterations})
    config = model.config.model_copy(update={"model": settings})
    network = build_network(config, model.tokenizer.size, label_count=len(model.labels)).eval()
    network.load_state_dict(model.network.state_dict())
    losses = []
    for document in DOCUMENTS:
        targets = torch.tensor([[float(name in document.labels) for name in model.labels.ids]])
        tokens = torch.tensor(model.encode([document.text])[0].astype(np.int64)).unsqueeze(0)
        with torch.no_grad():
            logits = network(tokens).logits
        weight = getattr(settings, "negative_weight", 1.0)
        losses.append(float(label_loss(config.training.loss, logits, targets, negative_weight=weight)))
    return float(np.mean(losses))


@pytest.mark.parametrize("name", ["label-query", "paper", PER_CLASS, "official"])
def test_iterations_and_stop_are_those_of_the_model(name: str) -> None:
    model = model_of(name)
    expected = routed_by_model(model).iterations
    assert expected is not None
    assert len(set(expected.tolist())) > 1, "all documents stop alike, so this test would show nothing"
    for document in (0, 4, 13):
        found = inspect_routing(model, DOCUMENTS, document)
        assert found.routing == "adaptive-kde"
        assert found.iterations is not None
        assert found.iterations.tolist() == expected.tolist()
        assert found.instance_stop == expected[document]


@pytest.mark.parametrize("name", ["label-query", "paper", PER_CLASS, "official"])
def test_agreement_covers_every_iteration_a_document_used_and_none_after(name: str) -> None:
    found = inspect_routing(model_of(name), DOCUMENTS)
    assert found.agreement is not None
    assert found.iterations is not None
    assert found.agreement.shape == (len(DOCUMENTS), found.iterations.max())
    assert np.isfinite(found.agreement).sum(axis=1).tolist() == found.iterations.tolist()


@pytest.mark.parametrize("name", ["label-query", "paper", PER_CLASS, "official"])
def test_instance_curve_goes_on_past_the_stop(name: str) -> None:
    document = 4
    found = inspect_routing(model_of(name), DOCUMENTS, document)
    assert found.instance_agreement is not None
    assert found.agreement is not None
    assert found.instance_stop is not None
    assert found.instance_stop < 10
    assert found.instance_agreement.shape == (10,)
    assert np.isfinite(found.instance_agreement).all()
    own = found.agreement[document, : found.instance_stop]
    np.testing.assert_allclose(found.instance_agreement[: found.instance_stop], own, rtol=1e-4, atol=1e-5)


def test_document_stops_where_its_curve_first_moves_less_than_epsilon() -> None:
    model = model_of("paper")
    found = inspect_routing(model, DOCUMENTS, 4)
    assert found.instance_agreement is not None
    small = np.abs(np.diff(found.instance_agreement)) < model.network.settings.epsilon
    assert found.instance_stop == np.flatnonzero(small)[0] + 2


@pytest.mark.parametrize("name", ["label-query", "paper", PER_CLASS])
def test_adaptive_loss_by_iterations_is_that_of_fixed_kde_routing(name: str) -> None:
    # The kernel of fixed routing compares votes that are not scaled.
    other = "routing=adaptive-kde-unscaled" if name == "label-query" else "negative_weight=0.5"
    model = model_of(name, other)
    found = inspect_routing(model, DOCUMENTS)
    assert list(found.loss_by_iterations) == [1, 2, 3, 4, 5]
    assert len(set(found.loss_by_iterations.values())) == 5
    for iterations, loss in found.loss_by_iterations.items():
        assert loss == pytest.approx(loss_one_by_one(model, "kde", iterations), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "routing"),
    [("label-query", "dot"), ("label-query", "kde"), ("paper", "dynamic"), ("paper", "em")],
)
@pytest.mark.parametrize("loss", ["bce", "margin", "spread"])
def test_fixed_routings_have_losses_but_no_stop(name: str, routing: str, loss: str) -> None:
    model = model_of(name, f"routing={routing}", f"training.loss={loss}")
    found = inspect_routing(model, DOCUMENTS)
    assert found.routing == routing
    assert found.iterations is not None
    assert set(found.iterations.tolist()) == {3}
    assert found.instance_stop is None
    assert found.instance_agreement is not None
    assert found.instance_agreement.shape == (10,)
    assert found.loss_by_iterations[2] == pytest.approx(loss_one_by_one(model, routing, 2), rel=1e-4)


def test_loss_does_not_depend_on_the_order_of_documents() -> None:
    model = model_of("label-query")
    forward = inspect_routing(model, DOCUMENTS).loss_by_iterations
    backward = inspect_routing(model, DOCUMENTS[::-1]).loss_by_iterations
    assert backward == pytest.approx(forward, rel=1e-5)


def test_unknown_labels_count_for_nothing() -> None:
    model = model_of("label-query")
    with_strangers = [Document(row.text, (*row.labels, f"new {row.id}")) for row in DOCUMENTS]
    expected = inspect_routing(model, DOCUMENTS).loss_by_iterations
    assert inspect_routing(model, with_strangers).loss_by_iterations == pytest.approx(expected)


def test_without_any_known_label_there_is_no_loss() -> None:
    found = inspect_routing(model_of("label-query"), [Document(row.text) for row in DOCUMENTS])
    assert found.loss_by_iterations == {}
    assert found.iterations is not None


def test_with_a_nominator_only_candidates_are_routed_to_and_count() -> None:
    few, all_of_them = model_of("paper", candidates=2), model_of("paper", candidates=6)
    everything = model_of("paper")
    few_losses = inspect_routing(few, DOCUMENTS).loss_by_iterations
    assert few_losses[3] < 0.9 * inspect_routing(everything, DOCUMENTS).loss_by_iterations[3]
    assert inspect_routing(all_of_them, DOCUMENTS).loss_by_iterations == pytest.approx(
        inspect_routing(everything, DOCUMENTS).loss_by_iterations, rel=1e-4
    )
    expected = routed_by_model(few).iterations
    found = inspect_routing(few, DOCUMENTS).iterations
    assert expected is not None
    assert found is not None
    assert found.tolist() == expected.tolist()


def test_inspection_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("label-query")
    settings, before = model.network.settings, routed_by_model(model)
    inspect_routing(model, DOCUMENTS)
    assert model.network.settings is settings
    assert not model.network.training
    np.testing.assert_array_equal(routed_by_model(model).scores, before.scores)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("interrupted")

    monkeypatch.setattr("nlpcapsule.report.routing.label_loss", fail)
    with pytest.raises(RuntimeError, match="interrupted"):
        inspect_routing(model, DOCUMENTS)
    assert model.network.settings is settings


@pytest.mark.parametrize("name", ["kim-cnn", "xml-cnn"])
def test_networks_that_do_not_route_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(NlpCapsuleError, match=f"'{name}' has no routing to inspect"):
        inspect_model(model_of(name), DOCUMENTS, tmp_path / "out", 0)
    assert not (tmp_path / "out").exists()


def test_answer_models_are_refused(tmp_path: Path) -> None:
    config = Config.build("answers", "label-query", assignments=SMALL)
    tokenizer = WordTokenizer.train([document.text for document in DOCUMENTS], min_count=1)
    model = AnswerModel(config, tokenizer, build_network(config, tokenizer.size))
    with pytest.raises(NlpCapsuleError, match="ranks answers"):
        inspect_model(model, DOCUMENTS, tmp_path, 0)


@pytest.mark.parametrize("document", [len(DOCUMENTS), 1000, -1])
def test_document_beyond_the_data_is_refused(document: int) -> None:
    with pytest.raises(NlpCapsuleError, match=f"no document {document + 1}: the data has 14"):
        inspect_routing(model_of("label-query"), DOCUMENTS, document)


def test_no_documents_are_refused() -> None:
    with pytest.raises(NlpCapsuleError, match="no documents"):
        inspect_routing(model_of("label-query"), [])


def test_files_hold_what_the_inspection_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_of("label-query", "iterations=5")
    found = inspect_routing(model, DOCUMENTS, 4)
    inspect_model(model, DOCUMENTS, tmp_path / "new" / "folder", 4)
    folder = tmp_path / "new" / "folder"
    assert {path.name for path in folder.iterdir()} == FILES
    for plot in folder.glob("*.svg"):
        assert ElementTree.parse(plot).getroot().tag.endswith("svg")
    summary = json.loads((folder / "inspection.json").read_text(encoding="utf-8"))
    assert summary["routing"] == "adaptive-kde"
    assert summary["most_iterations"] == 5
    assert sum(summary["documents_by_iterations"].values()) == len(DOCUMENTS)
    assert summary["loss_by_iterations"]["3"] == pytest.approx(found.loss_by_iterations[3])
    assert summary["instance"]["document"] == 5
    assert summary["instance"]["id"] == "document-4"
    assert summary["instance"]["stop"] == found.instance_stop
    assert len(summary["instance"]["agreement"]) == 10
    assert found.agreement is not None
    assert [row["documents"] for row in summary["mean_agreement"]] == [
        int(np.isfinite(column).sum()) for column in found.agreement.T
    ]
    lines = [json.loads(line) for line in (folder / "agreement.jsonl").read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == [document.id for document in DOCUMENTS]
    assert all(len(line["agreement"]) == line["iterations"] for line in lines)
    printed = capsys.readouterr().out
    assert "Iterations per document" in printed
    assert f"{found.loss_by_iterations[5]:.4f}" in printed


def test_plots_of_an_earlier_inspection_do_not_stay_behind(tmp_path: Path) -> None:
    model = model_of("label-query")
    inspect_model(model, DOCUMENTS, tmp_path, 0)
    inspect_model(model, [Document(row.text) for row in DOCUMENTS], tmp_path, 0)
    assert {path.name for path in tmp_path.iterdir()} == FILES - {"loss.svg"}


@pytest.mark.parametrize("name", ["label-query", "paper", PER_CLASS, "official"])
def test_after_its_last_iteration_a_document_has_the_labels_that_the_model_gives_it(name: str) -> None:
    model = model_of(name, candidates=4 if name in ("paper", PER_CLASS) else 0)
    encoded = encode_documents(DOCUMENTS, model.tokenizer, model.labels, 20)
    expected = routed_by_model(model)
    assert expected.iterations is not None
    effects = effects_of_iterations(model, encoded, expected.iterations)
    rows = np.arange(len(DOCUMENTS))
    assert effects.labels[rows, expected.iterations - 1, :3].tolist() == expected.labels.tolist()
    last_scores = effects.scores[rows, expected.iterations - 1, :3]
    np.testing.assert_allclose(last_scores, expected.scores, rtol=1e-3, atol=1e-7)


def test_files_say_what_iterations_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_of("label-query")
    inspect_model(model, DOCUMENTS, tmp_path, 4)
    changes = json.loads((tmp_path / "inspection.json").read_text(encoding="utf-8"))["changes"]
    lines = [json.loads(line) for line in (tmp_path / "agreement.jsonl").read_text("utf-8").splitlines()]
    assert changes["documents_with_truth"] == len(DOCUMENTS)
    for number, counts in changes["by_iteration"].items():
        taken = [line["steps"] for line in lines if line["iterations"] >= int(number)]
        assert counts["documents"] == len(taken)
        assert counts["first_labels"] == sum(bool(steps[int(number) - 1]["entered"]) for steps in taken)
    for line in lines:
        assert [step["agreement"] for step in line["steps"]] == line["agreement"]
        assert all(len(step["labels"]) == 5 for step in line["steps"])
    printed = capsys.readouterr().out
    assert "What iterations changed" in printed
    assert "Document 5 (document-4)" in printed
