"""The routing a configuration names, with its settings, on the votes of a batch."""

from __future__ import annotations

from torch import Tensor

from nlpcapsule.capsules.routing import ROUTINGS
from nlpcapsule.capsules.routing.routed import Routed
from nlpcapsule.capsules.votes import Votes
from nlpcapsule.config import OfficialSettings, PaperSettings


def route(
    votes: Votes,
    settings: PaperSettings | OfficialSettings,
    em_costs: Tensor | None = None,
    valid: Tensor | None = None,
    batch_stop: bool = False,
) -> Routed:
    """Routes votes as the settings say.

    Args:
        votes: û_{j|i}.
        settings: Of `paper` or `official`.
        em_costs: (2,) β_u and β_a, learned, for EM routing.
        valid: (B, n) False where a document's outputs are filled up.
        batch_stop: Adaptive routing decides on the batch's mean, as the released code does in training.
    """
    routing = ROUTINGS[settings.routing]
    if settings.routing == "em":
        if em_costs is None:
            raise ValueError("EM routing needs its learned costs")
        # Over a single output (answers) a standard softmax is inert: only a leak gives EM something to do.
        kind = "leaky" if votes.shape[2] == 1 else "standard"
        beta_u, beta_a = em_costs
        return routing(
            votes, iterations=settings.iterations, softmax=kind, beta_u=beta_u, beta_a=beta_a, valid=valid
        )
    shared = {"softmax": settings.softmax, "kappa": settings.kappa, "valid": valid}
    if settings.routing in ("dynamic", "kde-em"):
        return routing(votes, iterations=settings.iterations, **shared)
    shared["alpha"] = settings.alpha
    if settings.routing != "adaptive-kde":
        return routing(votes, iterations=settings.iterations, **shared)
    return routing(
        votes,
        eps=settings.epsilon,
        max_iterations=settings.max_iterations,
        literal=isinstance(settings, PaperSettings) and settings.literal,
        clamp_kernel=isinstance(settings, PaperSettings),
        stop="batch" if batch_stop else "instance",
        **shared,
    )
