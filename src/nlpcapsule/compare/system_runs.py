"""Run the systems of a comparison, each in a child process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.child_process import EndedChild
from nlpcapsule.compare.pecos_settings import PECOS
from nlpcapsule.compare.run_missing import Run, RunProgress, run_missing
from nlpcapsule.compare.run_record import RunRecord, cell_path
from nlpcapsule.processes import module_command


@dataclass(frozen=True)
class RunOptions:
    """Options of running systems.

    Attributes:
        places: System → the folder of its prepared data.
        cells: Folder of finished systems.
        commit: The commit of the code.
        jobs: Number of systems to run in parallel.
        pecos_python: The Python that has libpecos.
        quiet: Whether child processes write their progress to their logs only.
        say: Receives messages.
    """

    places: Mapping[str, Path]
    cells: Path
    commit: str
    jobs: int = 1
    pecos_python: str | None = None
    quiet: bool = False
    say: Callable[[str], None] = lambda text: None

    def command(self, cell: Cell) -> list[str]:
        """Return the command of a system's child process."""
        place, spec = self.places[cell.system], json.dumps(cell.to_json())
        words = [*module_command("nlpcapsule.compare"), "system", spec, str(place), str(self.cells)]
        words += ["--commit", self.commit]
        if cell.model == PECOS and self.pecos_python:
            words += ["--pecos-python", self.pecos_python]
        return words


@dataclass(frozen=True)
class SystemRun(Run):
    """One system of a comparison."""

    cell: Cell
    options: RunOptions
    watches_memory: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The system's name."""
        return self.cell.system

    @property
    def log(self) -> Path:
        """The log file, next to the record."""
        return self.options.cells / f"{self.cell.name}.log"

    def is_finished(self) -> bool:
        """Return whether the record has been written."""
        return self._record.exists()

    def command(self) -> list[str]:
        """Return the command of the child process."""
        return self.options.command(self.cell)

    def failure_of(self, child: EndedChild) -> str | None:
        """Return why it failed, or None after adding its memory to the record."""
        if child.code == 0 and self._record.exists():
            self._add_memory(child.peak_bytes)
            return None
        if child.code < 0:
            return f"ended by signal {-child.code}" + (", perhaps out of memory" if child.code == -9 else "")
        return child.last_line.removeprefix("error: ") or f"ended with exit code {child.code}"

    @property
    def _record(self) -> Path:
        return cell_path(self.cell, self.options.cells)

    def _add_memory(self, peak_bytes: int) -> None:
        """Add the memory to the record; PECOS has recorded its own, as its parent only computes features."""
        if self.cell.model == PECOS:
            return
        record = RunRecord.load(self._record)
        peak = max(record.process_memory_gib or 0.0, round(peak_bytes / 2**30, 2))
        replace(record, process_memory_gib=peak).save(self._record)


class _SystemProgress(RunProgress):
    def counted(self, finished: int, total: int) -> None:
        if finished:
            super().counted(finished, total)

    def started(self, name: str) -> None:
        self.say(f"{name}: started")

    def ended(self, place: str, name: str, failure: str | None) -> None:
        self.say(f"{place} {name}: {failure or self.done}")


def run_systems(cells: Sequence[Cell], options: RunOptions) -> dict[str, str]:
    """Run unfinished systems in order; a failed system does not stop the others.

    Returns:
        System → reason of its failure.
    """
    return run_missing(
        [SystemRun(cell, options) for cell in cells],
        _SystemProgress(options.say, "systems are finished"),
        options.jobs,
        show_errors=options.jobs == 1 and not options.quiet,
    )
