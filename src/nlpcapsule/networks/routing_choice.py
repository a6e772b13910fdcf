"""Apply the routing that a configuration names to the votes of a batch."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.routing import ROUTINGS
from nlpcapsule.capsules.routing.em import inverse_temperature_factor
from nlpcapsule.capsules.routing.routed import Routed
from nlpcapsule.capsules.votes import Votes

FIRST_LOG_ODDS = -4.0  # initial log-odds of a label in EM routing


class RoutingSettings(Protocol):
    """Protocol of the settings that choose a routing."""

    @property
    def routing(self) -> str:
        """The routing's name."""

    @property
    def is_adaptive(self) -> bool:
        """Whether the routing decides when each document stops."""

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
    """Return the costs β_u and β_a (2,) that EM routing learns; None for other routings.

    β_a starts at a value that makes every label unlikely: a document has a few of thousands of labels, and
    from β_a = 0, a probability of one half, training would take too long to get there.
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
    """Route votes as the settings say.

    Args:
        votes: û_{j|i}.
        settings: The routing and its parameters.
        em_costs: (2,) β_u and β_a, learned, for EM routing.
        valid: (B, n) False at padding.
        as_released: Use the released code's unclamped kernel in adaptive routing.
        batch_stop: Stop adaptive routing by the batch's mean, as the released code does in training.
    """
    routing = ROUTINGS[settings.routing]
    if settings.routing == "em":
        if em_costs is None:
            raise ValueError("EM routing needs its learned costs")
        # With a single output (answers) a standard softmax is inert: EM needs the leaky one.
        kind = "leaky" if votes.shape[2] == 1 else "standard"
        # Narrow Gaussians amplify rounding: a document's score would depend on the rest of its batch.
        votes = votes if torch.is_grad_enabled() else votes.double()
        # Costs grow with the votes an output gets. λ = n / m normalises by even shares of m / n, so that
        # what is learned holds for any number of outputs; β_a is learned on the same scale.
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
