"""Run a network with a different number of routing iterations than it was trained with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nlpcapsule.networks.routing_choice import RoutedSettings


def with_at_most(settings: RoutedSettings, iterations: int) -> RoutedSettings:
    """Return the same routing with another bound; adaptive routing still stops documents early."""
    return settings.model_copy(update={"iterations": iterations})


def with_exactly(settings: RoutedSettings, iterations: int) -> RoutedSettings:
    """Return the same routing with a fixed number of iterations.

    Adaptive routing gets ε = 0, so that no change is small enough to stop. This is KDE routing with a fixed
    T, but unlike "kde" it keeps the differences of `adaptive-kde-literal` and `official`.
    """
    never_stops = {"epsilon": 0.0} if settings.is_adaptive else {}
    return settings.model_copy(update={"iterations": iterations, **never_stops})


@contextmanager
def lent_settings(network: Any, settings: RoutedSettings) -> Iterator[None]:
    """Override a network's settings inside the block, and restore them at its end, also after an error."""
    own = network.settings
    network.settings = settings
    try:
        yield
    finally:
        network.settings = own
