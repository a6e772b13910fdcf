"""Compile loops with numba, an optional dependency; without it, an error is raised on first use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from nlpcapsule.errors import MissingExtraError

numba: Any = None
with suppress(ImportError):
    numba = import_module("numba")

compiled: Callable[[Any], Any] = numba.njit(cache=True) if numba else lambda function: function


def check_numba() -> None:
    """Raise an error if numba is missing: plain Python loops would take hours."""
    if numba is None:
        raise MissingExtraError("numba", "trees")
