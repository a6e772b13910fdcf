"""Convolutions by distinct words: those of torch, in training and prediction, and only where they pay off."""

import pytest
import torch
from torch import nn

from nlpcapsule.encoders import convolution as convolution_module
from nlpcapsule.encoders.convolution import ConvolutionEncoder, ConvolutionSettings, DistinctWords
from nlpcapsule.registry import NetworkInputs

TOKENS = torch.tensor([[3, 1, 2, 3, 3], [2, 2, 4, 0, 0], [1, 0, 0, 0, 0]])  # 0: padding


@pytest.mark.parametrize("width", [1, 2, 3, 5, 9])
def test_sums_of_rows_are_a_convolution_over_time(width):
    torch.manual_seed(0)
    convolution = nn.Conv1d(4, 6, width).double()
    table = torch.randn(5, 4, dtype=torch.float64)
    table[0] = 0
    table.requires_grad_()
    weights = torch.randn(3, 5, 6, dtype=torch.float64) * (TOKENS != 0).unsqueeze(-1)
    distinct = DistinctWords.of(TOKENS, padding_id=0)
    left = (width - 1) // 2
    vectors = nn.functional.pad(table[TOKENS].transpose(1, 2), (left, width - 1 - left))
    expected = convolution(vectors).transpose(1, 2) * (TOKENS != 0).unsqueeze(-1)
    found = distinct.convolve(table[distinct.ids], convolution) * (TOKENS != 0).unsqueeze(-1)
    torch.testing.assert_close(found, expected)
    learned = [table, *convolution.parameters()]
    for each, right in zip(
        torch.autograd.grad((found * weights).sum(), learned),
        torch.autograd.grad((expected * weights).sum(), learned),
        strict=True,
    ):
        # Padding's own vector is never learned.
        torch.testing.assert_close(each[1:], right[1:])


def test_gradients_of_a_frequent_word_keep_small_contributions_under_autocast():
    tokens = torch.ones(1, 4000, dtype=torch.long)
    words = torch.ones(2, 1, requires_grad=True)
    convolution = nn.Conv1d(1, 1, 1, bias=True)
    with torch.autocast("cpu", torch.bfloat16):
        states = DistinctWords.of(tokens, padding_id=0).convolve(words, convolution)
    assert states.dtype == torch.bfloat16
    states.sum().backward()
    assert words.grad[1].item() == pytest.approx(4000 * convolution.weight.item(), rel=1e-4)


@pytest.fixture
def encoder():
    torch.manual_seed(1)
    settings = ConvolutionSettings(embedding_size=4, windows=(1, 3), filters=2, token_dropout=0.0)
    return ConvolutionEncoder(settings, NetworkInputs(vocabulary_size=50))


def encodings(encoder: ConvolutionEncoder, tokens: torch.Tensor, monkeypatch) -> list[list[torch.Tensor]]:
    """States and the embedding's gradient, by distinct words and as a convolution."""
    results = []
    for fewest in (0, 10**9):
        monkeypatch.setattr(convolution_module, "FEWEST_VALUES", fewest)
        encoder.zero_grad()
        states, mask = encoder(tokens)
        (states * torch.arange(states.numel()).view_as(states)).sum().backward()
        results.append([states.detach(), mask, encoder.embedding.table.weight.grad.clone()])
    return results


def test_states_and_gradients_of_large_batches_are_those_of_small_ones(encoder, monkeypatch):
    tokens = torch.randint(0, 5, (4, 7))
    by_words, by_positions = encodings(encoder.train(), tokens, monkeypatch)
    for found, expected in zip(by_words, by_positions, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("mode", "is_inference", "word_count", "is_by_words"),
    [
        ("training", False, 5, True),
        ("prediction", True, 5, True),
        ("an export or an explanation", False, 5, False),
        ("training", False, 50, False),  # hardly a word is repeated
    ],
)
def test_distinct_words_are_used_where_words_are_repeated(
    encoder, monkeypatch, mode, is_inference, word_count, is_by_words
):
    monkeypatch.setattr(convolution_module, "FEWEST_VALUES", 0)
    calls = []
    original = DistinctWords.convolve
    monkeypatch.setattr(
        DistinctWords, "convolve", lambda self, *args: calls.append(1) or original(self, *args)
    )
    encoder.train(mode == "training")
    with torch.inference_mode(is_inference):
        encoder(torch.arange(40).remainder(word_count).view(4, 10))
    assert bool(calls) == is_by_words
