"""Apply the routing that a configuration names to the votes of a batch."""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.routing import ROUTINGS
from nlpcapsule.capsules.routing.em import em, inverse_temperature_factor
from nlpcapsule.capsules.routing.routed import Routed
from nlpcapsule.capsules.softmax import SoftmaxKind
from nlpcapsule.capsules.votes import FormedVotes, Votes
from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.fused.mean_shift import Options, can_fuse, fused_mean_shift

FIRST_LOG_ODDS = -4.0  # initial log-odds of a label in EM routing


class RoutedSettings(SystemSettings):
    """Settings of networks that route to chosen labels; a subclass has `routing` and `iterations`."""

    routes_to_chosen: ClassVar[bool] = True
    scores_candidates: ClassVar[bool] = True
    epsilon: ClassVar[float] = 0.05  # adaptive: a document stops when its NAS moves less
    adaptive_iterations: ClassVar[int] = 10  # adaptive: their maximum, unless `iterations` is set

    if TYPE_CHECKING:  # fields of each subclass
        iterations: int | None  # T, or T_max; None for the default

        @property
        def routing(self) -> str:
            """The routing's name."""

    @property
    def is_adaptive(self) -> bool:
        """Whether the routing decides when each document stops."""
        return self.routing.startswith("adaptive-kde")

    @property
    def most_iterations(self) -> int:
        """T, or T_max of adaptive routing."""
        return self.iterations or (self.adaptive_iterations if self.is_adaptive else 3)

    @property
    def compares_words(self) -> bool:
        """For answers: whether words shared by question and answer are added to the capsules' cosine."""
        return getattr(self, "overlap", False)


def em_costs(settings: RoutedSettings) -> nn.Parameter | None:
    """Return the costs β_u and β_a (2,) that EM routing learns; None for other routings.

    β_a starts at a value that makes every label unlikely: a document has a few of thousands of labels, and
    from β_a = 0, a probability of one half, training would take too long to get there.
    """
    if settings.routing != "em":
        return None
    last = inverse_temperature_factor(settings.most_iterations)
    return nn.Parameter(torch.tensor([0.0, FIRST_LOG_ODDS / last]))


def route(votes: Votes, settings: Any, em_costs: Tensor | None = None, valid: Tensor | None = None) -> Routed:
    """Route votes û_{j|i} as the settings of `paper` say.

    EM routing needs its learned costs (2,); `valid` (B, n) is False at padding.
    """
    if settings.routing == "em":
        assert em_costs is not None
        return _route_em(votes, settings.most_iterations, em_costs, valid)
    if settings.routing in ("kde", "adaptive-kde"):
        epsilon = settings.epsilon if settings.is_adaptive else -1.0
        chosen = Options(settings.most_iterations, epsilon, settings.softmax, settings.kappa, settings.alpha)
        if isinstance(votes, FormedVotes) and can_fuse(votes, chosen):
            return fused_mean_shift(votes, chosen, valid)
    options = {"softmax": settings.softmax, "kappa": settings.kappa, "valid": valid}
    if settings.routing not in ("dynamic", "kde-em"):
        options["alpha"] = settings.alpha
    if settings.is_adaptive:
        options |= {"eps": settings.epsilon, "max_iterations": settings.most_iterations}
    else:
        options["iterations"] = settings.most_iterations
    return ROUTINGS[settings.routing](votes, **options)


def _route_em(votes: Votes, iterations: int, costs: Tensor, valid: Tensor | None) -> Routed:
    # With a single output (answers) a standard softmax is inert: EM needs the leaky one.
    kind: SoftmaxKind = "leaky" if votes.shape[2] == 1 else "standard"
    # Narrow Gaussians amplify rounding: a document's score would depend on the rest of its batch.
    votes = votes if torch.is_grad_enabled() else votes.double()
    # Costs grow with the votes an output gets. λ = n / m normalises by even shares of m / n, so that what is
    # learned holds for any number of outputs; β_a is learned on the same scale.
    outputs = votes.shape[2] if valid is None else valid.sum(dim=1, keepdim=True).clamp_min(1)
    per_share = outputs / votes.shape[1]  # n / m, a number or (B, 1)
    beta_u, beta_a = costs
    return em(
        votes,
        iterations=iterations,
        softmax=kind,
        beta_u=beta_u,
        beta_a=beta_a / per_share,
        inverse_temperature=per_share,
        valid=valid,
    ).float()
