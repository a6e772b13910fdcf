"""Score labels and split their log-odds by part of the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.scoring.fusion import CandidateFeatures, Fusion, competes
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.lexical_scorer import LexicalScorer, select_log_odds
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.scoring.scorer import Scores

# What each column of φ is about, in the order of `CandidateFeatures.expanded`.
_COLUMNS = ("network", "lexical", "neighbours", "prior") * 3 + ("name",) * 12 + ("network", "prior")


@dataclass(frozen=True)
class SourceScores:
    """Log-odds of C labels of N documents, as sums over the parts of a model.

    Attributes:
        by_source: Part → (N, C) summands.
        scores: The network's own output; None without a network.
    """

    by_source: dict[str, np.ndarray]
    scores: Scores | None = None

    @property
    def log_odds(self) -> np.ndarray:
        """(N, C)."""
        return np.sum(list(self.by_source.values()), axis=0)


def score_by_source(model: LabelModel, tokens: Ragged, labels: np.ndarray) -> SourceScores:
    """Score the same labels in all documents.

    Args:
        model: The model.
        tokens: N rows of token ids.
        labels: (C,) label ids.
    """
    scorer, candidates = model.scorer, np.broadcast_to(labels, (len(tokens), len(labels)))
    if isinstance(scorer, HybridScorer):
        ranked = scorer.lexical.top(tokens, len(model.labels))
        lexical = select_log_odds(*ranked, candidates)
        features, scored = scorer.features(tokens, np.ascontiguousarray(candidates), lexical)
        return SourceScores(fused_parts(scorer.fusion, features), scored)
    if isinstance(scorer, LexicalScorer):
        return SourceScores({"lexical": scorer.score(tokens, candidates).log_odds})
    if model.config.network.scores_candidates:
        scored = scorer.score(tokens, np.ascontiguousarray(candidates))
        return SourceScores({"network": scored.log_odds.astype(np.float64)}, scored)
    scored = scorer.score(tokens)
    everywhere = np.broadcast_to(scored.labels, scored.log_odds.shape)
    chosen = select_log_odds(*_sorted(everywhere, scored.log_odds), candidates)
    return SourceScores({"network": chosen.astype(np.float64)}, scored)


def fused_parts(fusion: Fusion, features: CandidateFeatures) -> dict[str, np.ndarray]:
    """Return the summands (N, C) of the fused log-odds by the part of the model they come from."""
    expanded = features.expanded()  # (N, C, F)
    shown = competes(expanded @ fusion.first)[..., None]  # (N, C, 1) g
    weighted = fusion.slope * expanded * (fusion.first + shown * (fusion.weights - fusion.first))
    named = _COLUMNS[: expanded.shape[-1]]
    sums = {
        source: weighted[..., [name == source for name in named]].sum(-1) for source in dict.fromkeys(named)
    }
    return sums | {"prior": sums["prior"] + fusion.offset}


def shares(contributions: dict[str, np.ndarray], column: int) -> dict[str, float]:
    """Return the part of each source in what lifts a label above the average candidate, adding up to 1.

    Args:
        contributions: Source → (C,) summands of the candidates' log-odds.
        column: The label among the candidates.
    """
    lifts = {name: max(0.0, float(row[column] - row.mean())) for name, row in contributions.items()}
    total = sum(lifts.values())
    if not total:  # no better than average by any source
        return dict.fromkeys(lifts, 1 / len(lifts))
    return {name: lift / total for name, lift in lifts.items()}


def _sorted(labels: np.ndarray, log_odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order labels (N, C) from the highest log-odds to the lowest."""
    order = np.argsort(-log_odds, axis=1, kind="stable")
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(log_odds, order, axis=1)
