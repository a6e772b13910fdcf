"""Explain labels of a document.

A word's importance is what deleting it takes from the label's log-odds: each word is left out, and the whole
model, not only the network, scores the document again. To leave out hundreds of words of a long text would be
slow, so cheap estimates choose which ones: the linear model's exact contributions, the gradient of the
network at each token, and attention × coupling.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.errors import DataError, did_you_mean, quoted
from nlpcapsule.explain.explanation import (
    CapsuleShare,
    DocumentExplanation,
    ExplainedWord,
    LabelExplanation,
    SimilarDocument,
)
from nlpcapsule.explain.lexical_words import lexical_weights
from nlpcapsule.explain.network_words import NetworkTrace, trace_labels
from nlpcapsule.explain.sources import SourceScores, score_by_source, shares
from nlpcapsule.explain.words import Word, each_left_out, find_words
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.lexical.neighbours import SHARPNESS
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.models import LabelModel

WORDS = 10  # words named per label
_TRIED = 48  # words that are left out in turn: for each label, and in all where a text has no more
_CAPSULES = 5  # capsules named per label
_CAPSULES_OF_A_WORD = 3
_WORDS_OF_A_CAPSULE = 3
_SIMILAR = 5  # similar documents named


def explain(
    model: LabelModel,
    text: str,
    labels: Sequence[str] | None = None,
    *,
    top_k: int = 5,
    words: int = WORDS,
) -> DocumentExplanation:
    """Explain labels of a text.

    Args:
        model: The model.
        text: The text.
        labels: The labels to explain; None explains the best ones.
        top_k: Labels to explain if none are given.
        words: Words to name per label, at most.

    Raises:
        DataError: If a label is unknown.

    Example:
        >>> found = explain(model, "The street lamp is dark.", top_k=1)  # doctest: +SKIP
        >>> [word.word for word in found.labels[0].words]  # doctest: +SKIP
        ['lamp', 'street', 'dark']
    """
    located = model.tokenizer.encode_with_offsets(text, model.config.text.max_tokens)
    tokens = Ragged.from_rows([located.ids])
    chosen = _label_ids(model, tokens, labels, top_k)
    similar = _similar(model, tokens)
    end = int(located.offsets[:, 1].max(initial=0))
    if not len(chosen):
        return DocumentExplanation(text, (), similar, read_until=end)
    candidates = _candidates(model, tokens, chosen)  # (C,), the chosen labels first
    found = find_words(text, located)
    trace = NetworkTrace()
    if model.network is not None:
        trace = trace_labels(model.network, located.ids, chosen)
    tried = _tried(model, located.ids, found, chosen, trace)
    rows = each_left_out(located.ids, tried, model.tokenizer.unknown_id)
    scored = score_by_source(model, rows, candidates)
    explained = tuple(
        _explained(model, label, column, scored, tried, found, trace, words)
        for column, label in enumerate(chosen)
    )
    agreement, iterations = _routing(scored)
    return DocumentExplanation(text, explained, similar, agreement, iterations, end)


def _label_ids(model: LabelModel, tokens: Ragged, labels: Sequence[str] | None, top_k: int) -> np.ndarray:
    if labels is None:
        return model.rank_tokens(tokens, top_k).labels[0]
    for label in labels:
        if label not in model.labels:
            told = did_you_mean(label, model.labels.ids) if len(model.labels) < 10_000 else ""
            raise DataError(f"the model does not know the label {quoted(label)}", hint=told[:200] or None)
    ids = model.labels.numbers(list(dict.fromkeys(labels)), {})
    return np.array(ids, dtype=np.int64)


def _candidates(model: LabelModel, tokens: Ragged, chosen: np.ndarray) -> np.ndarray:
    """Return the labels to score: the chosen ones, and those that they compete with in a hybrid."""
    if not isinstance(model.scorer, HybridScorer):
        return chosen
    nominated = model.scorer.candidates(tokens)[0]
    return np.concatenate([chosen, nominated[~np.isin(nominated, chosen)]])


def _tried(
    model: LabelModel, tokens: np.ndarray, words: list[Word], labels: np.ndarray, trace: NetworkTrace
) -> list[Word]:
    """Return the words to leave out: those that an estimate says speak most for one of the labels."""
    if len(words) <= _TRIED:
        return words
    estimates = [*lexical_weights(model, tokens, labels)]  # rows (T,)
    if trace.gradient is not None:
        estimates += [*trace.gradient]
    if trace.attention is not None and trace.coupling is not None:
        estimates += [*(trace.coupling @ trace.attention)]  # (L, T)
    if not estimates:
        return words[:_TRIED]
    by_word = np.array([[row[list(word.positions)].sum() for word in words] for row in estimates])  # (E, W)
    each = max(4, _TRIED * len(labels) // len(estimates))
    best = np.unique(top_columns(by_word, each))
    return [words[index] for index in best]


def _explained(
    model: LabelModel,
    label: int,
    column: int,
    scored: SourceScores,
    tried: list[Word],
    found: list[Word],
    trace: NetworkTrace,
    most: int,
) -> LabelExplanation:
    log_odds = scored.log_odds[:, column]  # (1 + tried,)
    drops = log_odds[0] - log_odds[1:]  # (tried,)
    fallen = expit(log_odds[0]) - expit(log_odds[1:])
    order = [index for index in np.argsort(-drops, kind="stable") if drops[index] > 0][:most]
    titles = model.labels.names
    return LabelExplanation(
        label=model.labels.ids[label],
        name=None if titles is None else titles[label],
        probability=float(expit(log_odds[0])),
        log_odds=float(log_odds[0]),
        log_odds_by_source={name: float(rows[0, column]) for name, rows in scored.by_source.items()},
        shares=shares({name: rows[0] for name, rows in scored.by_source.items()}, column),
        words=tuple(
            ExplainedWord(
                word=tried[index].text,
                spans=tried[index].spans,
                importance=float(drops[index]),
                probability_drop=float(fallen[index]),
                by_source={
                    name: float(rows[0, column] - rows[1 + index, column])
                    for name, rows in scored.by_source.items()
                },
                capsules=_capsules_of_word(tried[index], column, trace),
            )
            for index in order
        ),
        capsules=_capsules(column, found, trace),
    )


def _capsules_of_word(word: Word, column: int, trace: NetworkTrace) -> tuple[CapsuleShare, ...]:
    """Return the capsules through which a word reached a label."""
    if trace.coupling is None or trace.attention is None:
        return ()
    carried = trace.coupling[column] * trace.attention[:, list(word.positions)].sum(axis=1)  # (m,)
    total = carried.sum()
    best = np.argsort(-carried, kind="stable")[:_CAPSULES_OF_A_WORD]
    return tuple(CapsuleShare(int(index), float(carried[index] / total)) for index in best) if total else ()


def _capsules(column: int, words: list[Word], trace: NetworkTrace) -> tuple[CapsuleShare, ...]:
    """Return the capsules that a label was routed from, with the words that they attend to."""
    if trace.coupling is None:
        return ()
    coupling = trace.coupling[column]  # (m,)
    shares_of_capsules = []
    for index in np.argsort(-coupling, kind="stable")[:_CAPSULES]:
        attended: tuple[str, ...] = ()
        if trace.attention is not None and words:
            row = trace.attention[index]  # (T,)
            weights = np.array([row[list(word.positions)].sum() for word in words])
            best = np.argsort(-weights, kind="stable")[:_WORDS_OF_A_CAPSULE]
            attended = tuple(words[place].text for place in best)
        shares_of_capsules.append(CapsuleShare(int(index), float(coupling[index]), attended))
    return tuple(shares_of_capsules)


def _routing(scored: SourceScores) -> tuple[tuple[float, ...], int | None]:
    """Return the agreement by iteration of the whole document, and how many iterations it took."""
    if scored.scores is None or scored.scores.iterations is None:
        return (), None
    agreement = scored.scores.agreement
    curve = [] if agreement is None else [float(value) for value in agreement[0] if np.isfinite(value)]
    return tuple(curve), int(scored.scores.iterations[0])


def _similar(model: LabelModel, tokens: Ragged) -> tuple[SimilarDocument, ...]:
    """Return the training documents that are most similar."""
    scorer = model.scorer
    if not isinstance(scorer, HybridScorer) or not isinstance(scorer.lexical, FittedEvidence):
        return ()
    neighbours = scorer.lexical.neighbours
    rows, cosines = neighbours.nearest(scorer.lexical.words(tokens))
    weights = cosines[0].astype(np.float64) ** SHARPNESS
    total = max(float(weights.sum()), 1e-12)
    return tuple(
        SimilarDocument(
            neighbours.name_of(int(row)),
            float(cosine),
            float(weight / total),
            tuple(model.labels.ids[label] for label in neighbours.labels[row].indices),
        )
        for row, cosine, weight in zip(rows[0][:_SIMILAR], cosines[0], weights, strict=False)
        if cosine > 0
    )
