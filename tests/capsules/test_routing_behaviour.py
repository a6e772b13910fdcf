"""What every routing promises: bounds, padding, adaptivity, independence of the batch, memory, precision."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_sizes import RecordSizes

from nlpcapsule.capsules.routing import ROUTINGS, adaptive_kde
from nlpcapsule.capsules.votes import PairwiseVotes, PerClassVotes

EVERY = {name: (routing, {}) for name, routing in ROUTINGS.items()} | {
    "adaptive-kde, literal": (adaptive_kde, {"literal": True}),
    "adaptive-kde, unclamped": (adaptive_kde, {"clamp_kernel": False}),
}
every_routing = pytest.mark.parametrize(("routing", "options"), EVERY.values(), ids=EVERY)


def capsules_and_transforms(documents=4, inputs=6, outputs=5, size=4, scale=1.0, per_document=False, seed=0):
    torch.manual_seed(seed)
    u = torch.randn(documents, inputs, size)
    w = torch.randn(*([documents] if per_document else []), outputs, size, size) * scale
    return u, w


@every_routing
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 1e4])
def test_everything_is_finite_and_activations_lie_below_one_at_any_scale_of_votes(routing, options, scale):
    u, w = capsules_and_transforms(scale=scale)
    u[0] = 0.0
    u, w = u.requires_grad_(), w.requires_grad_()
    routed = routing(PerClassVotes(u, w), **options)
    assert routed.activations.min() >= 0.0
    assert routed.activations.max() < 1.0
    assert routed.capsules.isfinite().all()
    assert routed.coupling.isfinite().all()
    routed.activations.sum().backward()
    assert u.grad.isfinite().all()
    assert w.grad.isfinite().all()


@every_routing
@pytest.mark.parametrize("softmax", ["standard", "leaky"])
def test_padded_outputs_change_nothing(routing, options, softmax):
    u, w = capsules_and_transforms(documents=3, outputs=6, per_document=True)
    u, w = u.double(), w.double()
    counts = [6, 3, 1]
    valid = torch.arange(6) < torch.tensor(counts)[:, None]
    w[~valid] *= 7.0  # what stands in the padding must not matter
    padded_w = w.clone().requires_grad_()
    padded = routing(PerClassVotes(u, padded_w), valid=valid, softmax=softmax, **options)
    padded.activations.sum().backward()
    assert padded.capsules[~valid].eq(0).all()
    assert padded.activations[~valid].eq(0).all()
    assert padded_w.grad[~valid].eq(0).all()
    for document, count in enumerate(counts):
        alone_w = w[document : document + 1, :count].clone().requires_grad_()
        alone = routing(PerClassVotes(u[document : document + 1], alone_w), softmax=softmax, **options)
        alone.activations.sum().backward()
        used = alone.agreement.shape[1]
        torch.testing.assert_close(padded.capsules[document, :count], alone.capsules[0])
        torch.testing.assert_close(padded.activations[document, :count], alone.activations[0])
        torch.testing.assert_close(padded.coupling[document, :, :count], alone.coupling[0])
        torch.testing.assert_close(padded.agreement[document, :used], alone.agreement[0])
        assert padded.iterations[document] == alone.iterations[0]
        torch.testing.assert_close(padded_w.grad[document, :count], alone_w.grad[0])


@given(st.integers(0, 10_000), st.integers(2, 5), st.floats(0.3, 4.0), st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_documents_result_alone_equals_its_result_in_a_batch(seed, documents, scale, per_document):
    u, w = capsules_and_transforms(documents, scale=scale, per_document=per_document, seed=seed)
    u *= torch.linspace(0.3, 2.0, documents)[:, None, None]
    u, w = u.double(), w.double()
    together = adaptive_kde(PerClassVotes(u, w))
    for document in range(documents):
        own_w = w[document : document + 1] if per_document else w
        alone = adaptive_kde(PerClassVotes(u[document : document + 1], own_w))
        assert alone.iterations[0] == together.iterations[document]
        torch.testing.assert_close(alone.capsules[0], together.capsules[document], atol=1e-5, rtol=0)
        torch.testing.assert_close(alone.coupling[0], together.coupling[document], atol=1e-5, rtol=0)


def test_documents_stop_at_different_iterations_when_votes_are_large_and_at_the_second_when_small():
    u, w = capsules_and_transforms(documents=16, inputs=12, outputs=6, scale=1.5)
    iterations = adaptive_kde(PerClassVotes(u, w)).iterations
    assert iterations.min() >= 2
    assert len(iterations.unique()) >= 3
    assert adaptive_kde(PerClassVotes(u, w * 0.02)).iterations.eq(2).all()


def test_a_document_leaves_as_soon_as_its_score_settles_and_not_before():
    u, w = capsules_and_transforms(documents=16, inputs=12, outputs=6, scale=1.5)
    routed = adaptive_kde(PerClassVotes(u, w), eps=0.05, max_iterations=10)
    for used, scores in zip(routed.iterations.tolist(), routed.agreement, strict=True):
        changes = scores[:used].diff().abs()
        assert (changes[:-1] >= 0.05).all()
        assert used == 10 or changes[-1] < 0.05
        assert scores[used:].isnan().all()


def test_no_document_exceeds_the_largest_number_of_iterations():
    u, w = capsules_and_transforms(scale=1.5)
    routed = adaptive_kde(PerClassVotes(u, w), eps=0.0, max_iterations=4)
    assert routed.iterations.eq(4).all()
    assert routed.agreement.shape == (4, 4)


def test_finished_documents_are_no_longer_computed():
    u, w = capsules_and_transforms(documents=16, inputs=12, outputs=6, scale=1.5)
    votes = PerClassVotes(u, w)
    iterations = adaptive_kde(votes).iterations
    computed = []
    inner = PerClassVotes.inner

    def counted(self, capsules):
        computed.append(capsules.shape[0])
        return inner(self, capsules)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PerClassVotes, "inner", counted)
        adaptive_kde(votes)
    assert computed == [int((iterations >= t).sum()) for t in range(1, int(iterations.max()) + 1)]


def test_the_batch_rule_stops_all_documents_together_on_the_log_of_the_mean():
    u, w = capsules_and_transforms(documents=16, inputs=12, outputs=6, scale=1.5)
    routed = adaptive_kde(PerClassVotes(u.double(), w.double()), stop_together=True)
    (used,) = routed.iterations.unique().tolist()
    means = routed.agreement.exp().mean(dim=0).log()
    changes = means.diff().abs()
    assert changes[-1] < 0.05 or used == 10
    assert (changes[:-1] >= 0.05).all()
    fixed = ROUTINGS["kde"](PerClassVotes(u.double(), w.double()), iterations=used)
    torch.testing.assert_close(routed.capsules, fixed.capsules)


def test_the_unclamped_kernel_keeps_the_log_finite_where_the_sum_is_negative():
    # The capsule lies with the longer of two opposite votes, so the kernels are about 1 and 1 - 2² = -3.
    u = torch.tensor([[[100.0], [-300.0]]])
    routed = adaptive_kde(PerClassVotes(u, torch.ones(1, 1, 1)), clamp_kernel=False)
    assert routed.agreement[0, 0] < -80.0
    assert routed.agreement[0, 0].isfinite()
    assert routed.capsules.isfinite().all()


def test_an_empty_batch_is_routed_to_nothing():
    for routing in ROUTINGS.values():
        routed = routing(PerClassVotes(torch.randn(0, 3, 4), torch.randn(5, 4, 4)))
        assert routed.capsules.shape == (0, 5, 4)


@every_routing
@pytest.mark.parametrize("per_document", [False, True])
def test_per_class_votes_are_never_formed_forward_or_backward(routing, options, per_document):
    documents, inputs, outputs, size = 3, 24, 10, 4
    u, w = capsules_and_transforms(documents, inputs, outputs, size, 1.5, per_document)
    u, w = u.requires_grad_(), w.requires_grad_()
    with RecordSizes() as sizes:
        routed = routing(PerClassVotes(u, w), **options)
        (routed.activations.sum() + routed.capsules.square().sum()).backward()
    assert max(sizes) >= documents * inputs * outputs
    assert max(sizes) < documents * inputs * outputs * size


def test_the_recorder_of_sizes_sees_votes_that_are_formed():
    u, w = torch.randn(2, 3, 4), torch.randn(5, 3, 4, 4)
    with RecordSizes() as sizes:
        ROUTINGS["kde"](PairwiseVotes(u, w))
    assert max(sizes) >= 2 * 3 * 5 * 4


@every_routing
def test_float32_is_as_good_as_float64_to_rounding(routing, options):
    u, w = capsules_and_transforms(documents=2, scale=0.4)
    single = routing(PerClassVotes(u, w), **options)
    double = routing(PerClassVotes(u.double(), w.double()), **options)
    assert single.capsules.dtype == torch.float32
    assert double.capsules.dtype == torch.float64
    torch.testing.assert_close(single.capsules.double(), double.capsules, atol=1e-4, rtol=1e-4)


@every_routing
def test_autocast_does_not_lower_a_routings_precision(routing, options):
    u, w = capsules_and_transforms(documents=2, scale=0.7)
    plain = routing(PerClassVotes(u, w), **options)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = routing(PerClassVotes(u, w), **options)
    torch.testing.assert_close(cast.capsules, plain.capsules)
    torch.testing.assert_close(cast.agreement, plain.agreement, equal_nan=True)
