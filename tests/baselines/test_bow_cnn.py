"""Bow-CNN: regions are bags of words; one average or maximum per filter and part of the document."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from class_constants import settings_of
from nlpcapsule.baselines.bow_cnn import BowCNN, BowCNNSettings, dynamic_average_pool
from nlpcapsule.config import Config
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.registry import NetworkInputs
from nlpcapsule.scoring.build import network_scorer
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.models import LabelModel

VOCABULARY, LABELS = 20, 5
INPUTS = NetworkInputs(VOCABULARY, label_count=LABELS)


def network_of(**settings):
    torch.manual_seed(0)
    return BowCNN(settings_of(BowCNNSettings, **{"filters": 3, **settings}), INPUTS).eval()


def scores(network, row):
    with torch.no_grad():
        return network(torch.tensor([row])).logits[0]


def averaged_in_loops(states, length, pools):
    """Position t of a document of `length` tokens is in part ⌊t·p / length⌋; an empty part gives zero."""
    parts = [[states[t] for t in range(length) if t * pools // length == part] for part in range(pools)]
    return torch.stack([torch.stack(part).mean(0) if part else torch.zeros_like(states[0]) for part in parts])


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.integers(1, 9),
    st.integers(0, 3),
    st.integers(0, 1000),
)
def test_dynamic_average_pooling_equals_a_loop(lengths, pools, extra, seed):
    width = max(lengths) + extra
    mask = torch.arange(width) < torch.tensor(lengths).unsqueeze(1)  # (B, l)
    states = torch.rand(len(lengths), width, 2, generator=torch.Generator().manual_seed(seed))
    states = states * mask.unsqueeze(-1)
    expected = torch.stack(
        [averaged_in_loops(row, length, pools) for row, length in zip(states, lengths, strict=True)]
    )
    torch.testing.assert_close(dynamic_average_pool(states, mask, pools), expected)


@pytest.mark.parametrize("pooling", ["average", "max"])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_the_chain_equals_its_equations(pooling, length):
    network = network_of(windows=(2, 5), pools=2, pooling=pooling)
    with torch.no_grad():
        for regions in network.regions:
            regions.bias.uniform_(-0.3, 0.3)
    row = torch.randint(1, VOCABULARY, (length,)).tolist()
    states = []
    with torch.no_grad():
        for t in range(length):
            state = []
            for width, regions in zip((2, 5), network.regions, strict=True):
                start = t - (width - 1) // 2
                bag = torch.zeros(VOCABULARY)  # r_t: how often the region has each word
                for place in range(max(start, 0), min(start + width, length)):
                    bag[row[place]] += 1
                state.append(torch.relu(bag @ regions.weights.table.weight + regions.bias))
            states.append(torch.cat(state))
        states = torch.stack(states)  # (l, H)
        if pooling == "average":
            pooled = averaged_in_loops(states, length, 2)
        else:
            of_part = [[s for t, s in enumerate(states) if t * 2 // length == part] for part in range(2)]
            pooled = torch.stack([torch.stack(part).amax(0) if part else torch.zeros(6) for part in of_part])
        expected = network.output.weight @ pooled.flatten() + network.output.bias
    torch.testing.assert_close(scores(network, row), expected)


def test_the_order_of_words_in_a_region_does_not_matter():
    """Every region of five around one of three words is the whole document."""
    network = network_of(windows=(5,), pools=1)
    torch.testing.assert_close(scores(network, [4, 9, 2]), scores(network, [2, 4, 9]))


def test_the_order_of_regions_in_a_document_does():
    network = network_of(windows=(1,), pools=2)
    assert not torch.allclose(scores(network, [4, 4, 9, 9]), scores(network, [9, 9, 4, 4]))


def test_word_vectors_change_nothing():
    vectors = np.ones((VOCABULARY, 7), dtype=np.float32)
    torch.manual_seed(0)
    with_vectors = BowCNN(BowCNNSettings(filters=3), replace(INPUTS, vectors=vectors)).eval()
    assert torch.equal(scores(with_vectors, [4, 9, 2]), scores(network_of(), [4, 9, 2]))


def test_a_model_trained_beside_word_vectors_can_be_opened(tmp_path):
    """The vectors' size is noted in the model folder; this network has no use for it."""
    tokenizer = WordTokenizer.train(["rain and wind and snow"], vocabulary_size=VOCABULARY, min_count=1)
    config = Config.build(model="bow-cnn", overrides={"filters": 3, "vectors": "glove.7d.txt"})
    labels = LabelVocabulary(["wet", "cold"], [2, 1])
    network = BowCNN(config.model, NetworkInputs(tokenizer.size, label_count=len(labels))).eval()
    scorer = network_scorer(config, tokenizer, network)
    saved = LabelModel(config, tokenizer, labels, scorer, ModelFacts(embedding_size=7))
    save_model(saved, tmp_path)
    assert load_model(tmp_path).rank(["wind and snow"]) == saved.rank(["wind and snow"])
    assert load_model(tmp_path).config == config


def test_dropout_acts_in_training_only():
    network = network_of(filters=16).train()
    row = torch.tensor([[4, 9, 2, 7]])
    assert not torch.equal(network(row).logits, network(row).logits)
    network.eval()
    assert torch.equal(network(row).logits, network(row).logits)
