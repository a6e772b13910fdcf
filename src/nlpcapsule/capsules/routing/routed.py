"""The result type of all routings, and the steps that they share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

import torch
from torch import Tensor

from nlpcapsule.capsules.votes import Votes

Options = ParamSpec("Options")


@dataclass
class Routed:
    """The result of routing B documents from m to n capsules of size d.

    The agreement score is the one that the routing's docstring defines, NaN after a document has stopped. It
    and the couplings are detached.
    """

    capsules: Tensor  # v_j (B, n, d); zero for padding
    activations: Tensor  # a_j (B, n) in [0, 1), the length of v_j (EM: its own); zero for padding
    iterations: Tensor  # (B,) int64, used by each document
    agreement: Tensor  # (B, T), each document's score after each iteration
    coupling: Tensor  # c_ij (B, m, n), from which v_j was computed

    def float(self) -> Routed:
        """Return the result in float32."""
        capsules, activations = self.capsules.float(), below_one(self.activations.float())
        return Routed(capsules, activations, self.iterations, self.agreement.float(), self.coupling.float())


def full_precision(
    routing: Callable[Concatenate[Votes, Options], Routed],
) -> Callable[Concatenate[Votes, Options], Routed]:
    """Switch autocast off inside a routing.

    Agreement is a small difference of larger numbers, and a stop compares two logarithms of it with 0.05:
    bfloat16 is too coarse for both.
    """

    @functools.wraps(routing)
    def route(votes: Votes, *args: Options.args, **options: Options.kwargs) -> Routed:
        with torch.autocast(votes.device.type, enabled=False):
            return routing(votes, *args, **options)

    return route


def mask_padding(per_output: Tensor, valid: Tensor | None) -> Tensor:
    """Zero the rows of padding in (B, n) or (B, n, d)."""
    if valid is None:
        return per_output
    mask = valid.to(per_output.dtype)  # (B, n)
    return per_output * (mask if per_output.dim() == 2 else mask.unsqueeze(-1))


def activation(capsules: Tensor) -> Tensor:
    """Return a_j = ‖v_j‖ (B, n), kept below 1 where rounding (or an unsquashed v_j) would reach it."""
    return below_one(torch.linalg.vector_norm(capsules, dim=-1))


def below_one(activations: Tensor) -> Tensor:
    """Clamp to just below 1, so that log(1 - a) is finite."""
    return activations.clamp(max=1.0 - torch.finfo(activations.dtype).eps)


def log_of_sum(agreement: Tensor) -> Tensor:
    """Return log(agreement + tiny): finite without agreement, or if an unclamped kernel sums below zero."""
    return torch.log(agreement.clamp_min(0.0) + torch.finfo(agreement.dtype).tiny)


def routed_alike(capsules: Tensor, agreement: Tensor, coupling: Tensor, valid: Tensor | None) -> Routed:
    """Return v (B, n, d), agreement (B, T) and c (B, m, n) of a routing with T iterations for all."""
    documents, iterations = agreement.shape
    capsules = mask_padding(capsules, valid)
    used = torch.full((documents,), iterations, dtype=torch.int64, device=capsules.device)
    return Routed(capsules, activation(capsules), used, agreement, coupling.detach())


class ActiveDocuments:
    """The documents that still iterate, and the results of those that have stopped."""

    def __init__(self, documents: int, device: torch.device) -> None:
        self.active = torch.arange(documents, device=device)  # (A,) indices of those that still iterate
        self.iterations = torch.zeros(documents, dtype=torch.int64, device=device)  # (B,) so far
        self._scores: list[Tensor] = []  # one (B,) per iteration
        self._stopped: list[Tensor] = []
        self._results: list[tuple[Tensor, ...]] = []

    def score(self, scores: Tensor) -> None:
        """Count an iteration of the active documents and keep their scores (A,)."""
        self.iterations[self.active] += 1
        column = scores.new_full(self.iterations.shape, torch.nan)
        column[self.active] = scores.detach()
        self._scores.append(column)

    def stop(self, stopping: Tensor, *results: Tensor) -> Tensor:
        """Stop some of the active documents (A,), and keep their rows of the results (A, …).

        Returns the positions, among those active so far, of the documents that continue.
        """
        remaining = (~stopping).nonzero().squeeze(1)
        if remaining.numel() == 0:
            self.finish(*results)
        elif remaining.numel() < stopping.numel():
            stopped = stopping.nonzero().squeeze(1)
            self._stopped.append(self.active[stopped])
            self._results.append(tuple(result[stopped] for result in results))
            self.active = self.active[remaining]
        return remaining

    def finish(self, *results: Tensor) -> None:
        """Stop all documents that are still active and keep their results."""
        self._stopped.append(self.active)
        self._results.append(results)

    @property
    def agreement(self) -> Tensor:
        """(B, T) scores by iteration, NaN after a document has stopped."""
        return torch.stack(self._scores, dim=1)

    def result(self, position: int) -> Tensor:
        """Return the result at this position of those passed to `stop`, for all documents in batch order."""
        parts = [results[position] for results in self._results]
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts)[torch.cat(self._stopped).argsort()]
