"""Loops compiled by numba, an extra: without it the package imports, and says so when one is asked for."""

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
    """Raise where numba is missing: as plain Python the loops would take hours."""
    if numba is None:
        raise MissingExtraError("numba", "trees")
