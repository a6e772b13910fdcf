"""Measure whether explanations are faithful: does a label fall when the words that are named are deleted?

For each document the best label is explained, ten words are deleted with all their mentions, and the model
scores the document again, against the same candidates. The fall of the label's probability is compared with
deleting ten random words, random words with as many mentions, the ten words of the largest tf-idf weight, and
the ten words that the estimates inside the explanation name on their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from nlpcapsule.data.documents import Document
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import TokensInText
from nlpcapsule.evaluation.bootstrap import bootstrap_interval, paired_bootstrap, resampled_means
from nlpcapsule.explain import explain
from nlpcapsule.explain.lexical_words import lexical_weights
from nlpcapsule.explain.network_words import trace_labels
from nlpcapsule.explain.words import Word, find_words, without
from nlpcapsule.lexical.bag_of_words import BagOfWords
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.scoring.models import LabelModel

WORDS = 10
DRAWS = 5  # of random words per document
_FEWEST = 3 * WORDS  # different words of a document, so that random words are not the named ones
NAMED, RANDOM, MATCHED, HEAVIEST = (
    "named words",
    "random words",
    "random, as many mentions",
    "tf-idf heaviest",
)


@dataclass(frozen=True)
class Case:
    """One document and its best label.

    Attributes:
        model: The model.
        text: The text.
        tokens: Its tokens.
        words: Its different words.
        label: The id of its best label.
    """

    model: LabelModel
    text: str
    tokens: TokensInText
    words: list[Word]
    label: int

    def deleted(self, sets: Sequence[Sequence[Word]]) -> np.ndarray:
        """Return how much the label's probability falls without each set of words: (sets,)."""
        ids, fill = self.tokens.ids, self.model.tokenizer.unknown_id
        rows = Ragged.from_rows([ids, *(without(ids, words, fill) for words in sets)])
        nominated = self.model.scorer.candidates(Ragged.from_rows([ids]))
        labels = np.array([self.label]) if nominated is None else nominated[0]
        column = int(np.flatnonzero(labels == self.label)[0])
        candidates = np.ascontiguousarray(np.broadcast_to(labels, (len(rows), len(labels))))
        scored = self.model.scorer.score(rows, candidates)
        probability = expit(scored.log_odds[:, column])
        return probability[0] - probability[1:]

    def best(self, weights: np.ndarray) -> list[Word]:
        """Return the ten words with the largest sums of token weights (T,)."""
        sums = np.array([weights[list(word.positions)].sum() for word in self.words])
        return [self.words[index] for index in np.argsort(-sums, kind="stable")[:WORDS]]


def faithfulness(
    model: LabelModel,
    documents: Sequence[Document],
    seed: int = 1,
    advance: Callable[[int], None] = lambda count: None,
) -> dict[str, Any]:
    """Return the mean fall of the best label's probability by what was deleted, with 95% intervals.

    Args:
        model: A label model.
        documents: Documents that it was not trained on.
        seed: Of the random words.
        advance: Called with the number of documents done since the last call.
    """
    random = np.random.default_rng(seed)
    bag = _bag(model, documents)
    rows: list[dict[str, float]] = []
    for document in documents:
        case = _case(model, document.text)
        if case is not None:
            rows.append(_falls(case, bag, random))
        advance(1)
    if not rows:
        return {"documents": 0}
    falls = {name: np.array([row[name] for row in rows if name in row]) for name in rows[0]}
    return {
        "documents": len(rows),
        "too short": len(documents) - len(rows),
        "words": WORDS,
        "fall": {name: _mean(values) for name, values in falls.items()},
        "named / random": _ratio(falls[NAMED], falls[RANDOM]),
        "named / random, as many mentions": _ratio(falls[NAMED], falls[MATCHED]),
        "named - tf-idf heaviest": _difference(falls[NAMED], falls[HEAVIEST]),
    }


def _case(model: LabelModel, text: str) -> Case | None:
    """Return the case of a text; None if it is too short."""
    tokens = model.tokenizer.encode_with_offsets(text, model.config.text.max_tokens)
    words = find_words(text, tokens)
    if len(words) < _FEWEST:
        return None
    label = int(model.rank_tokens(Ragged.from_rows([tokens.ids]), 1).labels[0, 0])
    return Case(model, text, tokens, words, label)


def _falls(case: Case, bag: BagOfWords, random: np.random.Generator) -> dict[str, float]:
    label = case.model.labels.ids[case.label]
    (found,) = explain(case.model, case.text, [label], words=WORDS).labels
    spans = {word.spans for word in found.words}
    named = [word for word in case.words if word.spans in spans]
    mentions = sum(len(word.spans) for word in named)
    sets = {NAMED: [named], HEAVIEST: [case.best(_tf_idf(bag, case.tokens.ids))]}
    sets |= {name: [case.best(weights)] for name, weights in _estimates(case).items()}
    sets[RANDOM] = [_drawn(case.words, random) for _ in range(DRAWS)]
    sets[MATCHED] = [_drawn_mentions(case.words, mentions, random) for _ in range(DRAWS)]
    falls = iter(case.deleted([words for each in sets.values() for words in each]))
    return {name: float(np.mean([next(falls) for _ in each])) for name, each in sets.items()}


def _estimates(case: Case) -> dict[str, np.ndarray]:
    """Return the estimates inside an explanation, each as weights (T,) of the tokens."""
    ids, label = case.tokens.ids, np.array([case.label])
    weights = {}
    linear = lexical_weights(case.model, ids, label)
    if len(linear):
        weights["linear model alone"] = linear[0]
    if case.model.network is not None:
        trace = trace_labels(case.model.network, ids, label)
        if trace.gradient is not None:
            weights["gradient × input alone"] = trace.gradient[0]
        if trace.attention is not None and trace.coupling is not None:
            weights["attention × coupling alone"] = trace.coupling[0] @ trace.attention
    return weights


def _drawn(words: Sequence[Word], random: np.random.Generator) -> list[Word]:
    return [words[index] for index in random.choice(len(words), WORDS, replace=False)]


def _drawn_mentions(words: Sequence[Word], mentions: int, random: np.random.Generator) -> list[Word]:
    """Return random words until they have as many mentions."""
    chosen: list[Word] = []
    for index in random.permutation(len(words)):
        if sum(len(word.spans) for word in chosen) >= mentions:
            break
        chosen.append(words[index])
    return chosen


def _bag(model: LabelModel, documents: Sequence[Document]) -> BagOfWords:
    """Return the tf-idf weights of the training part, or of the documents where the model has none."""
    lexical = getattr(model.scorer, "lexical", None)
    if isinstance(lexical, FittedEvidence) and lexical.whole_words is None:
        return lexical.neighbours.bag
    tokens = model.encode([document.text for document in documents])
    ignored = (model.tokenizer.padding_id, model.tokenizer.unknown_id)
    return BagOfWords.fit(tokens, model.tokenizer.size, ignored)


def _tf_idf(bag: BagOfWords, tokens: np.ndarray) -> np.ndarray:
    """Return the tf-idf weight of each token's word (T,), divided among its mentions."""
    weights = bag.rows(Ragged.from_rows([tokens])).toarray()[0]
    return (weights / np.maximum(np.bincount(tokens, minlength=len(weights)), 1))[tokens]


def _mean(values: np.ndarray) -> dict[str, float]:
    low, high = bootstrap_interval(values)
    return {"mean": round(float(values.mean()), 4), "low": round(low, 4), "high": round(high, 4)}


def _difference(ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    found = paired_bootstrap(ours, theirs)
    return {"mean": round(found.difference, 4), "low": round(found.low, 4), "high": round(found.high, 4)}


def _ratio(ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    """Return the ratio of two means and its 95% interval over documents."""
    resamples, seed = 10_000, 0  # the same seed draws the same documents for both
    ratios = resampled_means(ours, resamples, seed) / resampled_means(theirs, resamples, seed)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return {
        "mean": round(float(ours.mean() / theirs.mean()), 2),
        "low": round(float(low), 2),
        "high": round(float(high), 2),
    }
