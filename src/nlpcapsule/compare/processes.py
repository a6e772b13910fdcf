"""Runs each system in a process of its own, so that its memory is its own and its end is nobody else's."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from nlpcapsule.atomic_files import write_text
from nlpcapsule.experiments.cell import cell_path, finished_cell
from nlpcapsule.experiments.pecos_settings import PECOS
from nlpcapsule.experiments.plan import Cell

_LOOK_EVERY = 0.3  # seconds between two looks at processes and their memory
_PATIENCE = 5  # seconds a process has to end when it is told to


@dataclass(frozen=True)
class Running:
    """How systems are run.

    Attributes:
        places: System → the folder of its prepared data.
        cells: Where finished systems are kept.
        commit: The commit the code is of.
        jobs: Systems at a time.
        pecos_python: The Python that has libpecos.
        quiet: Whether processes keep their progress to their log.
        say: Told what happens.
    """

    places: Mapping[str, Path]
    cells: Path
    commit: str
    jobs: int = 1
    pecos_python: str | None = None
    quiet: bool = False
    say: Callable[[str], None] = lambda text: None

    def command(self, cell: Cell) -> list[str]:
        """What a system's process runs."""
        place, cells = str(self.places[cell.system]), str(self.cells)
        words = [sys.executable, "-m", "nlpcapsule.compare", "system", json.dumps(asdict(cell)), place, cells]
        words += ["--commit", self.commit]
        return words + (
            ["--pecos-python", self.pecos_python] if cell.model == PECOS and self.pecos_python else []
        )


class SystemProcess:
    """A system being trained and measured.

    Args:
        cell: The system.
        running: How it is run.
    """

    def __init__(self, cell: Cell, running: Running) -> None:
        self.cell = cell
        self.log = running.cells / f"{cell.name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._peak = 0
        self._record = cell_path(cell, running.cells)
        alone = running.jobs == 1 and not running.quiet
        with self.log.open("w", encoding="utf-8") as file:
            self._process = psutil.Popen(
                running.command(cell),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=None if alone else file,
            )

    def ended(self) -> bool:
        """Whether it has ended; until then, looks at the memory of all its processes."""
        if self._process.poll() is not None:
            return True
        self._peak = max(self._peak, _memory(self._process))
        return False

    def failure(self) -> str | None:
        """Why it failed, or None; what a system that did not fail has taken is noted in its record."""
        code = self._process.returncode
        said = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if code == 0 and self._record.exists():
            self._note_memory()
            self.log.unlink()
            return None
        if code < 0:
            return f"ended by signal {-code}" + (", perhaps for want of memory" if code == -9 else "")
        return said[-1].removeprefix("error: ") if said else f"ended with exit code {code}"

    def stop(self) -> None:
        """Ends it and whatever it has started; its checkpoints stay."""
        with suppress(psutil.Error):
            family = [self._process, *self._process.children(recursive=True)]
            for signal in (psutil.Process.terminate, psutil.Process.kill):
                for member in family:
                    with suppress(psutil.Error):
                        signal(member)
                _, family = psutil.wait_procs(family, timeout=_PATIENCE)

    def _note_memory(self) -> None:
        """PECOS has told its own already: the process beside it only makes features."""
        if self.cell.model == PECOS:
            return
        record = json.loads(self._record.read_text(encoding="utf-8"))
        record["process memory GiB"] = max(record["process memory GiB"], round(self._peak / 2**30, 2))
        write_text(self._record, json.dumps(record, indent=1) + "\n")


def run_systems(cells: Sequence[Cell], running: Running) -> dict[str, str]:
    """Runs what is not finished, in order; one that fails does not keep the others from running.

    Returns:
        System → why it failed.
    """
    missing = [cell for cell in cells if finished_cell(cell, running.cells) is None]
    if len(missing) < len(cells):
        running.say(f"{len(cells) - len(missing)} of {len(cells)} systems are finished")
    waiting, done = list(missing), 0
    active: list[SystemProcess] = []
    failures: dict[str, str] = {}
    try:
        while waiting or active:
            while waiting and len(active) < running.jobs:
                cell = waiting.pop(0)
                running.say(f"{cell.system}: started")
                active.append(SystemProcess(cell, running))
            for process in [process for process in active if process.ended()]:
                active.remove(process)
                done += 1
                failure = process.failure()
                running.say(f"[{done}/{len(missing)}] {process.cell.system}: {failure or 'done'}")
                if failure:
                    failures[process.cell.system] = failure
            if active:
                time.sleep(_LOOK_EVERY)
    finally:
        for process in active:
            process.stop()
    return failures


def _memory(process: psutil.Process) -> int:
    """Bytes that a process and all it has started hold; pages they share count once, where that is known."""
    total = 0
    with suppress(psutil.Error):
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                info = member.memory_full_info()
                total += getattr(info, "pss", info.rss)
    return total
