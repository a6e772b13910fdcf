"""Networks rewritten for export give the very scores of the original."""

from __future__ import annotations

import pytest
import torch
from exported_networks import KINDS, VOCABULARY, documents, exported_kind, unpadded_documents

from nlpcapsule.capsules.routing.label_query import route_labels
from nlpcapsule.errors import ConfigError
from nlpcapsule.export.exportable import (
    EvenWindows,
    ExportableNetwork,
    PlainConvolution,
    TabulatedConvolution,
    exportable_encoder,
)
from nlpcapsule.export.pooling import pool_in_8_bits, pooled_maximum
from nlpcapsule.networks.query_routing import largest_states


@pytest.mark.parametrize("kind", KINDS)
def test_scores_equal_those_of_the_network(kind: str) -> None:
    network = exported_kind(kind)
    exportable, over_all = ExportableNetwork(network), ExportableNetwork(network, candidates=False)
    for tokens, candidates in unpadded_documents():
        expected = network(tokens, candidates).logits
        torch.testing.assert_close(exportable(tokens, candidates), expected, atol=1e-5, rtol=0)
        torch.testing.assert_close(over_all(tokens), network(tokens).logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 255, 256, 257, 600])
def test_the_maximum_of_states_is_the_same_in_parts(length: int) -> None:
    states = torch.randn(3, length, 5, generator=torch.Generator().manual_seed(length)) - 2
    mask = torch.arange(length) < torch.tensor([length, (length + 1) // 2, 1])[:, None]
    assert torch.equal(pooled_maximum(states, None), largest_states(states, None))
    assert torch.equal(pooled_maximum(states, mask), largest_states(states, mask))


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 10.0])
def test_states_pooled_in_8_bits_are_nearly_the_same(sharpness: float) -> None:
    generator = torch.Generator().manual_seed(1)
    scores = sharpness * torch.randn(2, 300, 8, generator=generator)
    states = 5 * torch.randn(2, 300, 6, generator=generator).relu()
    expected = scores.softmax(dim=1).transpose(1, 2) @ states
    torch.testing.assert_close(pool_in_8_bits(scores, states), expected, atol=0.15, rtol=0)
    assert pool_in_8_bits(scores, 0 * states).abs().max() == 0  # a text of unknown words


def test_the_table_rows_of_a_word_are_side_by_side() -> None:
    encoder = exported_kind("convolution kde").document.encoder
    table = TabulatedConvolution(encoder).table.table
    words = encoder.embedding.table.weight.detach()  # (V, v)
    row = 5 * sum(encoder.windows)
    for width, convolution in zip(encoder.windows, encoder.convolutions, strict=True):
        for offset in range(width):
            expected = convolution.weight[:, :, offset] @ words[5]
            bias = convolution.bias if offset == (width - 1) // 2 else 0
            torch.testing.assert_close(table[row], expected + bias)
            row += 1


def test_a_table_of_8_bits_gives_nearly_the_same_scores() -> None:
    network = exported_kind("convolution kde")
    exportable = ExportableNetwork(network, int8=True)
    assert exportable.network.document.encoder.table.table.dtype == torch.int8
    for tokens, candidates in unpadded_documents():
        expected = network(tokens, candidates).logits
        torch.testing.assert_close(exportable(tokens, candidates), expected, atol=0.05, rtol=0)


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
    assert network.route_labels is route_labels
    for parameter in exportable.parameters():
        parameter.zero_()
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_a_convolution_whose_table_is_too_large_stays_one() -> None:
    encoder = exported_kind("convolution kde").document.encoder
    size = 4 * VOCABULARY * sum(encoder.windows) * encoder.state_size // len(encoder.windows)
    assert isinstance(exportable_encoder(encoder, table_limit=size), TabulatedConvolution)
    assert isinstance(exportable_encoder(encoder, int8=True, table_limit=size // 4), TabulatedConvolution)
    plain = exportable_encoder(encoder, table_limit=size - 1)
    assert isinstance(plain, PlainConvolution)
    tokens = documents()[0][:1]
    torch.testing.assert_close(plain(tokens)[0], encoder(tokens)[0])


@pytest.mark.parametrize("stride", [None, 4, 2])
@pytest.mark.parametrize("window", [3, 5, 6, 40])
def test_windows_have_the_states_of_the_encoders_windows(window: int, stride: int | None) -> None:
    if stride is not None and stride > window - 2:
        pytest.skip("would leave tokens out")
    encoder = exported_kind("transformer kde", window=window, stride=stride).document.encoder
    for tokens, _ in unpadded_documents():
        states, mask = encoder(tokens)
        found, real = EvenWindows(encoder)(tokens)
        torch.testing.assert_close(found[real], states[mask], atol=1e-5, rtol=0)
        assert not found[~real].any()


def test_other_encoders_are_refused_by_name() -> None:
    class OtherEncoder(torch.nn.Module):
        pass

    with pytest.raises(ConfigError, match="OtherEncoder"):
        exportable_encoder(OtherEncoder())


def test_other_networks_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"Linear.*label-query"):
        ExportableNetwork(torch.nn.Linear(2, 2))
