"""Record the duration of a training over all its interruptions, in a small file.

WORK/seconds.json    {"seconds": of the stretches that ended, "killed": whether others did not, "running": …}

A stretch that ends by an exception or Ctrl-C is counted. A killed one leaves "running" behind: its seconds
are lost, and the total is a lower bound.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nlpcapsule.atomic_files import write_text

LOWER_BOUND = "training seconds are a lower bound"  # in a record, if a stretch was killed
_FILE = "seconds.json"


@dataclass(frozen=True)
class TrainingTime:
    """The known duration of a training.

    Attributes:
        seconds: Seconds of all stretches that ended.
        killed: Whether seconds of a killed stretch are missing.
        running: Whether a stretch has started and not ended.
    """

    seconds: float = 0.0
    killed: bool = False
    running: bool = False


@contextmanager
def timed_stretch(folder: Path, resumes: bool) -> Iterator[None]:
    """Add the duration of the block to a training's time, however the block ends.

    Args:
        folder: The folder the training works in.
        resumes: Whether the block resumes a training; if not, the time starts at zero.
    """
    earlier = training_time(folder) if resumes else TrainingTime()
    _write(folder, replace(earlier, running=True))
    started = time.perf_counter()
    try:
        yield
    finally:
        _write(folder, replace(earlier, seconds=earlier.seconds + time.perf_counter() - started))


def training_time(folder: Path) -> TrainingTime:
    """Return the time of a training that is not running; incomplete if there is no file."""
    path = folder / _FILE
    if not path.exists():
        return TrainingTime(killed=True)
    noted = TrainingTime(**json.loads(path.read_text(encoding="utf-8")))
    return replace(noted, killed=noted.killed or noted.running, running=False)


def at_least(system: dict[str, Any]) -> str:
    """Return the sign before a system's training seconds in a table."""
    return "≥ " if system.get(LOWER_BOUND) else ""


def _write(folder: Path, known: TrainingTime) -> None:
    write_text(folder / _FILE, json.dumps(asdict(known)) + "\n")
