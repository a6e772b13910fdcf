"""Encoders with a linear head: they read as label-query does, and no capsules follow."""

import numpy as np
import pytest
import torch
from tiny_networks import LABELS, ON_A_TRANSFORMER, VOCABULARY, tiny_network, token_rows
from tiny_transformer import write_transformer

from nlpcapsule.baselines.linear_head import LinearHead
from nlpcapsule.config import Config
from nlpcapsule.networks.build import build_network

ROWS = token_rows(14, 9, 3)


def linear(head, documents):
    """The head's layer, label by label."""
    weight, bias = head.output.weight, head.output.bias
    return torch.stack([(documents * weight[j]).sum(dim=1) + bias[j] for j in range(LABELS)], dim=1)


def read_by_label_query(network, encoder, **settings):
    """Token states and their mask, by a label-query that has the network's encoder."""
    theirs = tiny_network("label-query", encoder=encoder, **settings)
    known = {f"document.{name}": tensor for name, tensor in network.state_dict().items()}
    reading = {name for name in theirs.state_dict() if name.startswith(("document.en", "document.em"))}
    assert reading <= known.keys()
    theirs.load_state_dict({name: known[name] for name in reading}, strict=False)
    return theirs.eval().document.encoder(ROWS)


@torch.no_grad()
def test_convolution_linear_takes_the_maximum_over_label_querys_states():
    network = tiny_network("convolution-linear")
    states, mask = read_by_label_query(network, "convolution")
    documents = torch.stack([row[real].amax(dim=0) for row, real in zip(states, mask, strict=True)])
    torch.testing.assert_close(network(ROWS).logits, linear(network.head, documents))


@torch.no_grad()
@pytest.mark.parametrize("window", [14, 6])
def test_transformer_linear_takes_the_mean_of_label_querys_states(window, tmp_path):
    folder = str(write_transformer(tmp_path / "bert", vocabulary_size=VOCABULARY))
    settings = {"encoder": folder, "window": window, "max_tokens": 14}
    config = Config.build("labels", "transformer-linear", overrides=settings)
    network = build_network(config, VOCABULARY, label_count=LABELS).eval()
    states, mask = read_by_label_query(network, folder, window=window, max_tokens=14)
    documents = torch.stack([row[real].mean(dim=0) for row, real in zip(states, mask, strict=True)])
    torch.testing.assert_close(network(ROWS).logits, linear(network.head, documents))


@torch.no_grad()
def test_embedding_linear_embeds_as_sentence_transformers_does():
    """Mean over all tokens, special ones too, then length 1; here times the root of the size."""
    pytest.importorskip("transformers")
    network = tiny_network("embedding-linear")
    expected = []
    for row in ROWS:
        states = network.encoder.transformer(row[row != 0].unsqueeze(0)).last_hidden_state[0]  # (l, h)
        mean = states.mean(dim=0)
        expected.append(mean / mean.norm() * 4)  # h = 16
    documents = torch.stack(expected)
    torch.testing.assert_close(network.embed(ROWS), documents, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(network(ROWS).logits, linear(network.head, documents), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_embedding_linear_reads_what_lies_behind_its_first_window():
    pytest.importorskip("transformers")
    network = tiny_network("embedding-linear", window=6)
    other = ROWS[:1].clone()
    other[0, 11] = other[0, 11] % (VOCABULARY - 1) + 1
    assert not torch.allclose(network.embed(other), network.embed(ROWS[:1]), atol=1e-3)


@pytest.mark.parametrize("model", ["convolution-linear", *ON_A_TRANSFORMER])
def test_the_heads_dropout_acts_in_training_only(model):
    pytest.importorskip("transformers")
    head, documents = tiny_network(model, dropout=0.5).head, torch.ones(3, 32)
    documents = documents[:, : head.output.in_features]
    assert torch.equal(head(documents), head(documents))
    head.train()
    assert not torch.equal(head(documents), head(documents))


def test_the_transformer_of_embedding_linear_neither_learns_nor_drops_anything_out():
    pytest.importorskip("transformers")
    network = tiny_network("embedding-linear").train()
    assert torch.equal(network.embed(ROWS), network.embed(ROWS))
    learned = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    assert learned == {"head.output.weight", "head.output.bias"}


def test_a_fine_tuned_transformer_has_a_learning_rate_of_its_own():
    pytest.importorskip("transformers")
    network = tiny_network("transformer-linear", encoder_learning_rate=0.0125)
    assert network.encoder.own_rate == 0.0125


def test_labels_start_improbable():
    torch.manual_seed(0)
    head = LinearHead(16, 500, dropout=0.0)
    assert torch.sigmoid(head(torch.rand(8, 16))).max() < 0.1


@pytest.mark.parametrize("model", ["convolution-linear", *ON_A_TRANSFORMER])
def test_a_linear_model_works_alone_unless_words_are_asked_for(model):
    assert Config.build("labels", model).lexical is None
    hybrid = Config.build("labels", overrides={"network": model, "candidates": 50})
    assert (hybrid.network.name, hybrid.lexical, hybrid.inference.candidates) == (model, "auto", 50)


@pytest.mark.parametrize("model", ON_A_TRANSFORMER)
def test_a_linear_model_on_a_transformer_reads_one_window_of_minilm(model):
    config = Config.build("labels", model)
    assert config.transformer == "sentence-transformers/all-MiniLM-L6-v2"
    assert config.text.max_tokens == config.network.encoder.window


def test_every_asked_label_is_scored_by_its_own_row():
    torch.manual_seed(0)
    head = LinearHead(4, 6, dropout=0.0)
    documents, outputs = torch.randn(2, 4), np.array([[5, 0], [2, 2]])
    scores = head(documents, torch.from_numpy(outputs))
    for row, ids in enumerate(outputs):
        for column, label in enumerate(ids):
            expected = documents[row] @ head.output.weight[label] + head.output.bias[label]
            torch.testing.assert_close(scores[row, column], expected)
