"""What labels' names bring to the network's vectors of labels."""

import numpy as np
import pytest
import torch
from tiny_networks import LABELS, PADDING, VOCABULARY, tiny_network, token_rows
from tiny_transformer import CLS, PAD, SEP, write_transformer

from nlpcapsule.dataset.ragged import Ragged
from nlpcapsule.models import label_table
from nlpcapsule.models.label_table import log_rarity, mean_states, mean_word_vectors, to_unit_length
from nlpcapsule.models.transformer_encoder import TransformerEncoder

NAMES = Ragged.from_rows([[2 + label, 20] for label in range(LABELS - 1)] + [[2, 20]])
IDF = np.linspace(0.0, 3.0, VOCABULARY)  # 0 for padding
DOCUMENTS = Ragged.from_rows([[5, 6], [7, 8, 9]])
EXAMPLES = [9, 2, 2, 5, 0, 3, 2, 0, 4]


def named_network(**settings):
    network = tiny_network("label-query", **{"text.label_names": "names.json"}, **settings)
    network.read_names(NAMES, IDF, np.array(EXAMPLES), DOCUMENTS)
    return network


def by_hand(named, known, tokens, outputs=None):
    """A network without names in which unknown labels have no vectors, and γ cos(A x, name) added to it."""
    settings = {name: getattr(named.settings, name) for name in ("document_size", "routing")}
    plain = tiny_network("label-query", **settings)
    state, table, known = named.state_dict(), named.names, torch.as_tensor(known)
    own = {name: tensor for name, tensor in state.items() if not name.startswith(("names.", "idf"))}
    for name in ("query", "output", "slot", *(["whole.output"] if named.whole is not None else [])):
        own[name] = own[name] * known[:, None]
    rarer = torch.as_tensor(np.array(EXAMPLES) == 0) * log_rarity(np.array(EXAMPLES))
    own["bias"] = torch.where(known, own["bias"], table.bias + rarer)
    plain.load_state_dict(own)
    vectors = named.document.embedding.table.weight
    likeness = []
    for row in tokens:
        weights = torch.tensor(IDF, dtype=torch.float32)[row] * (row != PADDING)
        place = table.place((weights[:, None] * vectors[row]).sum(dim=0) / weights.sum())
        likeness.append(torch.cosine_similarity(place[None], table.names, dim=-1))
    likeness = table.gain * torch.stack(likeness)  # (B, n)
    if outputs is not None:
        likeness = likeness.gather(1, outputs.expand(len(tokens), -1))
    return plain(tokens, outputs).logits + likeness


def stirred(network):
    torch.manual_seed(3)
    with torch.no_grad():
        whole = [] if network.whole is None else [network.whole.output]
        for weights in (
            network.query,
            network.output,
            network.slot,
            network.bias,
            network.names.bias,
            *whole,
        ):
            weights.add_(torch.randn_like(weights))
    return network


@pytest.mark.parametrize("document_size", [6, 0])
@pytest.mark.parametrize("outputs", [None, torch.tensor([4, 0]), torch.tensor([[1, 2], [8, 3]])])
def test_logits_are_those_of_a_network_without_names_and_the_likeness(document_size, outputs):
    named, tokens = stirred(named_network(document_size=document_size)), token_rows(7, 4)
    with torch.no_grad():
        expected = by_hand(named, np.array(EXAMPLES) > 0, tokens, outputs)
        torch.testing.assert_close(named(tokens, outputs).logits, expected)


def test_labels_without_examples_differ_by_their_names_alone():
    network = stirred(named_network())
    network.read_names(
        Ragged.from_rows([[2, 20]] * 8 + [[3, 20]]), IDF, np.zeros(LABELS, dtype=int), DOCUMENTS
    )
    with torch.no_grad():
        logits = network(token_rows(9, 12)).logits
    torch.testing.assert_close(logits[:, :8], logits[:, :1].expand(-1, 8))
    assert (logits[:, 0] - logits[:, 8]).abs().min() > 1e-3


def test_a_network_with_names_starts_from_the_weights_of_one_without():
    plain, named = tiny_network("label-query").state_dict(), named_network().state_dict()
    assert all(torch.equal(named[name], tensor) for name, tensor in plain.items())


def test_without_names_there_is_nothing_new_in_a_network():
    keys = tiny_network("label-query").state_dict().keys()
    assert not [key for key in keys if "names" in key]
    assert named_network().state_dict().keys() - keys == {
        "idf",
        *(f"names.{name}" for name in ("names", "has_examples", "rarity", "bias", "gain", "place.bias")),
        "names.place.weight",
    }


def test_what_documents_have_in_common_is_taken_away():
    network = named_network()
    vectors, weights = network.document.embedding.table.weight.detach().numpy(), IDF
    places = [np.average(vectors[row], axis=0, weights=weights[row]) for row in DOCUMENTS]
    assert network.names.place.bias.detach().numpy() == pytest.approx(-np.mean(places, axis=0), abs=1e-6)


def test_names_are_not_learned_and_own_vectors_and_projections_are():
    network = named_network().train()
    network(token_rows(9, 12)).logits.square().sum().backward()
    assert not network.names.names.requires_grad
    for weights in (network.output, network.whole.output, network.names.place.weight, network.names.gain):
        assert weights.grad.abs().sum() > 0


def test_in_training_some_labels_are_left_with_their_names(monkeypatch):
    network = stirred(named_network(capsule_dropout=0, token_dropout=0, routing="kde")).train()
    tokens = token_rows(9, 12)
    monkeypatch.setattr(label_table, "FORGOTTEN", 1.0)
    with torch.no_grad():
        expected = by_hand(network, np.zeros(LABELS, dtype=bool), tokens)
        torch.testing.assert_close(network(tokens).logits, expected)
        monkeypatch.setattr(label_table, "FORGOTTEN", 0.0)
        expected = by_hand(network, np.array(EXAMPLES) > 0, tokens)
        torch.testing.assert_close(network(tokens).logits, expected)


def test_word_vectors_are_weighed_by_idf():
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]], dtype=np.float32)
    words = Ragged.from_rows([[0, 1], [1], [2]])
    means = mean_word_vectors(words, vectors, np.array([3.0, 1.0, 0.0]))
    assert means.tolist() == [[0.75, 0.25], [0, 1], [0, 0]]


def test_what_all_names_share_is_taken_away_before_they_are_scaled():
    scaled = to_unit_length(np.array([[5.0, 3.0], [5.0, -1.0], [0.0, 0.0], [5.0, 1.0]]))
    assert scaled.tolist() == [[0, 1], [0, -1], [0, 0], [0, 0]]


def test_a_transformers_names_do_not_depend_on_their_company(tmp_path):
    encoder = TransformerEncoder(str(write_transformer(tmp_path)), 10, PAD, 12)
    rows = [[CLS, 5, 6, 7, SEP], [CLS, 8, SEP]]
    together = mean_states(Ragged.from_rows(rows), encoder)
    alone = np.concatenate([mean_states(Ragged.from_rows([row]), encoder) for row in rows])
    assert together == pytest.approx(alone, abs=1e-5)
    with torch.no_grad():
        states = encoder(torch.tensor(rows[:1]), torch.ones(1, 5, dtype=torch.bool))
    assert together[0] == pytest.approx(states[0].mean(dim=0).numpy(), abs=1e-5)
