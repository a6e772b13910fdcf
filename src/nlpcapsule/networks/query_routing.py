"""The parts of `label-query`: condensed capsules, their routing to learned queries, the whole document."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.routing.label_query import LabelsRouted, route_labels
from nlpcapsule.capsules.vote_scale import VoteScale
from nlpcapsule.encoders.encoder import build_encoder
from nlpcapsule.registry import NetworkInputs

if TYPE_CHECKING:
    from nlpcapsule.networks.label_query import LabelQuerySettings

FIRST_GATE = 0.1  # agreement starts as a small correction to the learned coupling


class CondensedCapsules(nn.Module):
    """Tokens → m condensed capsules: m learned queries each pool the token states they attend to."""

    def __init__(self, settings: LabelQuerySettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.encoder = build_encoder(settings.encoder, inputs)
        states, size = self.encoder.state_size, settings.capsule_size
        self.compress_query: nn.Parameter | None = None
        if settings.condensed:
            self.compress_query = nn.Parameter(torch.randn(settings.condensed, states) / math.sqrt(states))
        self.to_capsule = nn.Linear(states, size)
        self.norm = nn.LayerNorm(size)

    def condense(self, states: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return capsules (B, m, d), and a mask (B, l) of real capsules if every token is one."""
        if self.compress_query is None:
            return self.capsules_of(states), mask
        return self.capsules_of(self.pool(states, mask)), None

    def capsules_of(self, states: Tensor) -> Tensor:
        """Return the capsules (B, m, d) of states (B, m, H), such as pooled ones."""
        return self.norm(self.to_capsule(states))

    def pool(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """Return the mean (B, m, H) of the states (B, l, H) that each learned query attends to."""
        return self.attention(states, mask).to(states.dtype) @ states

    def attention(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """Return the share (B, m, l) of each state (B, l, H) in each capsule: 0 at padding, with sum 1.

        Without compression capsule i is state i. Without a mask (B, l) all states are real.
        """
        if self.compress_query is None:
            real = torch.ones_like(states[..., 0]) if mask is None else mask.float()
            return torch.diag_embed(real)
        scores = (states @ self.compress_query.T.to(states.dtype)).float()  # (B, l, m)
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(-1), -torch.inf)
        return scores.softmax(dim=1).transpose(1, 2)


class QueryRouting(nn.Module):
    """Base class of networks that route condensed capsules to learned queries, of labels or of a text."""

    settings: LabelQuerySettings
    route_labels = staticmethod(route_labels)  # an exported network needs others

    def add_agreement(self, settings: LabelQuerySettings) -> None:
        """Add what the agreement of capsules and label capsules learns.

        "dot" agreement compares capsules with LN(R v); KDE agreement compares v itself. Adaptive routing
        scales the votes. Its weight of agreement is fixed at the paper's α (gate × gain = 1), as a learned
        one would undo the scale, and a negative one would make agreement decrease without bound.
        """
        size = settings.capsule_size
        self.agreement: nn.Module | None = None
        if settings.routing == "dot":
            self.agreement = nn.Sequential(nn.Linear(size, size, bias=False), nn.LayerNorm(size))
        self.vote_scale = VoteScale(settings.bandwidth) if settings.routing == "adaptive-kde" else None
        self.gate = nn.Parameter(torch.tensor(FIRST_GATE)) if self.vote_scale is None else FIRST_GATE

    def route(
        self,
        capsules: Tensor,
        coupling: Tensor,
        mask: Tensor | None,
        valid: Tensor | None = None,
        keep_coupling: bool = False,
    ) -> LabelsRouted:
        """Route capsules (B, m, d), real where the mask (B, m) says so, from first couplings (B, n, m)."""
        if mask is not None:
            coupling = coupling.masked_fill(~mask.unsqueeze(1), -torch.inf)
        routed = self.route_labels(
            capsules,
            coupling,
            agreement=self.settings.agreement,
            iterations=self.settings.most_iterations,
            gate=self.gate,
            project=self.agreement,
            eps=self.settings.epsilon,
            compared=None if self.vote_scale is None else self.vote_scale(capsules, mask),
            valid=valid,
            keep_coupling=keep_coupling,
        )
        if self.vote_scale is not None:
            self.vote_scale.steer(routed.agreement, self.settings.epsilon)
        return routed


class WholeDocument(nn.Module):
    """Score labels by the whole document: ⟨g, r_j⟩, where g (B, e) comes from the maximum of its states."""

    def __init__(self, state_size: int, size: int, dropout: float) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(state_size, size), nn.GELU(), nn.Dropout(dropout))

    def forward(self, largest: Tensor, rows: Tensor) -> Tensor:
        """Map maxima (B, H) and rows r (n, e) or (B, n, e) to scores (B, n)."""
        document = self.mlp(largest)  # (B, e)
        if rows.dim() == 2:
            return nn.functional.linear(document, rows)
        return (rows @ document.unsqueeze(-1)).squeeze(-1)


def largest_states(states: Tensor, mask: Tensor | None) -> Tensor:
    """Return the maximum (B, H) of states (B, l, H) that the mask (B, l) calls real."""
    if mask is not None:  # states may be negative, and padding's zeros would then be the maximum
        states = states.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    # In training the places of the maxima are kept: looking for them again would cost more.
    return states.max(dim=1).values if states.requires_grad else states.amax(dim=1)


def row_products(left: Tensor, right: Tensor) -> Tensor:
    """Return ⟨left_j, right_j⟩ (B, n) of (B, n, d) and (n, d) or (B, n, d), summed in float32 at least.

    Autocast is off: it would first copy the largest array of the network to float32.
    """
    with torch.autocast(left.device.type, enabled=False):
        kind = torch.promote_types(left.dtype, torch.float32)
        return (left * right.to(left.dtype)).sum(dim=-1, dtype=kind)
