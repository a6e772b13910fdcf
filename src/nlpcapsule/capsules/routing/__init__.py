"""Routing by agreement, the last step from condensed to label capsules: one file per algorithm."""

from __future__ import annotations

from collections.abc import Callable

from nlpcapsule.capsules.routing.adaptive_kde import adaptive_kde
from nlpcapsule.capsules.routing.dynamic import dynamic
from nlpcapsule.capsules.routing.em import em
from nlpcapsule.capsules.routing.kde_em import kde_em
from nlpcapsule.capsules.routing.kde_mean_shift import kde_mean_shift
from nlpcapsule.capsules.routing.label_query import LabelsRouted, route_labels
from nlpcapsule.capsules.routing.routed import Routed

ROUTINGS: dict[str, Callable[..., Routed]] = {
    "dynamic": dynamic,
    "em": em,
    "kde": kde_mean_shift,
    "kde-em": kde_em,
    "adaptive-kde": adaptive_kde,
}

__all__ = [
    "ROUTINGS",
    "LabelsRouted",
    "Routed",
    "adaptive_kde",
    "dynamic",
    "em",
    "kde_em",
    "kde_mean_shift",
    "route_labels",
]
