"""Collect what the report of a label model's evaluation shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.evaluation.bootstrap import bootstrap_interval
from nlpcapsule.evaluation.label_metrics import per_document_metrics
from nlpcapsule.report.explanations import explained_words
from nlpcapsule.report.routing import RoutingInspection, inspect_encoded
from nlpcapsule.scoring.documents import RANKED, LabelRankings
from nlpcapsule.scoring.models import LabelModel

SHOWN = 5  # ranked labels that are judged
_WORST, _CONFUSED, _BINS = 8, 15, 10
_TEXT = 600  # characters of a document that are shown
_INSPECTED = 1_000  # documents whose routing is looked at


@dataclass(frozen=True)
class Confusion:
    """A label that is predicted where another one is right.

    Attributes:
        predicted: The label among the first five that is wrong.
        true: A label of these documents that is not among the first five.
        documents: Documents with both mistakes.
    """

    predicted: str
    true: str
    documents: int


@dataclass(frozen=True)
class WorstDocument:
    """A document that is tagged badly.

    Attributes:
        id: Its identifier, or its number.
        text: The beginning of its text.
        true_labels: The labels it has.
        predicted: The labels ranked first and their probabilities.
        words: Label → words that carried it, where the model can be explained.
    """

    id: str
    text: str
    true_labels: tuple[str, ...]
    predicted: tuple[tuple[str, float], ...]
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class EvaluationReport:
    """The contents of the page.

    Attributes:
        facts: About model and data.
        figures: Figure → value, as fractions of 1, with all that `evaluate` prints.
        intervals: Figure → 95% bootstrap interval over documents.
        calibration: (bins, 3) mean probability, share that is right, number of labels.
        confusions: Labels confused most.
        worst: Documents tagged worst.
        routing: How documents were routed; None where nothing is routed.
    """

    facts: dict[str, str]
    figures: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    calibration: np.ndarray
    confusions: tuple[Confusion, ...]
    worst: tuple[WorstDocument, ...]
    routing: RoutingInspection | None = None


def evaluate_for_report(
    model: LabelModel,
    documents: Sequence[Document],
    facts: dict[str, str],
    advance: Callable[[int], None] | None = None,
) -> EvaluationReport:
    """Rank the labels of documents and collect the report's contents.

    Args:
        model: The model.
        documents: Documents with labels.
        facts: To show at the top, before those of the model.
        advance: Called with the number of documents done since the last call, for progress.
    """
    encoded = model.encode_documents(documents)
    rankings = model.rank_tokens(encoded.tokens, RANKED, advance)
    each = per_document_metrics(rankings.labels, list(encoded.labels))  # of documents with labels
    facts |= {
        "version": str(model.facts.version or 1),
        "system": model.config.model.name,
        "documents": f"{len(documents):,}",
        "labels of the model": f"{len(model.labels):,}",
        "training documents": f"{model.facts.training_documents:,}",
    }
    return EvaluationReport(
        facts,
        model.evaluate(encoded, rankings),
        {name: bootstrap_interval(values) for name, values in each.items()},
        calibration_curve(rankings, encoded),
        confusions(model, rankings, documents),
        worst_documents(model, rankings, documents, each["nDCG@5"]),
        _routing(model, encoded),
    )


def calibration_curve(rankings: LabelRankings, documents: EncodedDocuments, bins: int = _BINS) -> np.ndarray:
    """Return mean probability, share that is right and size of bins of equal mass: (bins, 3)."""
    stated, right = [], []
    for labels, scores, true in zip(rankings.labels, rankings.scores, documents.labels, strict=True):
        stated.append(scores[:SHOWN])
        right.append(np.isin(labels[:SHOWN], true))
    probabilities, correct = np.concatenate(stated), np.concatenate(right)
    order = np.argsort(probabilities, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return np.array([(probabilities[part].mean(), correct[part].mean(), len(part)) for part in parts])


def confusions(
    model: LabelModel, rankings: LabelRankings, documents: Sequence[Document], count: int = _CONFUSED
) -> tuple[Confusion, ...]:
    """Count the pairs of a wrong label among the first |y| and a true label that is missing there."""
    pairs: Counter[tuple[str, str]] = Counter()
    for labels, document in zip(rankings.labels, documents, strict=True):
        first = [model.labels.ids[label] for label in labels[: min(SHOWN, len(document.labels))]]
        missing = [label for label in document.labels if label not in first]
        pairs.update((wrong, label) for wrong in first if wrong not in document.labels for label in missing)
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:count]
    return tuple(Confusion(predicted, true, number) for (predicted, true), number in ordered)


def worst_documents(
    model: LabelModel,
    rankings: LabelRankings,
    documents: Sequence[Document],
    ndcg: np.ndarray,
    count: int = _WORST,
) -> tuple[WorstDocument, ...]:
    """Return the documents with the lowest nDCG@5; among equals, those whose labels are surest.

    Args:
        model: The model.
        rankings: The ranked labels.
        documents: The documents.
        ndcg: nDCG@5 of those with labels.
        count: How many.
    """
    labelled = np.array([row for row, document in enumerate(documents) if document.labels])
    order = np.lexsort((-rankings.scores[labelled, 0], ndcg))[:count]
    found = []
    for row in labelled[order]:
        document = documents[row]
        predicted = tuple(
            (model.labels.ids[label], float(score))
            for label, score in zip(rankings.labels[row, :SHOWN], rankings.scores[row, :SHOWN], strict=True)
        )
        text = document.text if len(document.text) <= _TEXT else f"{document.text[:_TEXT]}…"
        words = explained_words(model, document.text, [label for label, _ in predicted[:1]])
        found.append(
            WorstDocument(document.id or f"document {row + 1}", text, document.labels, predicted, words)
        )
    return tuple(found)


def _routing(model: LabelModel, documents: EncodedDocuments) -> RoutingInspection | None:
    """Return how a sample of documents is routed."""
    rows = np.unique(np.linspace(0, len(documents) - 1, min(_INSPECTED, len(documents))).astype(int))
    try:
        return inspect_encoded(model, documents.take(rows))
    except NlpCapsuleError:  # the network does not route, or there is none
        return None
