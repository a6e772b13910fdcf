"""What labels' names bring to the network's vectors of labels."""

import numpy as np
import pytest
import torch
from tiny_networks import LABELS, PADDING, VOCABULARY, tiny_network, token_rows

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.networks.label_table import log_rarity

NAMES = Ragged.from_rows([[2 + label, 20] for label in range(LABELS - 1)] + [[2, 20]])
IDF = np.linspace(0.0, 3.0, VOCABULARY)  # 0 for padding
DOCUMENTS = Ragged.from_rows([[5, 6], [7, 8, 9]])
EXAMPLES = [9, 2, 2, 5, 0, 3, 2, 0, 4]


def named_network(**settings):
    network = tiny_network("label-query", **{"text.label_names": "names.json"}, **settings)
    network.read_names(NAMES, IDF, np.array(EXAMPLES), DOCUMENTS)
    return network


def without_names(named):
    """The network of the same weights that knows no names."""
    settings = {name: getattr(named.settings, name) for name in ("document_size", "routing")}
    plain = tiny_network("label-query", **settings)
    own = {k: tensor for k, tensor in named.state_dict().items() if not k.startswith(("names.", "idf"))}
    plain.load_state_dict(own)
    return plain


def likeness_by_hand(named, part, tokens):
    """γ cos(A x + a, name) (B, n), document by document."""
    vectors = named.document.encoder.embedding.table.weight
    rows = []
    for row in tokens:
        weights = torch.tensor(IDF, dtype=torch.float32)[row] * (row != PADDING)
        place = part.place((weights[:, None] * vectors[row]).sum(dim=0) / weights.sum())
        rows.append(torch.cosine_similarity(place[None], named.names.names, dim=-1))
    return part.log_gain.exp() * torch.stack(rows)


def stirred(network):
    torch.manual_seed(3)
    with torch.no_grad():
        for weights in (
            *network.labels.parameters(),
            network.names.bias,
            network.names.alone.log_gain,
            network.names.alone.place.weight,
        ):
            weights.add_(torch.randn_like(weights))
    return network


@pytest.mark.parametrize("document_size", [6, 0])
@pytest.mark.parametrize("outputs", [None, torch.tensor([4, 0]), torch.tensor([[1, 2], [4, 7]])])
def test_names_add_to_labels_with_examples_and_are_all_that_others_have(document_size, outputs):
    named, tokens = stirred(named_network(document_size=document_size)), token_rows(7, 4)
    examples = np.array(EXAMPLES)
    with torch.no_grad():
        likeness = likeness_by_hand(named, named.names.with_examples, tokens)
        weights = torch.as_tensor(1 / np.sqrt(1 + examples), dtype=torch.float32)
        joined = without_names(named)(tokens).logits + weights * likeness
        by_name = likeness_by_hand(named, named.names.alone, tokens) + named.names.bias
        expected = torch.where(torch.as_tensor(examples > 0), joined, by_name + log_rarity(examples))
        scored = named(tokens, outputs)
    if outputs is not None:
        expected, by_name = (all_.gather(1, outputs.expand(2, -1)) for all_ in (expected, by_name))
    torch.testing.assert_close(scored.logits, expected)
    torch.testing.assert_close(scored.by_name, by_name)


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
        *(f"names.{name}" for name in ("names", "has_examples", "weight", "rarity", "bias")),
        *(
            f"names.{part}.{name}"
            for part in ("with_examples", "alone")
            for name in ("log_gain", "place.bias", "place.weight")
        ),
    }


def test_what_documents_have_in_common_is_taken_away():
    network = named_network()
    vectors, weights = network.document.encoder.embedding.table.weight.detach().numpy(), IDF
    places = [np.average(vectors[row], axis=0, weights=weights[row]) for row in DOCUMENTS]
    for part in (network.names.with_examples, network.names.alone):
        assert part.place.bias.detach().numpy() == pytest.approx(-np.mean(places, axis=0), abs=1e-6)


def test_names_are_not_learned_and_own_vectors_and_projections_are():
    network = named_network().train()
    network(token_rows(9, 12), torch.tensor([0, 1, 2])).logits.square().sum().backward()
    assert not network.names.names.requires_grad
    likeness = network.names.with_examples
    for weights in (network.labels.output, network.labels.whole, likeness.place.weight, likeness.log_gain):
        assert weights.grad.abs().sum() > 0
    assert network.names.alone.log_gain.grad is None or network.names.alone.log_gain.grad == 0


def test_learning_what_names_alone_are_worth_leaves_the_rest_of_the_network_alone():
    network = named_network().train()
    network(token_rows(9, 12)).by_name.square().sum().backward()
    moved = {name for name, weights in network.named_parameters() if weights.grad is not None}
    assert moved == {
        "names.bias",
        *(f"names.alone.{name}" for name in ("log_gain", "place.bias", "place.weight")),
    }
