"""Steps that label and answer training share: hold-out split, word vectors, threshold tuning."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.data.vectors import load_vectors
from nlpcapsule.encoders.transformer import encoder_tokenizer
from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.thresholds import best_threshold
from nlpcapsule.scoring.documents import LabelRankings
from nlpcapsule.scoring.models import LabelModel

MOST_HELD_OUT = 5_000  # documents: enough for a few dozen fusion weights, at half a gigabyte of memory


def hold_out(items: Sequence[Any], fraction: float, seed: int) -> tuple[list[Any], list[Any]]:
    """Split items into a training and a held-out part, both in the original order."""
    chosen = rows_to_hold_out(len(items), fraction, seed)
    kept = [item for index, item in enumerate(items) if index not in chosen]
    return kept, [item for index, item in enumerate(items) if index in chosen]


def rows_to_hold_out(count: int, fraction: float, seed: int) -> set[int]:
    """Return a random fraction of the numbers below `count`."""
    size = max(1, round(count * fraction))
    if count - size < 1:
        raise DataError(f"{count} rows are too few to hold {fraction:.0%} of them out")
    return set(np.random.default_rng(seed).permutation(count)[:size].tolist())


def known_rows_to_hold_out(labels: Sequence[Sequence[str]], fraction: float, seed: int) -> set[int]:
    """Return rows to hold out, of documents with these labels, that leave a document of every label.

    There may be fewer than the fraction, and there are at most `MOST_HELD_OUT`.

    Documents without labels are held out like others: where there are many, predicted labels are less often
    right, and the part that probabilities are fitted on must reflect that.
    """
    left = Counter(label for row in labels for label in set(row))
    wanted = min(round(len(labels) * fraction), MOST_HELD_OUT)
    chosen: set[int] = set()
    for index in np.random.default_rng(seed).permutation(len(labels)).tolist():
        own = set(labels[index])
        if len(chosen) < wanted and all(left[label] > 1 for label in own):
            left.subtract(own)
            chosen.add(index)
    return chosen


@dataclass(frozen=True)
class DocumentPart:
    """The documents of some rows, or all others; read again for each iteration and never all kept."""

    documents: Iterable[Document]
    rows: set[int]
    inside: bool  # False: the documents of all other rows

    def __iter__(self) -> Iterator[Document]:
        return (document for row, document in enumerate(self.documents) if (row in self.rows) == self.inside)


def given_tokenizer(config: Config) -> WordTokenizer | None:
    """Return the tokenizer of the configuration or of its transformer; None without either."""
    if config.transformer is not None:
        return encoder_tokenizer(config.transformer, config.text.tokenizer)
    return WordTokenizer.from_file(config.text.tokenizer) if config.text.tokenizer else None


def starting_vectors(config: Config, tokenizer: WordTokenizer, notes: list[str]) -> np.ndarray | None:
    """Return the configured word vectors (V, v), or None; add the number of words found to the notes."""
    if not config.text.vectors:
        return None
    vectors, found = load_vectors(
        config.text.vectors, tokenizer.vocabulary, tokenizer.padding_id, config.training.seed
    )
    notes.append(
        f"word vectors: {found:,} of {tokenizer.size:,} words found ({found / tokenizer.size:.1%}), "
        f"{vectors.shape[1]} numbers each"
    )
    return vectors


def tuned(model: LabelModel, rankings: LabelRankings, dev: EncodedDocuments) -> LabelModel:
    """Return a model with the threshold that is best on held-out documents, as ranked, and its metrics."""
    objective = model.config.inference.threshold_for
    threshold = best_threshold(rankings.scores, rankings.labels, list(dev.labels), objective)
    model = replace(model, facts=replace(model.facts, threshold=threshold))
    metrics = model.evaluate(dev, replace(rankings, unused=None))
    return replace(model, facts=replace(model.facts, dev=metrics))
