"""Networks rewritten for export give the very scores of the original."""

from __future__ import annotations

import pytest
import torch
from exported_networks import KINDS, VOCABULARY, documents, exported_kind

from nlpcapsule.errors import ConfigError
from nlpcapsule.export.exportable import (
    ExportableNetwork,
    PaddedWindows,
    TabulatedConvolution,
    exportable_encoder,
)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_equal_those_of_the_network(kind: str) -> None:
    network = exported_kind(kind)
    tokens, candidates = documents()
    with torch.inference_mode():
        expected = network(tokens, candidates).logits
        found = ExportableNetwork(network)(tokens, candidates)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        found = ExportableNetwork(network, candidates=False)(tokens)
        torch.testing.assert_close(found, network(tokens).logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_does_not_depend_on_the_padding_that_its_batch_brings(kind: str) -> None:
    exportable = ExportableNetwork(exported_kind(kind))
    tokens, candidates = documents()
    alone = torch.cat(
        [
            exportable(row[row > 0].unsqueeze(0), labels.unsqueeze(0))
            for row, labels in zip(tokens, candidates, strict=True)
        ]
    )
    torch.testing.assert_close(exportable(tokens, candidates), alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "adaptive" in kind])
def test_documents_of_the_test_stop_after_different_numbers_of_iterations(kind: str) -> None:
    tokens, candidates = documents()
    iterations = exported_kind(kind)(tokens, candidates).iterations
    assert len(set(iterations.tolist())) > 1


def test_the_network_itself_is_not_changed() -> None:
    network = exported_kind("convolution kde")
    encoder, before = network.document.encoder, {name: t.clone() for name, t in network.state_dict().items()}
    exportable = ExportableNetwork(network)
    assert network.document.encoder is encoder
    assert not network.masked_routing
    for parameter in exportable.parameters():
        parameter.zero_()
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_convolutions_whose_tables_are_too_large_stay_convolutions() -> None:
    encoder = exported_kind("convolution kde").document.encoder
    size = 4 * VOCABULARY * sum(encoder.windows) * encoder.state_size // len(encoder.windows)
    assert isinstance(exportable_encoder(encoder, size), TabulatedConvolution)
    assert type(exportable_encoder(encoder, size - 1)) is type(encoder)


@pytest.mark.parametrize("stride", [None, 4, 2])
@pytest.mark.parametrize("window", [5, 6, 40])
def test_windows_of_a_batch_have_the_states_of_the_encoders_windows(window: int, stride: int | None) -> None:
    if stride is not None and stride > window - 2:
        pytest.skip("would leave tokens out")
    encoder = exported_kind("transformer kde", window=window, stride=stride).document.encoder
    tokens, _ = documents()
    with torch.inference_mode():
        states, mask = encoder(tokens)
        found, real = PaddedWindows(encoder)(tokens)
    for document in range(len(tokens)):
        expected = states[document][mask[document]]
        torch.testing.assert_close(found[document][real[document]], expected, atol=1e-5, rtol=0)


def test_other_networks_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"Linear.*label-query"):
        ExportableNetwork(torch.nn.Linear(2, 2))
