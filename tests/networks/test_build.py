"""From a configuration to a network."""

import numpy as np
import pytest
import torch
from tiny_networks import (
    LABELS,
    ON_A_TRANSFORMER,
    SIZES,
    VOCABULARY,
    tiny_answer_network,
    tiny_config,
    tiny_network,
    token_rows,
)

from nlpcapsule.baselines.bow_cnn import BowCNN
from nlpcapsule.baselines.cap_zhao import CapZhao
from nlpcapsule.baselines.convolution_linear import ConvolutionLinear
from nlpcapsule.baselines.embedding_linear import EmbeddingLinear
from nlpcapsule.baselines.official import OfficialNetwork
from nlpcapsule.baselines.released_xml_cnn import ReleasedXMLCNN
from nlpcapsule.baselines.transformer_linear import TransformerLinear
from nlpcapsule.baselines.xml_cnn import XMLCNN
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.kim_cnn import KimCNN
from nlpcapsule.networks.label_query import LabelQueryNetwork
from nlpcapsule.networks.paper import PaperNetwork

CLASSES = {
    "label-query": LabelQueryNetwork,
    "paper": PaperNetwork,
    "official": OfficialNetwork,
    "kim-cnn": KimCNN,
    "xml-cnn": XMLCNN,
    "bow-cnn": BowCNN,
    "released-xml-cnn": ReleasedXMLCNN,
    "cap-zhao": CapZhao,
    "convolution-linear": ConvolutionLinear,
    "transformer-linear": TransformerLinear,
    "embedding-linear": EmbeddingLinear,
}


@pytest.mark.parametrize("model", list(SIZES))
def test_a_name_stands_for_a_class(model):
    assert type(tiny_network(model)) is CLASSES[model]


@pytest.mark.parametrize("model", list(SIZES))
def test_weights_depend_on_the_seed_alone(model):
    torch.manual_seed(99)
    first = tiny_network(model).state_dict()
    torch.manual_seed(11)
    again, other = tiny_network(model).state_dict(), tiny_network(model, seed=2).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("size", [12, 24])
@pytest.mark.parametrize("model", [model for model in SIZES if model not in ("bow-cnn", *ON_A_TRANSFORMER)])
def test_word_vectors_of_another_size_are_kept_and_shorter_ones_filled_up(model, size):
    vectors = np.random.default_rng(0).normal(size=(VOCABULARY, size)).astype(np.float32)
    network = tiny_network(model, vectors=vectors)
    table = next(p for name, p in network.named_parameters() if name.endswith("embedding.table.weight"))
    assert table.shape == (VOCABULARY, max(size, SIZES[model]["embedding_size"]))
    assert torch.equal(table[1:, :size], torch.from_numpy(vectors[1:]))
    assert table[1:, size:].all()
    assert network(token_rows(9)).logits.shape == (1, LABELS)


@pytest.mark.parametrize("size", [12, 24])
@pytest.mark.parametrize("model", ["label-query", "paper"])
def test_answer_networks_start_from_seed_and_vectors_too(model, size):
    first, again = tiny_answer_network(model).state_dict(), tiny_answer_network(model).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    vectors = np.ones((VOCABULARY, size), dtype=np.float32)
    network = build_network(tiny_config(model, "answers"), VOCABULARY, vectors=vectors)
    capsules = network.text.capsules
    embedding = capsules.embedding if model == "paper" else capsules.encoder.embedding
    assert embedding.size == max(size, SIZES[model]["embedding_size"])
    assert (embedding.table.weight[1:, :size] == 1).all()


def test_another_padding_token_is_respected():
    config = tiny_config("label-query")
    network = build_network(config, VOCABULARY, label_count=LABELS, padding_id=7).eval()
    with torch.no_grad():
        short = network(torch.tensor([[1, 2]])).logits
        filled = network(torch.tensor([[1, 2, 7, 7]])).logits
        zeros_are_words = network(torch.tensor([[1, 2, 0, 0]])).logits
    torch.testing.assert_close(filled, short)
    assert not torch.allclose(zeros_are_words, short)
