"""Looks into the routing of a trained label model: who stops when, and what iterations are worth.

docs/routing.md says what the numbers mean and how the curves are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments, encode_documents
from nlpcapsule.diagnostics.iteration_effects import (
    TOP,
    IterationEffects,
    iteration_effects,
)
from nlpcapsule.diagnostics.varied_iterations import (
    RoutedSettings,
    lent_settings,
    with_at_most,
    with_exactly,
)
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.networks.losses import label_loss
from nlpcapsule.scoring.documents import LabelRankings, rank_documents
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.scoring.network_scorer import NetworkScorer, device_of

SYSTEM_ITERATIONS = range(1, 6)
INSTANCE_ITERATIONS = 10


@dataclass(frozen=True)
class RoutingInspection:
    """What the routing of a trained model does on N documents.

    Attributes:
        routing: The routing's name.
        iterations: (N,) iterations each document used.
        agreement: (N, T) NAS by iteration, NaN once a document has left.
        loss_by_iterations: System level: the trained network's loss per document when every document gets
            1, 2, … 5 iterations; empty where no document has a label that the model knows, or where it is
            not asked for.
        instance_agreement: (10,) instance level: NAS of one document by iteration when it may not stop.
        instance_stop: The iteration after which that document leaves; None where iterations are fixed.
        most_iterations: The most a document may take, or what all take where iterations are fixed.
    """

    routing: str
    iterations: np.ndarray | None
    agreement: np.ndarray | None
    loss_by_iterations: dict[int, float]
    instance_agreement: np.ndarray | None
    instance_stop: int | None
    most_iterations: int


def inspect_routing(model: LabelModel, documents: Sequence[Document], document: int = 0) -> RoutingInspection:
    """Routes documents as the model does, and as it would with other numbers of iterations.

    Args:
        model: A label model whose network routes.
        documents: Documents with labels.
        document: The one of the instance-level curve, counted from 0.

    Raises:
        NlpCapsuleError: The network does not route, or there is no such document.
    """
    routed_settings(model)  # before the work of tokenising
    encoded = encode_documents(documents, model.tokenizer, model.labels, model.config.text.max_tokens)
    return inspect_encoded(model, encoded, document)


def inspect_encoded(
    model: LabelModel, encoded: EncodedDocuments, document: int = 0, with_losses: bool = True
) -> RoutingInspection:
    """`inspect_routing` for documents that are token ids already.

    Args:
        model: A label model whose network routes.
        encoded: Documents in the model's own tokens and labels, no longer than it reads.
        document: The one of the instance-level curve, counted from 0.
        with_losses: Whether the system-level curve is wanted, which takes five more passes.

    Raises:
        NlpCapsuleError: The network does not route, or there is no such document.
    """
    settings = routed_settings(model)
    if not len(encoded):
        raise NlpCapsuleError("there are no documents to inspect the routing on")
    if not 0 <= document < len(encoded):
        raise NlpCapsuleError(
            f"there is no document {document + 1}: the data has {len(encoded)}, counted from 1"
        )
    candidates = model.scorer.candidates(encoded.tokens)
    most = settings.most_iterations
    # The very last iteration may go unscored, since it moves nothing: one more is asked for and left out.
    with lent_settings(model.network, with_at_most(settings, most + 1)):
        routed = _rank(model, encoded, candidates)
    with lent_settings(model.network, with_exactly(settings, INSTANCE_ITERATIONS + 1)):
        chosen = None if candidates is None else candidates[[document]]
        one = _rank(model, encoded.take([document]), chosen)
    losses = {}
    if with_losses and (encoded.labels.values < len(model.labels)).any():
        for iterations in SYSTEM_ITERATIONS:
            with lent_settings(model.network, with_exactly(settings, iterations)):
                losses[iterations] = _loss_per_document(model, encoded, candidates)
    used = None if routed.iterations is None else np.minimum(routed.iterations, most)  # (N,)
    return RoutingInspection(
        routing=settings.routing,
        iterations=used,
        agreement=None if routed.agreement is None else routed.agreement[:, :most],
        loss_by_iterations=losses,
        instance_agreement=None if one.agreement is None else one.agreement[0, :INSTANCE_ITERATIONS],
        instance_stop=int(used[document]) if used is not None and settings.is_adaptive else None,
        most_iterations=most,
    )


def effects_of_iterations(
    model: LabelModel, encoded: EncodedDocuments, iterations: np.ndarray
) -> IterationEffects:
    """What each iteration changed in the first labels of each document.

    Args:
        model: A label model whose network routes.
        encoded: Documents in the model's own tokens and labels, no longer than it reads.
        iterations: (N,) iterations each document takes.

    Raises:
        NlpCapsuleError: The network does not route.
    """
    settings = routed_settings(model)
    candidates = model.scorer.candidates(encoded.tokens)

    def rank_with(rows: np.ndarray, number: int) -> LabelRankings:
        chosen = None if candidates is None else candidates[rows]
        with lent_settings(model.network, with_exactly(settings, number)):
            return _rank(model, encoded.take(rows), chosen, TOP)

    return iteration_effects(iterations, rank_with, encoded.labels)


def routed_settings(model: LabelModel) -> RoutedSettings:
    """The settings of a network that routes; an error for any other."""
    # Those of the network and not of the configuration: a vector file may have changed the embedding's size.
    settings = getattr(model.network, "settings", None)
    if not isinstance(settings, RoutedSettings):
        raise NlpCapsuleError(
            f"the network {model.config.network.name!r} has no routing to inspect; "
            "use a model trained as hybrid, label-query, paper or official"
        )
    return settings


def _network(model: LabelModel) -> nn.Module:
    assert model.network is not None  # or there would be no routed settings
    return model.network


def _rank(
    model: LabelModel, encoded: EncodedDocuments, candidates: np.ndarray | None, top_k: int = 1
) -> LabelRankings:
    scorer = NetworkScorer(_network(model), model.tokenizer.padding_id, model.config.inference.batch_size)
    return rank_documents(scorer, encoded.tokens, top_k, candidates=candidates)


@torch.inference_mode()
def _loss_per_document(model: LabelModel, encoded: EncodedDocuments, candidates: np.ndarray | None) -> float:
    """The training loss, a mean over documents, over all labels or over each document's candidates.

    Labels that training never saw have no output, and true labels that were not nominated have none here:
    neither counts.
    """
    network, training = _network(model), model.config.training
    weight = getattr(model.config.network, "negative_weight", 1.0)
    device = device_of(network)
    order = np.argsort(encoded.tokens.lengths, kind="stable")
    batch = model.config.inference.batch_size
    sums = []
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        tokens = torch.from_numpy(encoded.tokens.padded(rows, model.tokenizer.padding_id)).to(device)
        chosen = None if candidates is None else candidates[rows]  # (B, C)
        outputs = None if chosen is None else torch.from_numpy(chosen).to(device)
        targets = torch.from_numpy(_targets(encoded, rows, chosen, len(model.labels))).to(device)
        logits = network(tokens, outputs).logits  # (B, n)
        loss = label_loss(training.loss, logits, targets, negative_weight=weight)
        sums.append(float(loss) * len(rows))
    return math.fsum(sums) / len(order)


def _targets(
    encoded: EncodedDocuments, rows: np.ndarray, chosen: np.ndarray | None, label_count: int
) -> np.ndarray:
    """(B, n) float32: 1 where an output is one of the document's own labels."""
    outputs = np.broadcast_to(np.arange(label_count), (len(rows), label_count)) if chosen is None else chosen
    return np.stack(
        [np.isin(ids, encoded.labels[int(row)]) for ids, row in zip(outputs, rows, strict=True)]
    ).astype(np.float32)
