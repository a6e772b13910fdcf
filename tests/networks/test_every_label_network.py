"""What all label networks promise, whatever their routing."""

import pytest
import torch
from tiny_networks import (
    LABELS,
    ON_A_TRANSFORMER,
    PADDING,
    ROUTED_TO_CHOSEN_LABELS,
    SCORE_CHOSEN_LABELS,
    VARIANTS,
    name_of,
    tiny_network,
    token_rows,
)

from nlpcapsule.networks.losses import label_loss


def variants(chosen):
    return pytest.mark.parametrize(("model", "settings"), chosen, ids=name_of)


every_variant = variants(VARIANTS)
every_routed_variant = variants([row for row in VARIANTS if row[0] in ROUTED_TO_CHOSEN_LABELS])
every_choosing_variant = variants([row for row in VARIANTS if row[0] in SCORE_CHOSEN_LABELS])
every_linear_variant = variants([row for row in VARIANTS if row[0].endswith("-linear")])
every_variant_with_word_vectors = variants([row for row in VARIANTS if row[0] not in ON_A_TRANSFORMER])


def logits_of(network, tokens, outputs=None, valid=None):
    with torch.no_grad():
        return network(tokens, outputs, valid).logits


def gradient_of(parameter):
    """All numbers of a gradient, also of one that holds a few rows; None without one."""
    return None if parameter.grad is None else parameter.grad.to_dense()


@every_variant
def test_gradients_are_finite_and_reach_every_parameter(model, settings):
    network = tiny_network(model, **settings).train()
    targets = torch.zeros(3, LABELS)
    targets[:, :2] = 1
    scored = network(token_rows(14, 9, 2))
    assert scored.logits.shape == (3, LABELS)
    label_loss("bce", scored.logits, targets).backward()
    for name, parameter in network.named_parameters():
        if parameter.numel() and parameter.requires_grad:
            gradient = gradient_of(parameter)
            assert gradient is not None, name
            assert gradient.isfinite().all(), name
            if not name.endswith("attention.self.key.bias"):  # it moves all of a token's attention alike
                assert gradient.any(), name


@every_variant
def test_filling_a_row_up_further_changes_nothing(model, settings):
    network = tiny_network(model, **settings)
    together = logits_of(network, token_rows(14, 9, 2, 1))
    further = logits_of(network, token_rows(14, 9, 2, 1, width=23))
    torch.testing.assert_close(further, together, atol=1e-5, rtol=0)


@every_variant
def test_a_document_scores_the_same_alone_and_among_others(model, settings):
    network = tiny_network(model, **settings)
    rows = token_rows(14, 9, 2, 1)
    together = logits_of(network, rows)
    for row, length in enumerate((14, 9, 2, 1)):
        alone = logits_of(network, rows[row : row + 1, :length])[0]
        torch.testing.assert_close(alone, together[row], atol=1e-5, rtol=0)


@every_variant
def test_different_documents_score_differently(model, settings):
    logits = logits_of(tiny_network(model, **settings), token_rows(9, 9))
    assert not torch.equal(logits[0], logits[1])


@every_variant
def test_half_precision_gives_finite_float32_logits(model, settings):
    network = tiny_network(model, **settings).train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scored = network(token_rows(14, 9, 2))
    assert scored.logits.dtype == torch.float32
    assert scored.logits.isfinite().all()
    scored.logits.sum().backward()
    assert all(gradient_of(p).isfinite().all() for p in network.parameters() if p.grad is not None)


@every_choosing_variant
def test_outputs_of_the_batch_and_of_each_document_score_the_same(model, settings):
    network = tiny_network(model, **settings)
    rows, shared = token_rows(14, 9, 2), torch.tensor([7, 2, 5])
    of_batch = logits_of(network, rows, shared)
    of_each = logits_of(network, rows, shared.expand(3, -1))
    torch.testing.assert_close(of_each, of_batch, atol=1e-5, rtol=1e-5)


@every_linear_variant
def test_without_routing_a_chosen_label_scores_as_among_all(model, settings):
    network = tiny_network(model, **settings)
    rows, outputs = token_rows(14, 9), torch.tensor([[7, 2, 5], [1, 8, 0]])
    expected = logits_of(network, rows).gather(1, outputs)
    torch.testing.assert_close(logits_of(network, rows, outputs), expected, atol=1e-5, rtol=1e-5)


@every_choosing_variant
def test_each_document_can_have_outputs_of_its_own(model, settings):
    network = tiny_network(model, **settings)
    rows, outputs = token_rows(14, 9), torch.tensor([[7, 2, 5], [1, 8, 0]])
    together = logits_of(network, rows, outputs)
    for row in range(2):
        alone = logits_of(network, rows[row : row + 1], outputs[row])
        torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=1e-5)


@every_routed_variant
def test_outputs_that_only_fill_up_have_no_part_in_the_routing(model, settings):
    network = tiny_network(model, **settings)
    rows = token_rows(14, 9)
    exact = network(rows, torch.tensor([[7, 2, 5], [1, 8, 0]]))
    outputs = torch.tensor([[7, 2, 5, 0, 0], [1, 8, 0, 0, 0]])
    valid = torch.tensor([[True, True, True, False, False]] * 2)
    filled = network(rows, outputs, valid)
    torch.testing.assert_close(filled.logits[:, :3], exact.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(filled.agreement, exact.agreement, atol=1e-5, rtol=1e-5, equal_nan=True)
    assert filled.iterations.tolist() == exact.iterations.tolist()


@every_routed_variant
def test_outputs_that_only_fill_up_leave_gradients_finite(model, settings):
    network = tiny_network(model, **settings).train()
    outputs = torch.tensor([[7, 2, 5, 0], [1, 0, 0, 0]])
    valid = torch.tensor([[True, True, True, False], [True, False, False, False]])
    targets = torch.tensor([[1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    logits = network(token_rows(14, 9), outputs, valid).logits
    label_loss("bce", logits, targets, valid).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is None or gradient_of(parameter).isfinite().all(), name


@every_routed_variant
def test_routing_reports_iterations_and_agreement_of_each_document(model, settings):
    network = tiny_network(model, **settings)
    scored = network(token_rows(14, 9, 2))
    assert scored.iterations.shape == (3,)
    assert scored.iterations.min() >= 1
    assert scored.agreement.shape == (3, int(scored.iterations.max()))


@pytest.mark.parametrize("model", ["kim-cnn", "xml-cnn", "bow-cnn", "released-xml-cnn", "convolution-linear"])
def test_networks_without_routing_report_none(model):
    scored = tiny_network(model)(token_rows(5))
    assert scored.iterations is None
    assert scored.agreement is None


@every_variant_with_word_vectors
def test_padding_has_no_vector_and_gets_no_gradient(model, settings):
    network = tiny_network(model, **settings).train()
    network(token_rows(14, 3)).logits.sum().backward()
    tables = [p for name, p in network.named_parameters() if name.endswith(".table.weight")]
    assert tables
    for table in tables:
        assert not table[PADDING].any()
        assert not table.grad[PADDING].any()
