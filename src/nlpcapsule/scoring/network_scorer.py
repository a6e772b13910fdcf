"""Score labels with a network: all labels, or given candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.scoring.scorer import Scores, check_eval_mode

if TYPE_CHECKING:  # prediction with an exported network does without torch
    import torch
    from torch import nn


def device_of(network: nn.Module) -> torch.device:
    """Return the device of a network's weights."""
    return next(network.parameters()).device


@dataclass(frozen=True, eq=False)
class NetworkScorer:
    """A scorer around a label network."""

    network: nn.Module  # the network, in eval mode
    padding_id: int = 0  # id of the padding token
    batch: int = 64  # documents per forward pass; documents of similar length go together
    bf16: bool = False  # Computes in bf16 (scores differ slightly from float32)

    def candidates(self, tokens: Ragged) -> np.ndarray | None:
        """Return None: the network scores all labels."""
        return None

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score all labels, or the given candidates (N, C)."""
        import torch

        check_eval_mode(self.network)
        device = device_of(self.network)
        order = np.argsort(tokens.lengths, kind="stable")
        log_odds, iterations, agreement = [], [], []
        for start in range(0, len(order), self.batch):
            rows = order[start : start + self.batch]
            inputs = torch.from_numpy(tokens.padded(rows, self.padding_id)).to(device)  # (B, l)
            outputs = None if candidates is None else torch.from_numpy(candidates[rows]).to(device)  # (B, C)
            with torch.inference_mode(), torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.bf16):
                scored = self.network(inputs, outputs)
            log_odds.append(scored.logits.cpu().numpy())  # (B, C)
            if scored.iterations is not None:
                iterations.append(scored.iterations.cpu().numpy())  # (B,)
            if scored.agreement is not None:
                agreement.append(scored.agreement.float().cpu().numpy())  # (B, T)
        back = np.argsort(order, kind="stable")
        joined = np.concatenate(log_odds)[back] if log_odds else np.zeros((0, 0), dtype=np.float32)
        return Scores(
            np.arange(joined.shape[1]) if candidates is None else candidates,
            joined,
            np.concatenate(iterations)[back] if iterations else None,
            join_agreement(agreement)[back] if agreement else None,
        )


def join_agreement(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate (N, T) of parts with different numbers of iterations, padded with NaN."""
    width = max(part.shape[1] for part in parts)
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=np.nan) for part in parts]
    return np.concatenate(padded).astype(np.float32)
