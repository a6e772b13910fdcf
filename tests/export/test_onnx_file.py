"""Exported networks under ONNX Runtime, against torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from exported_networks import KINDS, LABELS, documents, exported_kind

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.export import onnx_scorer
from nlpcapsule.export.onnx_file import GRAPH, WEIGHTS, write_onnx
from nlpcapsule.export.onnx_scorer import OnnxScorer
from nlpcapsule.export.sparse_network import CAPSULES_FILE, LABELS_FILE, POOLING_FILE, TABLE_FILE

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

FAST = "convolution adaptive-kde"


@pytest.fixture(
    scope="module", params=[FAST, *(pytest.param(k, marks=pytest.mark.slow) for k in KINDS if k != FAST)]
)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    network, folder = exported_kind(request.param), tmp_path_factory.mktemp("onnx")
    is_cut = request.param.startswith("convolution") and not request.param.endswith("uncondensed")
    parts = [CAPSULES_FILE, LABELS_FILE, POOLING_FILE, TABLE_FILE] if is_cut else []
    assert write_onnx(network, folder) == sorted([GRAPH, WEIGHTS, *parts])
    return network, OnnxScorer.load(folder / GRAPH, LABELS)


def ragged(tokens: torch.Tensor) -> Ragged:
    return Ragged.from_rows(row[row > 0].numpy() for row in tokens)


def test_logits_are_those_of_torch_within_a_ten_thousandth(exported) -> None:
    network, scorer = exported
    for seed in range(3):
        tokens, candidates = documents(seed)
        expected = network(tokens, candidates).logits.detach().numpy()
        found = scorer.score(ragged(tokens), candidates.numpy()).log_odds
        np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
        every = scorer.score(ragged(tokens))
        np.testing.assert_allclose(every.log_odds, network(tokens).logits.detach().numpy(), atol=1e-4, rtol=0)
        assert every.labels.tolist() == list(range(LABELS))


def test_the_rows_of_labels_are_gathered_whole(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    write_onnx(exported_kind("convolution kde"), tmp_path)
    used = {node.op_type for node in onnx.load(tmp_path / GRAPH, load_external_data=False).graph.node}
    assert "Gather" in used
    assert "GatherND" not in used


def test_threads_and_other_documents_change_no_result(exported, monkeypatch: pytest.MonkeyPatch) -> None:
    _, scorer = exported
    tokens = Ragged.from_rows(row[row > 0].numpy() for seed in range(8) for row in documents(seed)[0])
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 1)
    alone = [scorer.score(tokens.take([row])).log_odds[0] for row in range(len(tokens))]
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 3)
    np.testing.assert_array_equal(scorer.score(tokens).log_odds, alone)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["convolution kde", "bilstm kde", "transformer kde"])
def test_8_bits_are_close(tmp_path: Path, kind: str) -> None:
    network = exported_kind(kind)
    names = write_onnx(network, tmp_path, int8=True)
    assert GRAPH in names
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    tokens, candidates = documents()
    expected = network(tokens, candidates).logits.detach().numpy()
    found = OnnxScorer.load(tmp_path / GRAPH, LABELS).score(ragged(tokens), candidates.numpy()).log_odds
    assert 1e-6 < np.abs(found - expected).max() < 0.2


@pytest.mark.slow
def test_a_network_over_all_labels_also_scores_chosen_ones(tmp_path: Path) -> None:
    network = exported_kind("convolution kde")
    write_onnx(network, tmp_path, candidates=False)
    scorer = OnnxScorer.load(tmp_path / GRAPH, LABELS)
    tokens, candidates = documents()
    expected = network(tokens).logits.detach()
    np.testing.assert_allclose(scorer.score(ragged(tokens)).log_odds, expected.numpy(), atol=1e-4, rtol=0)
    found = scorer.score(ragged(tokens), candidates.numpy()).log_odds
    np.testing.assert_allclose(found, expected.gather(1, candidates).numpy(), atol=1e-4, rtol=0)


def test_a_file_that_is_no_network_is_refused(tmp_path: Path) -> None:
    (tmp_path / GRAPH).write_bytes(b"no network")
    with pytest.raises(ModelFolderError, match="ONNX Runtime"):
        OnnxScorer.load(tmp_path / GRAPH, LABELS)
