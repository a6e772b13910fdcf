"""Ranks the labels of encoded documents: over all labels, or over candidates nominated for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import nn

from nlpcapsule.dataset.ragged import Ragged
from nlpcapsule.dataset.top_columns import top_columns

RANKED = 50  # labels kept per document for evaluation; the paper's own nDCG looks at the first 50
_Part: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]


@dataclass(frozen=True)
class LabelRankings:
    """Ranked labels of N documents.

    Attributes:
        labels: (N, K) int64 label ids, best first.
        scores: (N, K) float32 probabilities.
        iterations: (N,) routing iterations each document took; None where nothing is routed.
        agreement: (N, T) negative agreement score by iteration, NaN once a document has left; None likewise.
        log_odds: (N, K) float32, what the probabilities were made of; None where they are all there is.
    """

    labels: np.ndarray
    scores: np.ndarray
    iterations: np.ndarray | None = None
    agreement: np.ndarray | None = None
    log_odds: np.ndarray | None = None


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
        bf16: Computes in bf16 (ranks may differ slightly from float32).
        on_batch: Told the number of documents done, for progress.
    """
    was_training = network.training
    network.eval()
    device = device_of(network)
    order = np.argsort(tokens.lengths, kind="stable")
    parts: list[_Part] = []
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        inputs = torch.from_numpy(tokens.padded(rows, padding_id)).to(device)
        chosen = None if candidates is None else candidates[rows]
        outputs = None if chosen is None else torch.from_numpy(chosen).to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16):
            scored = network(inputs, outputs)
        logits = scored.logits.cpu().numpy()  # (B, n)
        best = top_columns(logits, top_k)  # (B, K)
        labels = best if chosen is None else np.take_along_axis(chosen, best, axis=1)
        log_odds = np.take_along_axis(logits, best, axis=1)
        parts.append(
            (
                labels,
                torch.sigmoid(torch.from_numpy(log_odds)).numpy(),
                log_odds,
                None if scored.iterations is None else scored.iterations.cpu().numpy(),
                None if scored.agreement is None else scored.agreement.float().cpu().numpy(),
            )
        )
        if on_batch:
            on_batch(len(rows))
    network.train(was_training)
    return _in_document_order(parts, order)


def _in_document_order(parts: list[_Part], order: np.ndarray) -> LabelRankings:
    if not parts:
        return LabelRankings(np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
    back = np.argsort(order, kind="stable")
    labels, scores, log_odds, iterations, agreement = zip(*parts, strict=True)
    width = 0 if agreement[0] is None else max(part.shape[1] for part in agreement)
    return LabelRankings(
        np.concatenate(labels)[back].astype(np.int64),
        np.concatenate(scores)[back],
        None if iterations[0] is None else np.concatenate(iterations)[back],
        np.concatenate([_widened(part, width) for part in agreement])[back] if width else None,
        np.concatenate(log_odds)[back],
    )


def _widened(agreement: np.ndarray, width: int) -> np.ndarray:
    filled = np.full((len(agreement), width), np.nan, dtype=np.float32)
    filled[:, : agreement.shape[1]] = agreement
    return filled
