"""What a batch's loss is made of."""

import numpy as np
import pytest
import torch
from tiny_runs import some_documents, tiny_config

from nlpcapsule.models.auxiliary import decoupled_softmax, divergence
from nlpcapsule.models.build import build_label_network
from nlpcapsule.models.losses import label_loss
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.prepared_labels import prepare_labels

ROWS = np.arange(6)


def task_and_network(**settings):
    config = tiny_config(**settings)
    data = prepare_labels(some_documents(16), None, config)
    torch.manual_seed(3)
    network = build_label_network(config, data.tokenizer.size, len(data.labels), data.tokenizer.padding_id)
    return LabelTask(config, data.train, None, data.labels, data.tokenizer.padding_id), network.train()


def loss_and_scored(task, network):
    """The task's loss, and what the network returns under the same dropout with its targets."""
    torch.manual_seed(4)
    loss = task.loss(network, ROWS, (1, 2))
    torch.manual_seed(4)
    outputs = task.outputs(ROWS, (1, 2))
    ids, valid = (None if x is None else torch.from_numpy(x) for x in (outputs.ids, outputs.valid))
    tokens = torch.from_numpy(task.train.tokens.padded(ROWS, task.padding_id))
    return loss, network(tokens, ids, valid), torch.from_numpy(outputs.targets), valid


@pytest.mark.parametrize("negatives", ["all", "uniform"])
@pytest.mark.parametrize("reading", ["second-mask", "parts"])
def test_auxiliary_readings_their_divergence_and_the_ranking_join_with_their_weights(reading, negatives):
    settings = {"auxiliary": reading, "auxiliary_weight": 0.7, "consistency": 0.3, "ranking_weight": 0.2}
    task, network = task_and_network(**settings, negatives=negatives, negative_count=5)
    loss, scored, targets, valid = loss_and_scored(task, network)
    readings = scored.auxiliary
    expected = label_loss("bce", scored.logits, targets, valid)
    expected = expected + 0.2 * decoupled_softmax(scored.logits, targets, valid)
    for logits in readings:
        expected = expected + 0.7 * label_loss("bce", logits, targets, valid) / len(readings)
        expected = expected + 0.3 * divergence(scored.logits, logits, valid) / len(readings)
    torch.testing.assert_close(loss, expected)


def test_by_default_the_loss_is_that_of_the_logits_alone():
    task, network = task_and_network()
    loss, scored, targets, valid = loss_and_scored(task, network)
    assert torch.equal(loss, label_loss("bce", scored.logits, targets, valid))
