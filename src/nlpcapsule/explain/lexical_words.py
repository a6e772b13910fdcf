"""Estimate what each token contributes to a label in the lexical system."""

from __future__ import annotations

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.bag_of_words import BagOfWords
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.lexical.one_vs_rest import OneVsRest
from nlpcapsule.lexical.ranker import LexicalRanker
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.lexical_scorer import LexicalScorer
from nlpcapsule.scoring.models import LabelModel


def lexical_weights(model: LabelModel, tokens: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return (L', T): what each token contributes to each label, or its tf-idf weight alone.

    A linear model's contributions are exact: weight × feature, divided among the mentions of a word. Other
    systems, and systems on words that are joined from pieces, give no row, or one of tf-idf weights.

    Args:
        model: The model.
        tokens: (T,) token ids.
        labels: (L,) label ids.
    """
    scorer, ranker = model.scorer, None
    if isinstance(scorer, LexicalScorer):
        ranker = scorer.ranker
    elif isinstance(scorer, HybridScorer) and isinstance(scorer.lexical, FittedEvidence):
        if scorer.lexical.whole_words is not None:
            return np.zeros((0, len(tokens)))
        ranker = scorer.lexical.ranker
        names = scorer.lexical.name_match
        if names is not None:  # the ranker knows only labels with examples
            labels = np.searchsorted(names.with_examples, labels[names.examples[labels]])
    if isinstance(ranker, OneVsRest):
        return (
            np.stack([_linear(ranker, tokens, int(label)) for label in labels])
            if len(labels)
            else (np.zeros((0, len(tokens))))
        )
    bag = getattr(ranker, "bag", None)
    if not isinstance(ranker, LexicalRanker) or not isinstance(bag, BagOfWords):
        return np.zeros((0, len(tokens)))
    return _spread(bag, tokens, np.ones(bag.width))[None]


def _linear(ranker: OneVsRest, tokens: np.ndarray, label: int) -> np.ndarray:
    """Return (T,) contributions of tokens to a label's margin."""
    weights = ranker.weights[label].toarray()[0]  # (features,)
    return _spread(ranker.bag, tokens, weights)


def _spread(bag: BagOfWords, tokens: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (T,): each word's weighted feature, divided among its mentions."""
    features = bag.rows(Ragged.from_rows([tokens])).toarray()[0] * weights  # (features,)
    size = len(bag.idf)
    counts = np.bincount(tokens, minlength=size)
    spread = (features[:size] / np.maximum(counts, 1))[tokens]
    if bag.lead_tokens:
        lead = tokens[: bag.lead_tokens]
        counts = np.bincount(lead, minlength=size)
        spread[: len(lead)] += (features[size:] / np.maximum(counts, 1))[lead]
    return spread
