"""Inspect the routing of a trained label model: when documents stop, and how agreement and loss change.

docs/routing.md explains the numbers and the curves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.networks.losses import label_loss
from nlpcapsule.networks.routing_choice import RoutedSettings
from nlpcapsule.scoring.documents import LabelRankings, rank_documents
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.scoring.network_scorer import NetworkScorer, device_of

SYSTEM_ITERATIONS = range(1, 6)
INSTANCE_ITERATIONS = 10


@dataclass(frozen=True)
class RoutingInspection:
    """The routing of a trained model on N documents."""

    routing: str
    iterations: np.ndarray  # (N,) that each document used
    agreement: np.ndarray  # (N, T) NAS by iteration, NaN after a document has stopped
    # System level: the loss per document when every document gets 1, 2, … 5 iterations; empty if not
    # requested, or if no document has a label that the model knows.
    loss_by_iterations: dict[int, float]
    instance_agreement: np.ndarray  # (10,) instance level: NAS of one document that cannot stop
    instance_stop: int | None  # the iteration after which that document stops; None if they are fixed
    most_iterations: int  # of a document; or the fixed number


def inspect_routing(model: LabelModel, documents: Sequence[Document], document: int = 0) -> RoutingInspection:
    """Route documents with labels as the model does, and with other numbers of iterations.

    `document` is the index, from 0, of the one for the instance-level curve.
    """
    return inspect_encoded(model, encoded_for(model, documents), document)


def encoded_for(model: LabelModel, documents: Sequence[Document]) -> EncodedDocuments:
    """Encode documents for a model whose network routes; any other model is rejected first."""
    routed_settings(model)
    return model.encode_documents(documents)


def inspect_encoded(
    model: LabelModel, encoded: EncodedDocuments, document: int = 0, with_losses: bool = True
) -> RoutingInspection:
    """Run `inspect_routing` on encoded documents; the system-level losses take five more passes."""
    settings = routed_settings(model)
    if not len(encoded):
        raise NlpCapsuleError("there are no documents to inspect the routing on")
    if not 0 <= document < len(encoded):
        raise NlpCapsuleError(
            f"there is no document {document + 1}: the data has {len(encoded)}, counted from 1"
        )
    candidates = model.scorer.candidates(encoded.tokens)
    most = settings.most_iterations
    # The last iteration may be unscored, since it changes nothing: request one more and drop it.
    with override_settings(model, settings.model_copy(update={"iterations": most + 1})):
        routed = rank_by_network(model, encoded, candidates)
    with override_settings(model, with_exactly(settings, INSTANCE_ITERATIONS + 1)):
        chosen = None if candidates is None else candidates[[document]]
        one = rank_by_network(model, encoded.take([document]), chosen)
    losses = {}
    if with_losses and (encoded.labels.values < len(model.labels)).any():
        for iterations in SYSTEM_ITERATIONS:
            with override_settings(model, with_exactly(settings, iterations)):
                losses[iterations] = _loss_per_document(model, encoded, candidates)
    assert routed.iterations is not None  # every routing counts them,
    assert routed.agreement is not None  # and scores them
    assert one.agreement is not None
    used = np.minimum(routed.iterations, most)  # (N,)
    return RoutingInspection(
        routing=settings.routing,
        iterations=used,
        agreement=routed.agreement[:, :most],
        loss_by_iterations=losses,
        instance_agreement=one.agreement[0, :INSTANCE_ITERATIONS],
        instance_stop=int(used[document]) if settings.is_adaptive else None,
        most_iterations=most,
    )


def routed_settings(model: LabelModel) -> RoutedSettings:
    """Return the settings of a network that routes; raise an error for any other."""
    # Use the network's settings: a vector file may have changed the embedding's size.
    settings = getattr(model.network, "settings", None)
    if not isinstance(settings, RoutedSettings):
        raise NlpCapsuleError(
            f"the network {model.config.network.name!r} has no routing to inspect; "
            "use a model trained as hybrid, label-query, paper or official"
        )
    return settings


def with_exactly(settings: RoutedSettings, iterations: int) -> RoutedSettings:
    """Return the same routing with a fixed number of iterations.

    Adaptive routing gets ε = 0, so that no change is small enough to stop. This is KDE routing with a fixed
    T, but unlike "kde" it keeps the differences of `adaptive-kde-literal` and `official`.
    """
    never_stops = {"epsilon": 0.0} if settings.is_adaptive else {}
    return settings.model_copy(update={"iterations": iterations, **never_stops})


@contextmanager
def override_settings(model: LabelModel, settings: RoutedSettings) -> Iterator[None]:
    """Override the settings of a model's network inside the block."""
    network = _network(model)
    own = network.settings
    network.settings = settings  # type: ignore[assignment]
    try:
        yield
    finally:
        network.settings = own


def _network(model: LabelModel) -> nn.Module:
    assert model.network is not None  # otherwise there would be no routed settings
    return model.network


def rank_by_network(
    model: LabelModel, encoded: EncodedDocuments, candidates: np.ndarray | None, top_k: int = 1
) -> LabelRankings:
    """Rank the labels of documents by the network alone, all or the given candidates (N, C)."""
    scorer = NetworkScorer(_network(model), model.tokenizer.padding_id, model.config.inference.batch_size)
    return rank_documents(scorer, encoded.tokens, top_k, candidates=candidates)


@torch.inference_mode()
def _loss_per_document(model: LabelModel, encoded: EncodedDocuments, candidates: np.ndarray | None) -> float:
    """Return the mean training loss of documents, over all labels or each document's candidates.

    Labels that training never saw and true labels that were not nominated have no output and are ignored.
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
    """Return (B, n) float32: 1 where an output is one of the document's labels."""
    outputs = np.broadcast_to(np.arange(label_count), (len(rows), label_count)) if chosen is None else chosen
    return np.stack(
        [np.isin(ids, encoded.labels[int(row)]) for ids, row in zip(outputs, rows, strict=True)]
    ).astype(np.float32)
