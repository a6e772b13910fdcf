"""Plan a change of labels: which labels there will be, and where the rows of each come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import DataError
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.networks.label_query import LabelQueryNetwork
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.models import AnswerModel, LabelModel


@dataclass(frozen=True, eq=False)
class KeptDocuments:
    """The training documents that a model keeps.

    Attributes:
        tokens: Token ids, as the network reads them.
        labels: (N, n) float32, sparse, of zeros and ones.
        ids: Their identifiers, where they have any.
    """

    tokens: Ragged
    labels: sparse.csr_matrix
    ids: Sequence[str | None]


@dataclass(frozen=True, eq=False)
class LabelChange:
    """The labels of the changed model.

    Attributes:
        labels: The new vocabulary, most frequent first.
        sources: For each new label the ids of the old labels that it continues: one, several where labels
            were merged, none for a new label.
        documents: The training documents, with the new labels.
        refit: (n',) bool, labels whose rows are trained again.
        learned: Rows of the documents that are new or have new labels.
    """

    labels: LabelVocabulary
    sources: tuple[tuple[int, ...], ...]
    documents: KeptDocuments
    refit: np.ndarray
    learned: np.ndarray

    @classmethod
    def plan(
        cls,
        names: list[str],
        titles: list[str] | None,
        sources: Sequence[tuple[int, ...]],
        documents: KeptDocuments,
        refit: np.ndarray,
        learned: np.ndarray | None = None,
    ) -> LabelChange:
        """Put labels into the order of a vocabulary, with counts from the documents.

        Args:
            names: The labels, in the order of the columns of `documents.labels`.
            titles: What they are called, where labels have names.
            sources: As the attribute, for `names`.
            documents: The documents.
            refit: As the attribute, for `names`.
            learned: As the attribute; None for no documents.

        Raises:
            DataError: If no label with documents is left.
        """
        counts = np.bincount(documents.labels.indices, minlength=len(names))
        if not counts.any():
            raise DataError("no label with documents would be left", hint="keep one at least")
        order = sorted(range(len(names)), key=lambda label: (-counts[label], names[label]))
        vocabulary = LabelVocabulary(
            [names[label] for label in order],
            counts[order].tolist(),
            None if titles is None else [titles[label] for label in order],
        )
        moved = replace(documents, labels=documents.labels[:, order].tocsr())
        rows = np.zeros(0, dtype=np.int64) if learned is None else learned
        return cls(vocabulary, tuple(sources[label] for label in order), moved, refit[order], rows)

    @property
    def only_renames(self) -> bool:
        """Whether every label keeps its place, rows and documents."""
        in_place = self.sources == tuple((label,) for label in range(len(self.sources)))
        return in_place and not self.refit.any() and not len(self.learned)

    @property
    def added(self) -> np.ndarray:
        """Ids of the labels that continue no old one."""
        return np.flatnonzero([not source for source in self.sources])

    @property
    def taught(self) -> np.ndarray:
        """Ids of the labels that a lexical system ranks: all except those known only by name."""
        return np.flatnonzero((self.labels.counts > 0) | (self.labels.names is None))


def hybrid_of(model: LabelModel | AnswerModel) -> tuple[HybridScorer, FittedEvidence, LabelQueryNetwork]:
    """Return the parts of a model whose labels can be changed.

    Raises:
        DataError: If the model is of another kind.
    """
    way = "train it again with the new data"
    if not isinstance(model, LabelModel):
        raise DataError("this model ranks answers and has no labels", hint=way)
    scorer = model.scorer
    if not isinstance(scorer, HybridScorer) or not isinstance(scorer.lexical, FittedEvidence):
        name = model.config.model.name
        raise DataError(
            "this hybrid had too few documents for a lexical system and did not keep them"
            if name == "hybrid"
            else f"the labels of a {name!r} model cannot be changed after training, only those of a hybrid, "
            "which keeps its training documents",
            hint=way if name == "hybrid" else f"{way}, or train a hybrid, the default",
        )
    if not isinstance(scorer.network, LabelQueryNetwork):
        raise DataError(
            f"the labels of the network {model.config.network.name!r} cannot be changed after training, only "
            "those of 'label-query'",
            hint=way,
        )
    return scorer, scorer.lexical, scorer.network


def kept_documents(evidence: FittedEvidence) -> KeptDocuments:
    """Return the training documents of a model.

    Raises:
        DataError: If the model was written before models kept them.
    """
    neighbours = evidence.neighbours
    if neighbours.tokens is None:
        raise DataError(
            "the model does not keep its training documents: an earlier version of nlpcapsule trained it",
            hint="train it again",
        )
    ids = list(neighbours.ids or ())
    ids += [None] * (len(neighbours.tokens) - len(ids))
    return KeptDocuments(neighbours.tokens, neighbours.labels, ids)
