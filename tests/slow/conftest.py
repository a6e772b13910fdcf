"""How often the slow tests kill a process, and where they start it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from killed_commands import Commands

KILLED = 5.2  # three trainings, predict, evaluate, and a quarter for compare, which takes longest


@pytest.fixture(scope="session")
def kills(request: pytest.FixtureRequest) -> int:
    """Kills of each command, of compare a quarter: `pytest --kills N` is their sum."""
    return max(1, round(request.config.getoption("--kills") / KILLED))


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Starts commands to kill."""
    if os.name != "posix":
        pytest.skip("there is no kill -9 here")
    started = Commands(tmp_path_factory.mktemp("commands"))
    yield started
    started.close()
