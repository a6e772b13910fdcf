"""The parts of the answer rankers against plain loops."""

import torch
from small_rankers import small_ranker, token_rows

from nlpcapsule.baselines.answers.cntn import TensorLayer, k_max_pooling
from nlpcapsule.baselines.answers.hd_lstm import circular_correlation
from nlpcapsule.baselines.answers.mv_lstm import largest_values
from nlpcapsule.baselines.answers.severyn_cnn import WideConvolution


def test_circular_correlation_equals_a_loop():
    torch.manual_seed(0)
    for size in (1, 2, 7, 8):  # odd sizes too: irfft must be told them
        q, a = torch.randn(3, size), torch.randn(3, size)
        expected = torch.zeros(3, size)
        for k in range(size):
            for i in range(size):
                expected[:, k] += q[:, i] * a[:, (k + i) % size]
        torch.testing.assert_close(circular_correlation(q, a), expected)


def test_k_max_pooling_keeps_the_order_and_fills_up_with_zeros():
    states = torch.tensor([[[3.0, -5, 4, -1, 9]], [[-2.0, -7, 8, 8, 8]]])
    valid = torch.tensor([[True, True, True, True, False], [True, True, False, False, False]])
    assert k_max_pooling(states, valid, 3).tolist() == [[[3, 4, -1]], [[-2, -7, 0]]]
    assert k_max_pooling(states, valid, 6).shape == (2, 1, 6)


def test_k_max_pooling_breaks_ties_alike_in_longer_rows():
    tied = torch.tensor([[[1.0, 2, 1]]])
    longer = torch.cat([tied, torch.zeros(1, 1, 50)], dim=-1)
    valid = torch.arange(53).view(1, -1) < 3
    assert k_max_pooling(tied, valid[:, :3], 2).tolist() == k_max_pooling(longer, valid, 2).tolist()


def test_largest_values_are_sorted_and_filled_up_with_zeros():
    table = torch.tensor([[[3.0, -5], [4, 9]]])
    valid = torch.tensor([[[True, True], [True, False]]])
    assert largest_values(table, valid, 2).tolist() == [[4, 3]]
    assert largest_values(table, valid, 5).tolist() == [[4, 3, -5, 0, 0]]


def test_tensor_layer_equals_a_loop():
    torch.manual_seed(0)
    layer = TensorLayer(4, 3, overlap_size=2)
    q, a, overlap = torch.randn(2, 4), torch.randn(2, 4), torch.rand(2, 2)
    with torch.no_grad():
        for pair in range(2):
            slices = torch.stack([q[pair] @ (layer.tensor[r] / 4) @ a[pair] for r in range(3)])
            related = torch.tanh(slices + layer.linear(torch.cat([q[pair], a[pair]])))
            expected = layer.output.weight[0] @ torch.cat([related, overlap[pair]]) + layer.output.bias[0]
            torch.testing.assert_close(layer(q, a, overlap)[pair], expected)


def test_a_wide_convolution_looks_over_both_ends():
    torch.manual_seed(0)
    layer = WideConvolution(size=2, filters=3, window=4)
    words = torch.randn(1, 2, 2)
    states, valid = layer(words, torch.tensor([[True, True]]))
    beyond = torch.zeros(3, 2)
    padded = torch.cat([beyond, words[0], beyond])
    for t in range(5):
        window = padded[t : t + 4].T  # (v, 4)
        expected = (layer.convolution.weight * window).sum(dim=(1, 2)) + layer.convolution.bias
        torch.testing.assert_close(states[0, :, t], expected)
    assert valid.tolist() == [[True] * 5]


def test_a_text_is_the_mean_of_its_words_or_of_its_bigrams():
    row = torch.tensor([[4, 9, 2, 0, 0]])
    unigrams, bigrams = (small_ranker("cnn-lr", order=order).eval() for order in (1, 2))
    with torch.no_grad():
        words = unigrams.embedding.table.weight[[4, 9, 2]]
        torch.testing.assert_close(unigrams._mean_vector(row)[0], words.mean(dim=0))
        words = bigrams.embedding.table.weight[[4, 9, 2]]
        left, right = bigrams.bigrams.weight.unbind(dim=-1)
        pairs = [torch.tanh(left @ words[t] + right @ words[t + 1] + bigrams.bigrams.bias) for t in (0, 1)]
        torch.testing.assert_close(bigrams._mean_vector(row)[0], (pairs[0] + pairs[1]) / 2)


def test_the_last_state_is_that_of_the_last_word_and_the_mean_that_of_all():
    last, mean = (small_ranker("lstm", pooling=pooling).eval() for pooling in ("last", "mean"))
    row = token_rows(5, width=9)
    with torch.no_grad():
        for network, take in ((last, lambda states: states[-1]), (mean, lambda states: states.mean(dim=0))):
            states, _ = network.of_answers.lstm(network.embedding.table(row[:, :5]))
            torch.testing.assert_close(network.of_answers(*network.words(row))[0], take(states[0]))
