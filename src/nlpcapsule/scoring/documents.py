"""Ranks the labels of encoded documents: over all labels, or over candidates nominated for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.special import expit
from torch import nn

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.top_columns import top_columns

RANKED = 50  # labels kept per document for evaluation; the paper's own nDCG looks at the first 50


@dataclass(frozen=True)
class LabelRankings:
    """Ranked labels of N documents.

    Attributes:
        labels: (N, K) int64 label ids, best first.
        scores: (N, K) float32 probabilities.
        iterations: (N,) routing iterations each document took; None where nothing is routed.
        agreement: (N, T) negative agreement score by iteration, NaN once a document has left; None likewise.
        log_odds: (N, K) float32, what the probabilities were made of; None where they are all there is.
        unused: The labels that no training document has, ranked among each other; None where there are none.
    """

    labels: np.ndarray
    scores: np.ndarray
    iterations: np.ndarray | None = None
    agreement: np.ndarray | None = None
    log_odds: np.ndarray | None = None
    unused: LabelRankings | None = None


def rank_labels(
    labels: np.ndarray, log_odds: np.ndarray, top_k: int, unused: np.ndarray | None = None
) -> LabelRankings:
    """Ranks labels by their log-odds.

    Args:
        labels: (N, C) ids of each document's labels, or (C,) of all documents'.
        log_odds: (N, C).
        top_k: Labels returned per document (fewer where there are fewer).
        unused: (n,) True for labels that no training document has, which are also ranked among each other.
    """
    best = top_columns(log_odds, top_k)  # (N, K)
    chosen = np.take_along_axis(log_odds, best, axis=1)
    apart = None
    if unused is not None and unused.any():
        asked = np.broadcast_to(unused[labels], log_odds.shape)
        fewest = int(asked.sum(axis=1).min(initial=top_k))
        apart = rank_labels(labels, np.where(asked, log_odds, -np.inf), min(top_k, fewest))
    return LabelRankings(
        labels[best] if labels.ndim == 1 else np.take_along_axis(labels, best, axis=1),
        expit(chosen).astype(np.float32),
        log_odds=chosen.astype(np.float32),
        unused=apart,
    )


def device_of(network: nn.Module) -> torch.device:
    """Where a network's weights are."""
    return next(network.parameters()).device


def score_candidates(
    network: nn.Module,
    tokens: Ragged,
    candidates: np.ndarray,
    *,
    padding_id: int = 0,
    batch: int = 64,
    bf16: bool = False,
    on_batch: Callable[[int], None] | None = None,
) -> tuple[np.ndarray, LabelRankings]:
    """The network's log-odds (N, C) of each document's candidates, in their order.

    Also returns the network's own ranking of them, for what routing did. Arguments as in `rank_documents`.
    """
    ranked = rank_documents(
        network,
        tokens,
        candidates.shape[1],
        padding_id=padding_id,
        batch=batch,
        candidates=candidates,
        bf16=bf16,
        on_batch=on_batch,
    )
    assert ranked.log_odds is not None
    # Both sides by label id: the k-th smallest id of a row is the same label in either.
    there, here = np.argsort(ranked.labels, axis=1), np.argsort(candidates, axis=1)  # (N, C)
    log_odds = np.empty_like(ranked.log_odds)
    np.put_along_axis(log_odds, here, np.take_along_axis(ranked.log_odds, there, axis=1), axis=1)
    return log_odds, ranked


@torch.inference_mode()
def rank_documents(
    network: nn.Module,
    tokens: Ragged,
    top_k: int,
    *,
    padding_id: int = 0,
    batch: int = 64,
    candidates: np.ndarray | None = None,
    unused: np.ndarray | None = None,
    bf16: bool = False,
    on_batch: Callable[[int], None] | None = None,
) -> LabelRankings:
    """Ranks labels; a document's result does not depend on the others.

    Args:
        network: A label network.
        tokens: N rows of token ids.
        top_k: Labels returned per document (fewer where there are fewer).
        padding_id: The token that fills rows up.
        batch: Documents per forward pass; documents of similar length go together.
        candidates: (N, C) label ids to route to; None routes to all labels.
        unused: As in `rank_labels`.
        bf16: Computes in bf16 (ranks may differ slightly from float32).
        on_batch: Told the number of documents done, for progress.
    """
    was_training = network.training
    network.eval()
    device = device_of(network)
    order = np.argsort(tokens.lengths, kind="stable")
    parts: list[LabelRankings] = []
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        inputs = torch.from_numpy(tokens.padded(rows, padding_id)).to(device)
        chosen = None if candidates is None else candidates[rows]
        outputs = None if chosen is None else torch.from_numpy(chosen).to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16):
            scored = network(inputs, outputs)
        logits = scored.logits.cpu().numpy()  # (B, n)
        labels = np.arange(logits.shape[1]) if chosen is None else chosen
        parts.append(
            replace(
                rank_labels(labels, logits, top_k, unused),
                iterations=None if scored.iterations is None else scored.iterations.cpu().numpy(),
                agreement=None if scored.agreement is None else scored.agreement.float().cpu().numpy(),
            )
        )
        if on_batch:
            on_batch(len(rows))
    network.train(was_training)
    if not parts:
        return LabelRankings(np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
    return _joined(parts, np.argsort(order, kind="stable"))


def _joined(parts: Sequence[LabelRankings], order: np.ndarray) -> LabelRankings:
    """The documents of all parts, in the order given."""
    agreement = [part.agreement for part in parts if part.agreement is not None]
    width = max((part.shape[1] for part in agreement), default=0)
    unused = [part.unused for part in parts if part.unused is not None]
    kept = min(part.labels.shape[1] for part in parts)  # of unused labels, candidates may hold few or many
    return LabelRankings(
        np.concatenate([part.labels[:, :kept] for part in parts])[order],
        np.concatenate([part.scores[:, :kept] for part in parts])[order],
        _all_or_none([part.iterations for part in parts], order),
        np.concatenate([_widened(part, width) for part in agreement])[order] if width else None,
        _all_or_none([None if part.log_odds is None else part.log_odds[:, :kept] for part in parts], order),
        _joined(unused, order) if unused else None,
    )


def _all_or_none(parts: Sequence[np.ndarray | None], order: np.ndarray) -> np.ndarray | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known)[order] if known else None


def _widened(agreement: np.ndarray, width: int) -> np.ndarray:
    filled = np.full((len(agreement), width), np.nan, dtype=np.float32)
    filled[:, : agreement.shape[1]] = agreement
    return filled
