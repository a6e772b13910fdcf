"""The paper's network, exported, scores as it does in torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from nlpcapsule.config import Config
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ConfigError
from nlpcapsule.export.exportable import ExportableNetwork
from nlpcapsule.export.onnx_file import GRAPH, write_onnx
from nlpcapsule.export.onnx_scorer import OnnxScorer
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.paper import PaperNetwork

WORDS, LABELS, LENGTH = 40, 9, 14
SIZES = {"embedding_size": 12, "filters": 3, "windows": (2, 4), "condensed": 6, "capsule_size": 4}
ROUTINGS = ("adaptive-kde", "adaptive-kde-literal", "kde", "dynamic", "em", "kde-em")


def paper_network(routing: str, votes: str) -> PaperNetwork:
    """A network whose weights are large enough for documents to stop at different iterations."""
    torch.manual_seed(1)
    settings = {**SIZES, "routing": routing, "votes": votes, "text.max_tokens": LENGTH}
    network = build_network(Config.build("labels", "paper", overrides=settings), WORDS, label_count=LABELS)
    assert isinstance(network, PaperNetwork)
    with torch.no_grad():
        if votes == "pair":
            network.transform.rows.mul_(10_000)
        network.document.compression.weight.mul_(6)
        network.document.embedding.table.weight.mul_(torch.linspace(0.1, 4, WORDS)[:, None])
    return network.eval()


def documents() -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids (12, 14) with padding, and candidates (12, 4)."""
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(1, WORDS, (12, LENGTH), generator=generator)
    for row, length in zip(tokens, (LENGTH, 9, 5, 2, 1), strict=False):
        row[length:] = 0
    return tokens, torch.randint(0, LABELS, (12, 4), generator=generator)


@pytest.mark.parametrize("votes", ["pair", "class"])
@pytest.mark.parametrize("routing", ROUTINGS)
def test_scores_equal_those_of_the_network(routing: str, votes: str) -> None:
    # In float64: EM amplifies what processors round differently in float32.
    network, (tokens, candidates) = paper_network(routing, votes).double(), documents()
    exportable, over_all = ExportableNetwork(network), ExportableNetwork(network, candidates=False)
    expected = network(tokens, candidates)
    if routing.startswith("adaptive"):
        assert len(set(expected.iterations.tolist())) > 1
    pairs = [(row[row > 0][None], labels[None]) for row, labels in zip(tokens, candidates, strict=True)]
    found = torch.cat([exportable(row, labels) for row, labels in pairs])
    torch.testing.assert_close(found, expected.logits, atol=1e-6, rtol=0)
    every = torch.cat([over_all(row) for row, _ in pairs])
    torch.testing.assert_close(every, network(tokens).logits, atol=1e-6, rtol=0)


def test_8_bits_are_refused() -> None:
    with pytest.raises(ConfigError, match="float32 only"):
        ExportableNetwork(paper_network("kde", "pair"), int8=True)


@pytest.mark.slow
@pytest.mark.parametrize("votes", ["pair", "class"])
@pytest.mark.parametrize("routing", ROUTINGS)
def test_onnx_logits_are_those_of_torch_within_a_ten_thousandth(
    routing: str, votes: str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    network, (tokens, candidates) = paper_network(routing, votes), documents()
    write_onnx(network, tmp_path)
    rows = Ragged.from_rows(row[row > 0].numpy() for row in tokens)
    found = OnnxScorer.load(tmp_path / GRAPH, LABELS).score(rows, candidates.numpy()).log_odds
    np.testing.assert_allclose(found, network(tokens, candidates).logits.detach().numpy(), atol=1e-4, rtol=0)
