"""Looks into the routing of a trained label model: who stops when, and what iterations are worth.

docs/routing.md says what the numbers mean and how the curves are read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from nlpcapsule.atomic_files import atomic_text, write_text
from nlpcapsule.dataset.encoded import EncodedDocuments, encode_documents
from nlpcapsule.diagnostics.iteration_effects import (
    TOP,
    IterationEffects,
    changes_by_iteration,
    iteration_effects,
)
from nlpcapsule.diagnostics.iteration_report import (
    document_probabilities,
    document_steps,
    effects_summary,
    print_document,
    print_effects,
)
from nlpcapsule.diagnostics.plots import (
    changes_bars,
    instance_curve,
    iterations_histogram,
    probability_lines,
    system_curve,
)
from nlpcapsule.diagnostics.varied_iterations import (
    RoutedSettings,
    is_adaptive,
    lent_settings,
    most_iterations,
    with_at_most,
    with_exactly,
)
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.models.losses import label_loss
from nlpcapsule.ranking.documents import LabelRankings, device_of, rank_documents
from nlpcapsule.ranking.models import AnswerModel, LabelModel
from nlpcapsule.text.documents import Document

SYSTEM_ITERATIONS = range(1, 6)
INSTANCE_ITERATIONS = 10
_BAR = 30  # characters of the longest possible bar in the printed histogram


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
    _routed_settings(model)  # before the work of tokenising
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
    settings = _routed_settings(model)
    if not len(encoded):
        raise NlpCapsuleError("there are no documents to inspect the routing on")
    if not 0 <= document < len(encoded):
        raise NlpCapsuleError(
            f"there is no document {document + 1}: the data has {len(encoded)}, counted from 1"
        )
    candidates = model.nominate(encoded.tokens)
    most = most_iterations(settings)
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
        instance_stop=int(used[document]) if used is not None and is_adaptive(settings) else None,
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
    settings = _routed_settings(model)
    candidates = model.nominate(encoded.tokens)

    def rank_with(rows: np.ndarray, number: int) -> LabelRankings:
        chosen = None if candidates is None else candidates[rows]
        with lent_settings(model.network, with_exactly(settings, number)):
            return _rank(model, encoded.take(rows), chosen, TOP)

    return iteration_effects(iterations, rank_with, encoded.labels)


def inspect_model(
    model: LabelModel | AnswerModel, documents: Sequence[Document], folder: Path, document: int
) -> None:
    """Inspects a model's routing, prints a summary and writes plots and numbers.

    Args:
        model: A label model whose network routes.
        documents: Documents with labels.
        folder: Where plots, inspection.json and agreement.jsonl go.
        document: The document of the instance-level curves, counted from 0.

    Raises:
        NlpCapsuleError: The model ranks answers or does not route, or there is no such document.
    """
    if not isinstance(model, LabelModel):
        raise NlpCapsuleError("inspect looks into the routing of label models; this model ranks answers")
    _routed_settings(model)  # before the work of tokenising
    encoded = encode_documents(documents, model.tokenizer, model.labels, model.config.text.max_tokens)
    found = inspect_encoded(model, encoded, document)
    assert found.iterations is not None  # all networks that route count them
    effects = effects_of_iterations(model, encoded, found.iterations)
    _show(found, effects, model.labels.names, document, documents[document])
    for name, svg in _plots(found, effects, model.labels.names, document).items():
        if svg is None:
            (folder / name).unlink(missing_ok=True)  # an earlier inspection's plot would not belong here
        else:
            write_text(folder / name, svg)
    summary = _summary(found, document, documents[document]) | {"changes": effects_summary(effects)}
    write_text(folder / "inspection.json", json.dumps(summary, indent=2, allow_nan=False) + "\n")
    with atomic_text(folder / "agreement.jsonl") as file:
        for number, row in enumerate(documents):
            line = _document_line(found, number, row)
            line["steps"] = document_steps(effects, number, model.labels.names, _row(found.agreement, number))
            file.write(json.dumps(line, allow_nan=False) + "\n")
    Console().print(f"plots and numbers are in {folder}", highlight=False, markup=False, soft_wrap=True)


def _show(
    found: RoutingInspection, effects: IterationEffects, names: Sequence[str], document: int, row: Document
) -> None:
    console = Console()
    _print_summary(found, console)
    if effects.labels.shape[1] > 1:
        print_effects(effects, console)
    steps = document_steps(effects, document, names, _row(found.agreement, document))
    title = f"Document {document + 1}" + (f" ({row.id})" if row.id else "")
    print_document(steps, title, console)


def _plots(
    found: RoutingInspection, effects: IterationEffects, names: Sequence[str], document: int
) -> dict[str, str | None]:
    """File name → plot; None where there is nothing to draw."""
    changes = changes_by_iteration(effects)
    return {
        "iterations.svg": None if found.iterations is None else iterations_histogram(found.iterations),
        "agreement.svg": None
        if found.instance_agreement is None
        else instance_curve(found.instance_agreement, found.instance_stop, found.most_iterations),
        "loss.svg": system_curve(found.loss_by_iterations) if found.loss_by_iterations else None,
        "changes.svg": changes_bars(changes) if changes else None,
        "probabilities.svg": probability_lines(document_probabilities(effects, document, names)),
    }


def _row(agreement: np.ndarray | None, number: int) -> np.ndarray | None:
    return None if agreement is None else agreement[number]


def _routed_settings(model: LabelModel) -> RoutedSettings:
    # Those of the network and not of the configuration: a vector file may have changed the embedding's size.
    settings = getattr(model.network, "settings", None)
    if not isinstance(settings, RoutedSettings):
        raise NlpCapsuleError(
            f"the network {model.config.model.name!r} has no routing to inspect; "
            "use a model trained as label-query, paper or official"
        )
    return settings


def _network(model: LabelModel) -> nn.Module:
    assert model.network is not None  # or there would be no routed settings
    return model.network


def _rank(
    model: LabelModel, encoded: EncodedDocuments, candidates: np.ndarray | None, top_k: int = 1
) -> LabelRankings:
    return rank_documents(
        _network(model),
        encoded.tokens,
        top_k=top_k,
        padding_id=model.tokenizer.padding_id,
        batch=model.config.inference.batch,
        candidates=candidates,
    )


@torch.inference_mode()
def _loss_per_document(model: LabelModel, encoded: EncodedDocuments, candidates: np.ndarray | None) -> float:
    """The training loss, a mean over documents, over all labels or over each document's candidates.

    Labels that training never saw have no output, and true labels that were not nominated have none here:
    neither counts.
    """
    network, training = _network(model), model.config.training
    device, was_training = device_of(network), network.training
    network.eval()
    order = np.argsort(encoded.tokens.lengths, kind="stable")
    batch = model.config.inference.batch
    sums = []
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        tokens = torch.from_numpy(encoded.tokens.padded(rows, model.tokenizer.padding_id)).to(device)
        chosen = None if candidates is None else candidates[rows]  # (B, C)
        outputs = None if chosen is None else torch.from_numpy(chosen).to(device)
        targets = torch.from_numpy(_targets(encoded, rows, chosen, len(model.labels))).to(device)
        logits = network(tokens, outputs).logits  # (B, n)
        loss = label_loss(training.loss, logits, targets, negative_weight=training.negative_weight)
        sums.append(float(loss) * len(rows))
    network.train(was_training)
    return math.fsum(sums) / len(order)


def _targets(
    encoded: EncodedDocuments, rows: np.ndarray, chosen: np.ndarray | None, label_count: int
) -> np.ndarray:
    """(B, n) float32: 1 where an output is one of the document's own labels."""
    outputs = np.broadcast_to(np.arange(label_count), (len(rows), label_count)) if chosen is None else chosen
    return np.stack(
        [np.isin(ids, encoded.labels[int(row)]) for ids, row in zip(outputs, rows, strict=True)]
    ).astype(np.float32)


def _mean_agreement(agreement: np.ndarray) -> list[tuple[int, int, float]]:
    """Iteration, documents that took part in it, and their mean NAS."""
    columns = [(number, column[np.isfinite(column)]) for number, column in enumerate(agreement.T, start=1)]
    return [(number, len(scores), float(scores.mean())) for number, scores in columns if len(scores)]


def _summary(found: RoutingInspection, document: int, row: Document) -> dict[str, Any]:
    counts = {} if found.iterations is None else _counts(found.iterations)
    means = [] if found.agreement is None else _mean_agreement(found.agreement)
    return {
        "routing": found.routing,
        "most_iterations": found.most_iterations,
        "documents_by_iterations": {str(number): count for number, count in counts.items()},
        "mean_agreement": [
            {"iteration": number, "documents": count, "agreement": mean} for number, count, mean in means
        ],
        "loss_by_iterations": {str(number): loss for number, loss in found.loss_by_iterations.items()},
        "instance": {
            "document": document + 1,
            "id": row.id,
            "agreement": _finite_values(found.instance_agreement),
            "stop": found.instance_stop,
        },
    }


def _document_line(found: RoutingInspection, number: int, row: Document) -> dict[str, Any]:
    return {
        "document": number + 1,
        "id": row.id,
        "iterations": None if found.iterations is None else int(found.iterations[number]),
        "agreement": None if found.agreement is None else _finite_values(found.agreement[number]),
    }


def _finite_values(scores: np.ndarray | None) -> list[float] | None:
    """Scores for JSON, which has no NaN: those after a document has left are not there."""
    return None if scores is None else [float(score) for score in scores[np.isfinite(scores)]]


def _counts(iterations: np.ndarray) -> dict[int, int]:
    numbers, counts = np.unique(iterations, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def _print_summary(found: RoutingInspection, console: Console) -> None:
    fixed = found.instance_stop is None
    limit = f"{found.most_iterations} for every document" if fixed else f"at most {found.most_iterations}"
    console.print(f"routing {found.routing}, iterations: {limit}", highlight=False)
    if found.iterations is not None:
        table = _table("Iterations per document", "iterations", "documents", "share", "")
        for number, count in _counts(found.iterations).items():
            share = count / len(found.iterations)
            table.add_row(str(number), f"{count:,}", f"{share:.1%}", "█" * max(1, round(_BAR * share)))
        console.print(table)
    if found.agreement is not None:
        table = _table("Agreement (NAS), mean over documents", "iteration", "documents", "mean NAS")
        for number, count, mean in _mean_agreement(found.agreement):
            table.add_row(str(number), f"{count:,}", f"{mean:.4f}")
        console.print(table)
    if found.loss_by_iterations:
        table = _table("Loss by fixed iterations", "iterations", "loss per document")
        for number, loss in found.loss_by_iterations.items():
            table.add_row(str(number), f"{loss:.4f}")
        console.print(table)
    else:
        console.print("no document has a label that the model knows, so there is no loss to show")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    return table
