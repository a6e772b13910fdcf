"""How `paper` starts: word vectors, features and condensed capsules fitted to the training documents."""

import numpy as np
import pytest
import torch
from tiny_networks import LENGTH, PADDING, VOCABULARY, tiny_answer_network, tiny_network, token_rows

from nlpcapsule.data.ragged import Ragged

AS_BUILT = {"frequency_weighting": 0.0, "filter_start": "independent", "condensed_length": 0.0}
TABLE, FILTERS, COMPRESSION = "embedding.table.", "convolution.", "compression."
PARTS = {"frequency_weighting": TABLE, "filter_start": FILTERS, "condensed_length": COMPRESSION}


def some_documents(count=20, seed=0):
    """Documents of few words, frequent ones and rare ones, some longer than what is read."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, VOCABULARY)
    return Ragged.from_rows(
        1 + random.choice(VOCABULARY - 1, size=random.integers(1, LENGTH + 6), p=share / share.sum())
        for _ in range(count)
    )


def copied(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def moved(network, documents):
    """The names of the weights that fitting the start changes."""
    before = copied(network)
    network.document.start_from(documents)
    return {name for name, tensor in network.state_dict().items() if not torch.equal(tensor, before[name])}


def tokens_of(documents):
    return torch.from_numpy(documents.padded(np.arange(len(documents)), PADDING))


def features_of(document, tokens):
    """One feature map per width, before the ReLU."""
    return document.convolution(document.embedding(document.convolution.fit(tokens))[0])


@torch.no_grad()
def test_features_start_at_a_root_mean_square_of_one_and_capsules_at_the_length_asked_for():
    network = tiny_network("paper", condensed_length=2.5)
    documents = some_documents()
    network.document.start_from(documents)
    tokens = tokens_of(documents)
    for features in features_of(network.document, tokens):
        assert features.square().mean().sqrt().item() == pytest.approx(1.0, rel=1e-4)
    assert network.document(tokens).norm(dim=-1).mean().item() == pytest.approx(2.5, rel=1e-4)


@torch.no_grad()
def test_word_vectors_are_weighted_by_their_frequency_in_the_training_documents():
    network, untouched = tiny_network("paper"), tiny_network("paper").document.embedding
    documents = some_documents()
    network.document.start_from(documents)
    counts = np.zeros(VOCABULARY)
    for row in documents:
        for word in row:
            counts[word] += 1
    untouched.weight_by_frequency(counts, 1e-3)
    torch.testing.assert_close(network.document.embedding.table.weight, untouched.table.weight)


@torch.no_grad()
def test_of_many_documents_some_that_lie_evenly_are_looked_at():
    network = tiny_network("paper", frequency_weighting=0.0)
    documents = some_documents(400)
    network.document.start_from(documents)
    looked_at = np.unique(np.linspace(0, 399, 128).astype(int))
    features = features_of(network.document, tokens_of(documents)[looked_at])
    assert all(each.square().mean().sqrt().item() == pytest.approx(1.0, rel=1e-4) for each in features)


def test_the_start_moves_words_filters_and_compression_and_nothing_else():
    names = moved(tiny_network("paper"), some_documents())
    assert {name for name in names if not name.startswith("document.")} == set()
    parts = (TABLE, FILTERS, COMPRESSION)
    assert all(any(part in name for part in parts) for name in names)
    assert all(any(part in name for name in names) for part in parts)


def test_with_all_switches_off_the_network_stays_as_it_was_built():
    assert moved(tiny_network("paper", **AS_BUILT), some_documents()) == set()


@pytest.mark.parametrize("switch", AS_BUILT)
def test_a_switch_that_is_off_leaves_its_part_as_it_was_built(switch):
    """The same network, fitted with and without; of two scales, the later one depends on the earlier one."""
    part = PARTS[switch]
    network = tiny_network("paper", **{switch: AS_BUILT[switch]})
    names = moved(network, some_documents())
    assert not [name for name in names if part in name]
    others = {name for name in PARTS.values() if name != part}
    assert all(any(other in name for name in names) for other in others)


def test_filters_start_apart_as_a_convolution_does_where_they_share_nothing():
    layers = tiny_network("paper", filter_start="independent").document.convolution.convolutions
    assert all(layer.weight.std(dim=1).all() and layer.bias.all() for layer in layers)
    shared = tiny_network("paper").document.convolution.convolutions
    assert all(torch.equal(layer.weight, layer.weight[:, :1].expand_as(layer.weight)) for layer in shared)


def test_without_compression_no_length_is_asked_for():
    network = tiny_network("paper", condensed=0)
    names = moved(network, some_documents())
    assert any(FILTERS in name for name in names)
    assert network(token_rows(14, 9)).logits.isfinite().all()


@pytest.mark.parametrize("training", [False, True])
def test_the_start_is_the_same_whatever_the_mode_and_the_seed(training):
    """Without dropout: a start that draws numbers would move all randomness that comes after it."""
    expected, network = tiny_network("paper"), tiny_network("paper").train(training)
    documents = some_documents()
    expected.document.start_from(documents)
    torch.manual_seed(123)
    before = torch.get_rng_state()
    network.document.start_from(documents)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training is training for module in network.modules())
    weights = network.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in expected.state_dict().items())


@torch.no_grad()
def test_answers_start_at_the_length_asked_for_too():
    network = tiny_answer_network("paper", condensed_length=2.0)
    documents = some_documents()
    network.text.capsules.start_from(documents)
    assert network.text.capsules(tokens_of(documents)).norm(dim=-1).mean().item() == pytest.approx(2.0)


def words_seen(network, tokens):
    """The word vectors (B, l, v) that reach the convolution."""
    seen = []
    handle = network.document.convolution.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        network(tokens)
    handle.remove()
    return seen[0]


def test_words_are_left_out_and_dropped_out_in_training_alone():
    tokens = token_rows(14, 14, 14, 14)
    network = tiny_network("paper", word_dropout=0.5, token_dropout=0.5)
    exact = network.document.embedding(tokens)[0]
    assert torch.equal(words_seen(network, tokens), exact)
    torch.manual_seed(0)
    assert not torch.equal(words_seen(network.train(), tokens), exact)
    plain = tiny_network("paper", word_dropout=0.0, token_dropout=0.0).train()
    assert torch.equal(words_seen(plain, tokens), exact)


def test_word_dropout_leaves_whole_words_out():
    tokens = token_rows(14, 14, 14, 14)
    network = tiny_network("paper", word_dropout=0.5, token_dropout=0.0).train()
    torch.manual_seed(0)
    seen, exact = words_seen(network, tokens), network.document.embedding(tokens)[0]
    left_out = (seen == 0).all(dim=-1)  # (B, l)
    assert 0.2 < left_out.float().mean() < 0.8
    torch.testing.assert_close(seen[~left_out], 2 * exact[~left_out])
    assert (left_out.sum(dim=0) % len(tokens) != 0).any()  # each document's own


def test_token_dropout_leaves_single_numbers_out():
    tokens = token_rows(14, 14, 14, 14)
    network = tiny_network("paper", word_dropout=0.0, token_dropout=0.5).train()
    torch.manual_seed(0)
    seen, exact = words_seen(network, tokens), network.document.embedding(tokens)[0]
    kept = seen != 0
    assert 0.4 < kept.float().mean() < 0.6
    torch.testing.assert_close(seen[kept], 2 * exact[kept])


def test_documents_that_say_nothing_about_the_scale_leave_the_start_as_it_is():
    network = tiny_network("paper", frequency_weighting=0.0)
    before = {name: weights.clone() for name, weights in network.state_dict().items()}
    with torch.no_grad():
        network.document.embedding.table.weight.zero_()  # no word has a vector: every feature is 0
    network.document.start_from(Ragged.from_rows([[1, 2], [3]]))
    for name, weights in network.state_dict().items():
        if "embedding" not in name:
            torch.testing.assert_close(weights, before[name])
