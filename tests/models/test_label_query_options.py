"""What `label-query` can do beyond its defaults: votes, auxiliary readings, dropped capsules."""

import pytest
import torch
from tiny_networks import LABELS, tiny_config, tiny_network, token_rows

from nlpcapsule.capsules.routing.label_query import KERNEL_GAIN
from nlpcapsule.errors import ConfigError
from nlpcapsule.models.auxiliary import silencing
from nlpcapsule.models.label_query import kept_capsules
from nlpcapsule.models.losses import label_loss

STILL = {"token_dropout": 0, "capsule_dropout": 0}
VOTES = ["slot", "factored", "gated"]
READINGS = ["first-coupling", "second-mask", "explained", "parts"]
OPTIONS = [
    *({"votes": votes, "routing": routing} for votes in VOTES for routing in ("dot", "kde", "adaptive-kde")),
    *({"auxiliary": reading} for reading in READINGS),
    {"auxiliary": "first-coupling", "votes": "factored", "document_size": 0},
    {"capsule_drop": 0.5},
    {"capsule_drop": 0.5, "condensed": 0},
]
every_option = pytest.mark.parametrize(
    "settings", OPTIONS, ids=lambda row: "-".join(f"{key}={value}" for key, value in row.items())
)


def seeded(seed=0, **settings):
    torch.manual_seed(seed)
    return tiny_network("label-query", **settings)


def apart(**settings):
    """A network whose capsules differ, as after some training, and whose labels like different ones."""
    network = seeded(**settings)
    with torch.no_grad():
        network.document.compress_query.mul_(100.0)
        network.slot.normal_(generator=torch.Generator().manual_seed(8))
        network.bias.normal_(generator=torch.Generator().manual_seed(9))
    return network


def logits_of(network, tokens, outputs=None, valid=None):
    with torch.no_grad():
        return network(tokens, outputs, valid).logits


@every_option
def test_gradients_reach_every_parameter_and_are_finite(settings):
    network = seeded(**settings).train()
    targets = torch.zeros(3, LABELS)
    targets[:, :2] = 1
    scored = network(token_rows(14, 9, 2))
    sum(label_loss("bce", logits, targets) for logits in (scored.logits, *scored.auxiliary)).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@every_option
def test_a_document_scores_the_same_alone_and_among_others(settings):
    network = seeded(**settings)
    rows = token_rows(14, 9, 2, 1)
    together = logits_of(network, rows)
    for row, length in enumerate((14, 9, 2, 1)):
        alone = logits_of(network, rows[row : row + 1, :length])[0]
        torch.testing.assert_close(alone, together[row], atol=1e-5, rtol=0)


@pytest.mark.parametrize("routing", ["dot", "kde"])
@pytest.mark.parametrize("votes", VOTES)
def test_a_label_scores_the_same_whichever_others_are_asked_for(votes, routing):
    network = seeded(votes=votes, routing=routing)
    rows, shared = token_rows(14, 9, 2), torch.tensor([7, 2])
    every = logits_of(network, rows)  # (B, n)
    torch.testing.assert_close(logits_of(network, rows, shared), every[:, shared])
    own = torch.tensor([[7, 2], [0, 1], [8, 3]])
    torch.testing.assert_close(logits_of(network, rows, own), every.gather(1, own))


@every_option
def test_half_precision_gives_finite_float32_logits(settings):
    network = seeded(**settings).train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scored = network(token_rows(14, 9, 2))
    for logits in (scored.logits, *scored.auxiliary):
        assert logits.dtype == torch.float32
        assert logits.isfinite().all()
    sum(logits.sum() for logits in (scored.logits, *scored.auxiliary)).backward()
    assert all(p.grad.isfinite().all() for p in network.parameters() if p.grad is not None)


@pytest.mark.parametrize("votes", VOTES)
def test_other_votes_leave_all_other_weights_as_they_start(votes):
    plain, other = seeded().state_dict(), seeded(votes=votes).state_dict()
    assert set(plain) < set(other)
    assert all(torch.equal(value, other[name]) for name, value in plain.items())


def test_slots_that_transform_nothing_leave_the_logits_as_they_are():
    rows = token_rows(14, 9, 2)
    assert torch.equal(logits_of(seeded(votes="slot"), rows), logits_of(seeded(), rows))


@pytest.mark.parametrize("reading", READINGS)
def test_an_auxiliary_reading_is_for_training_and_changes_no_logit(reading):
    rows = token_rows(14, 9, 2)
    plain, network = seeded(), seeded(auxiliary=reading)
    assert network(rows).auxiliary == ()
    assert plain.train()(rows).auxiliary == ()
    torch.manual_seed(1)
    expected = plain(rows).logits
    torch.manual_seed(1)
    scored = network.train()(rows)
    assert torch.equal(scored.logits, expected)
    assert [logits.shape for logits in scored.auxiliary] == [(3, LABELS)] * (2 if reading == "parts" else 1)


def readings(network, rows, outputs=None, valid=None):
    with torch.no_grad():
        return network.train()(rows, outputs, valid)


def test_the_reading_before_routing_is_that_of_one_iteration():
    rows = token_rows(14, 9, 2)
    first = apart(**STILL, auxiliary="first-coupling", routing="kde")
    one = apart(**STILL, iterations=1, routing="kde")
    scored = readings(first, rows)
    torch.testing.assert_close(scored.auxiliary[0], logits_of(one, rows))
    assert (scored.auxiliary[0] - scored.logits).abs().max() > 1e-3


def test_a_second_mask_is_the_same_reading_under_other_dropout():
    rows = token_rows(14, 9, 2)
    still = readings(seeded(**STILL, auxiliary="second-mask"), rows)
    torch.testing.assert_close(still.auxiliary[0], still.logits)
    dropped = readings(seeded(token_dropout=0, capsule_dropout=0.5, auxiliary="second-mask"), rows)
    assert not torch.equal(dropped.auxiliary[0], dropped.logits)


def test_parts_add_up_to_the_logit():
    network = apart(**STILL, auxiliary="parts")
    scored = readings(network, token_rows(14, 9, 2))
    torch.testing.assert_close(sum(scored.auxiliary) - network.bias, scored.logits)


def test_explained_capsules_are_silenced_for_all_labels():
    network = apart(**STILL, auxiliary="explained", iterations=1, routing="kde")
    with torch.no_grad():
        rows = token_rows(14, 9, 2)
        scored = readings(network, rows)
        capsules, _ = network.document.condense(*network.document.states(rows))
        b = network.query @ network.key(capsules).transpose(1, 2) + network.slot
        kept = (b.exp() * torch.exp(-silencing(b, scored.logits))).transpose(1, 2)  # (B, m, n)
        v = ((kept / kept.sum(dim=1, keepdim=True)).transpose(1, 2)) @ capsules  # (B, n, d)
        expected = (network.mlp(v) * network.output).sum(dim=-1) + network.bias
        expected = expected + network.whole(*network.document.states(rows), network.whole.output)
    torch.testing.assert_close(scored.auxiliary[0], expected)
    assert (scored.auxiliary[0] - scored.logits).abs().max() > 1e-3


def test_dropped_capsules_have_no_part_in_training_and_all_do_afterwards():
    rows = token_rows(14, 9, 2)
    network, plain = apart(**STILL, capsule_drop=0.5, routing="kde"), apart(**STILL, routing="kde")
    assert torch.equal(logits_of(network, rows), logits_of(plain, rows))
    torch.manual_seed(1)
    dropped = readings(network, rows).logits
    torch.manual_seed(1)
    capsules, _ = plain.document.condense(*plain.document.states(rows))
    kept = kept_capsules(capsules, None, 0.5)
    assert 0 < kept.float().mean() < 1
    assert (dropped - logits_of(plain, rows)).abs().max() > 1e-3
    for b in range(3):  # a document that has only the kept capsules
        with torch.no_grad():
            few = capsules[b, kept[b]]
            logits = plain.query @ plain.key(few).T + plain.slot[:, kept[b]]
            for _ in range(3):
                v = logits.softmax(dim=-1) @ few
                kernel = (1 - torch.cdist(v, few).square() / 8).clamp(min=0)
                logits = logits + KERNEL_GAIN * plain.gate * kernel
            expected = (plain.mlp(v) * plain.output).sum(dim=-1) + plain.bias
            expected = expected + plain.whole(*plain.document.states(rows[b : b + 1]), plain.whole.output)[0]
        torch.testing.assert_close(dropped[b], expected, atol=1e-5, rtol=1e-5)


def test_every_document_keeps_a_real_capsule_and_about_the_asked_part():
    torch.manual_seed(0)
    kept = kept_capsules(torch.zeros(400, 50, 2), None, 0.3)
    assert kept.float().mean().item() == pytest.approx(0.7, abs=0.02)
    mask = torch.arange(6) < torch.tensor([[1], [3]] * 50)
    kept = kept_capsules(torch.zeros(100, 6, 2), mask, 0.99)
    assert (kept & mask).any(dim=1).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"votes": "slot", "condensed": 0}, "model.votes='slot'.*set model.condensed above 0"),
        ({"auxiliary": "parts", "document_size": 0}, "set model.document_size above 0"),
        ({"consistency": 1.0}, "set model.auxiliary"),
    ],
)
def test_options_that_could_do_nothing_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        tiny_config("label-query", **settings)


@pytest.mark.parametrize("votes", ["factored", "gated"])
def test_votes_are_compared_at_the_scale_of_the_capsules(votes):
    network = apart(votes=votes, routing="adaptive-kde", bandwidth=2.0)
    network.vote_scale.log_spread.fill_(0.7)
    with torch.no_grad():
        network.transform.label.zero_()  # each capsule is its own vote
        capsules, _ = network.document.condense(*network.document.states(token_rows(14, 9)))
        compared = network._compared(capsules, network._votes(capsules, None), None)
        expected = network.vote_scale(capsules).square().sum(dim=-1)  # (B, m)
    torch.testing.assert_close(compared.squared_norm(), expected.unsqueeze(1).expand(-1, LABELS, -1))
