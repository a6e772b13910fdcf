"""How often the slow tests kill a process."""

from __future__ import annotations

import pytest

KILLED = 6  # three trainings, predict, evaluate and compare


@pytest.fixture(scope="session")
def kills(request: pytest.FixtureRequest) -> int:
    """Kills of each command: `pytest --kills N` is their sum."""
    return max(1, round(request.config.getoption("--kills") / KILLED))
