"""Change the labels of lexical features: keep the rows of old labels, train those of changed ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy import sparse

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.learning.label_changes import LabelChange
from nlpcapsule.lexical.evidence import FittedEvidence, evidence_settings
from nlpcapsule.lexical.many_labels.inverted_index import InvertedIndex
from nlpcapsule.lexical.name_match import NameMatch, word_texts
from nlpcapsule.lexical.one_vs_rest import BLOCK, Block, OneVsRest, OneVsRestSettings, fit_blocks
from nlpcapsule.lexical.ranker import Fitting, LexicalRanker, label_matrix
from nlpcapsule.lexical.sparse_rows import unit_rows
from nlpcapsule.lexical.whole_words import UNKNOWN

Advance = Callable[[int, int], None]


def changed_evidence(
    evidence: FittedEvidence,
    system: str,
    change: LabelChange,
    vocabulary: list[str],
    ignored: tuple[int, ...],
    seed: int,
    advance: Advance = lambda done, total: None,
) -> FittedEvidence:
    """Return lexical features for the changed labels and documents.

    Word weights stay those of the first training, so that kept rows stay valid.

    Args:
        evidence: The features before the change.
        system: The lexical system's name.
        change: The change.
        vocabulary: The tokenizer's.
        ignored: Ids of tokens that are not words.
        seed: The seed.
        advance: Called with (parts done, total parts), for progress.
    """
    tokens = change.documents.tokens
    words = tokens if evidence.whole_words is None else evidence.whole_words(tokens)
    rows = evidence.neighbours.documents  # those of earlier documents stay as they are
    if len(words) > rows.shape[0]:
        added = evidence.neighbours.bag.rows(words.take(range(rows.shape[0], len(words))))
        rows = sparse.vstack([rows, added], format="csr")
    neighbours = replace(
        evidence.neighbours,
        documents=rows,
        labels=change.documents.labels,
        index=None if evidence.neighbours.index is None else InvertedIndex.of_documents(rows),
        ids=change.documents.ids if any(change.documents.ids) else None,
        tokens=tokens,
    )
    documents = _taught_documents(words, change)
    ranker: LexicalRanker
    if isinstance(evidence.ranker, OneVsRest):
        features = rows if _same_words(evidence) else evidence.ranker.bag.rows(words)
        labels = label_matrix(documents.labels, len(change.taught))  # (N, n')
        ranker = _changed_rows(evidence.ranker, evidence.name_match, change, features, labels, seed, advance)
    elif change.only_renames:
        ranker = evidence.ranker
    else:  # a tree cannot take further labels; it is trained again, which is quick
        texts = vocabulary
        if evidence.whole_words is not None:
            texts, ignored = word_texts(evidence.whole_words, tokens, vocabulary), (UNKNOWN,)
        with TemporaryDirectory() as place:
            fitting = Fitting(texts, len(change.taught), ignored, seed, Path(place), advance)
            settings = evidence_settings(system)
            ranker = settings.ranker.fit(settings, documents, fitting)
    names = None if evidence.name_match is None else _changed_names(evidence.name_match, change)
    return replace(evidence, ranker=ranker, neighbours=neighbours, name_match=names)


def _taught_documents(words: Ragged, change: LabelChange) -> EncodedDocuments:
    """Return the documents with the labels that the lexical system ranks, numbered among these."""
    labels = change.documents.labels[:, change.taught].tocsr()
    return EncodedDocuments(words, _rows_of_ids(labels))


def _rows_of_ids(labels: sparse.csr_matrix) -> Ragged:
    return Ragged(labels.indices.astype(np.int32), labels.indptr.astype(np.int64))


def _same_words(evidence: FittedEvidence) -> bool:
    """Return whether the lexical system and the search for similar documents weigh words alike."""
    assert isinstance(evidence.ranker, OneVsRest)
    bag = evidence.ranker.bag
    return not bag.lead_tokens and np.array_equal(bag.idf, evidence.neighbours.bag.idf)


def _changed_rows(
    ranker: OneVsRest,
    names: NameMatch | None,
    change: LabelChange,
    features: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    seed: int,
    advance: Advance,
) -> OneVsRest:
    """Keep the rows of old labels and train those of new and changed ones on all documents."""
    place = np.arange(len(ranker.bias)) if names is None else np.cumsum(names.examples) - 1  # old label → row
    kept = np.full(len(change.taught), -1)  # (n',) the old row of each taught label, or -1
    for row, label in enumerate(change.taught):
        source = change.sources[label]
        has_row = len(source) == 1 and (names is None or names.examples[source[0]])
        if has_row and not change.refit[label]:
            kept[row] = place[source[0]]
    centroids = None
    if ranker.centroids is not None:
        centroids = InvertedIndex.of_labels(features, labels, len(ranker.bag.idf))
    trained = np.flatnonzero(kept < 0)
    if not len(trained):
        return replace(ranker, weights=ranker.weights[kept], bias=ranker.bias[kept], centroids=centroids)
    settings = evidence_settings("one-vs-rest")
    assert isinstance(settings, OneVsRestSettings)
    weights, bias = _fit_rows(features, labels.tocsc()[:, trained], settings, seed, advance)
    if centroids is not None:
        own = InvertedIndex(centroids.weights[trained])
        weights = next(own.added_to([weights], labels.getnnz(axis=0)[trained]))
    stacked = sparse.vstack([ranker.weights, weights], format="csr")
    kept[trained] = len(ranker.bias) + np.arange(len(trained))
    bias = np.concatenate([ranker.bias, bias])[kept]
    return replace(ranker, weights=stacked[kept], bias=bias, centroids=centroids)


def _fit_rows(
    features: sparse.csr_matrix,
    targets: sparse.csc_matrix,
    settings: OneVsRestSettings,
    seed: int,
    advance: Advance,
) -> Block:
    """Train labels (N, n') on tf-idf rows (N, V); return weights (n', V) and bias (n',)."""
    features, label_count = features.astype(np.float64), targets.shape[1]
    starts = range(0, label_count, BLOCK)
    blocks = ((start, targets[:, start : start + BLOCK], None) for start in starts)
    parts = {}
    for start, part in fit_blocks(features, blocks, len(starts), settings, seed):
        parts[start] = part
        advance(len(parts), len(starts))
    weights = sparse.vstack([parts[start][0] for start in starts], format="csr")
    return weights, np.concatenate([parts[start][1] for start in starts])


def _changed_names(names: NameMatch, change: LabelChange) -> NameMatch:
    """Keep the names of old labels; a new label has none, and a merged one keeps those of all its parts."""
    ends = np.append(names.offsets[1:], names.forms.shape[0])
    nothing = names.forms.shape[0]  # an empty row after all forms
    rows: list[int] = []
    offsets = []
    for source in change.sources:
        offsets.append(len(rows))
        rows += [row for label in source for row in range(names.offsets[label], ends[label])] or [nothing]
    empty = sparse.csr_matrix((1, names.forms.shape[1]), dtype=names.forms.dtype)
    forms = sparse.vstack([names.forms, empty], format="csr")[rows]
    return replace(
        names, forms=forms, offsets=np.array(offsets, dtype=np.int64), examples=change.labels.counts > 0
    )


def label_centroids(evidence: FittedEvidence) -> sparse.csr_matrix:
    """Return the mean tf-idf row of each label's documents, scaled to length 1: (n, V)."""
    return unit_rows(evidence.neighbours.labels.T.tocsr() @ evidence.neighbours.documents)
