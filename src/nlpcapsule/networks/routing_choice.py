"""The routing a configuration names, with its settings, on the votes of a batch."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.routing import ROUTINGS
from nlpcapsule.capsules.routing.em import inverse_temperature_factor
from nlpcapsule.capsules.routing.routed import Routed
from nlpcapsule.capsules.votes import Votes

FIRST_LOG_ODDS = -4.0  # of a label that EM routing has no reason yet to find in a document


class RoutingSettings(Protocol):
    """The settings that choose a routing, of whichever network has them."""

    @property
    def routing(self) -> str:
        """The routing's name."""

    @property
    def is_adaptive(self) -> bool:
        """Whether documents stop by themselves."""

    @property
    def most_iterations(self) -> int:
        """T, or T_max of adaptive routing."""

    @property
    def epsilon(self) -> float:
        """ε of adaptive routing."""

    @property
    def alpha(self) -> float:
        """α, the step of the coupling update."""

    @property
    def softmax(self) -> str:
        """The softmax over outputs: leaky or standard."""

    @property
    def kappa(self) -> float:
        """κ of the squash."""


def em_costs(settings: RoutingSettings) -> nn.Parameter | None:
    """β_u and β_a (2,), which EM routing learns; None for the other routings.

    β_a starts where a label that costs nothing is unlikely: of thousands of labels a document has a few, and
    a β_a of 0, which makes each as likely as not, takes a whole training to move.
    """
    if settings.routing != "em":
        return None
    last = inverse_temperature_factor(settings.most_iterations)
    return nn.Parameter(torch.tensor([0.0, FIRST_LOG_ODDS / last]))


def route(
    votes: Votes,
    settings: RoutingSettings,
    em_costs: Tensor | None = None,
    valid: Tensor | None = None,
    *,
    as_released: bool = False,
    batch_stop: bool = False,
) -> Routed:
    """Routes votes as the settings say.

    Args:
        votes: û_{j|i}.
        settings: The routing and its parameters.
        em_costs: (2,) β_u and β_a, learned, for EM routing.
        valid: (B, n) False where a document's outputs are filled up.
        as_released: The released code's kernel, which has no end, for adaptive routing.
        batch_stop: Adaptive routing decides on the batch's mean, as the released code does in training.
    """
    routing = ROUTINGS[settings.routing]
    if settings.routing == "em":
        if em_costs is None:
            raise ValueError("EM routing needs its learned costs")
        # Over a single output (answers) a standard softmax is inert: only a leak gives EM something to do.
        kind = "leaky" if votes.shape[2] == 1 else "standard"
        # Narrow Gaussians blow rounding up: a document's score would depend on who is ranked beside it.
        votes = votes if torch.is_grad_enabled() else votes.double()
        # Costs grow with the votes an output gets. λ = n / m counts those by even shares of m / n, so that
        # what is learned holds however many outputs there are; β_a is learned in the same measure.
        outputs = votes.shape[2] if valid is None else valid.sum(dim=1, keepdim=True).clamp_min(1)
        per_share = outputs / votes.shape[1]  # n / m, a number or (B, 1)
        beta_u, beta_a = em_costs
        return routing(
            votes,
            iterations=settings.most_iterations,
            softmax=kind,
            beta_u=beta_u,
            beta_a=beta_a / per_share,
            inverse_temperature=per_share,
            valid=valid,
        ).float()
    shared = {"softmax": settings.softmax, "kappa": settings.kappa, "valid": valid}
    if settings.routing in ("dynamic", "kde-em"):
        return routing(votes, iterations=settings.most_iterations, **shared)
    shared["alpha"] = settings.alpha
    if not settings.is_adaptive:
        return routing(votes, iterations=settings.most_iterations, **shared)
    return routing(
        votes,
        eps=settings.epsilon,
        max_iterations=settings.most_iterations,
        clamp_kernel=not as_released,
        stop="batch" if batch_stop else "instance",
        **shared,
    )
