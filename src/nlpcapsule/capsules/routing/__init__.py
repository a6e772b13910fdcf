"""Routing by agreement, the last step from condensed to label capsules: one file per algorithm.

All routings are pure functions of votes û_{j|i} and of options with the same names:

    iterations      T (`max_iterations`, T_max, if adaptive)
    softmax         "standard", or "leaky" for couplings with a leak
    kappa           κ of the squash
    alpha           α, the step along the kernel
    valid           (B, n), False at padding; None without padding
"""

from collections.abc import Callable
from functools import partial

from nlpcapsule.capsules.routing.adaptive_kde import adaptive_kde
from nlpcapsule.capsules.routing.dynamic import dynamic
from nlpcapsule.capsules.routing.em import em
from nlpcapsule.capsules.routing.kde_em import kde_em
from nlpcapsule.capsules.routing.kde_mean_shift import kde_mean_shift
from nlpcapsule.capsules.routing.routed import Routed
from nlpcapsule.registry import Registry

# votes, iterations=…, softmax=…, kappa=…, alpha=…, valid=… → Routed; `@ROUTINGS.register("name")` adds one.
ROUTINGS: Registry[Callable[..., Routed]] = Registry("routing")
ROUTINGS.register("dynamic")(dynamic)
ROUTINGS.register("em")(em)
ROUTINGS.register("kde")(kde_mean_shift)
ROUTINGS.register("kde-em")(kde_em)
ROUTINGS.register("adaptive-kde")(adaptive_kde)
ROUTINGS.register("adaptive-kde-literal")(partial(adaptive_kde, literal=True))  # Algorithm 1 as printed

__all__ = ["ROUTINGS", "Routed", "adaptive_kde", "dynamic", "em", "kde_em", "kde_mean_shift"]
