"""The same network with another number of routing iterations than it was trained with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nlpcapsule.networks.label_query import LabelQuerySettings
from nlpcapsule.networks.official import OfficialSettings
from nlpcapsule.networks.paper import PaperSettings

RoutedSettings = LabelQuerySettings | PaperSettings | OfficialSettings


def with_at_most(settings: RoutedSettings, iterations: int) -> RoutedSettings:
    """The same routing with another bound; documents still stop by themselves where they did."""
    return settings.model_copy(update={"iterations": iterations})


def with_exactly(settings: RoutedSettings, iterations: int) -> RoutedSettings:
    """The same routing with a fixed number of iterations.

    An adaptive one is held open: with ε = 0 no change is small enough to stop at. That is KDE routing with a
    fixed T, and unlike "kde" by name it keeps what `adaptive-kde-literal` and `official` do differently.
    """
    never_stops = {"epsilon": 0.0} if settings.is_adaptive else {}
    return settings.model_copy(update={"iterations": iterations, **never_stops})


@contextmanager
def lent_settings(network: Any, settings: RoutedSettings) -> Iterator[None]:
    """Lends a network other settings; it has its own back when the block ends, also by an error."""
    own = network.settings
    network.settings = settings
    try:
        yield
    finally:
        network.settings = own
