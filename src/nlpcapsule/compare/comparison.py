"""`nlpcapsule compare`: train systems on one split of a user's data and compare their metrics."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from nlpcapsule.atomic_files import write_text
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.data import UserFolder
from nlpcapsule.compare.named_files import files_fingerprint
from nlpcapsule.compare.pecos import pecos_python
from nlpcapsule.compare.pecos_settings import INSTALL, PECOS
from nlpcapsule.compare.prepared import prepare, reading_config
from nlpcapsule.compare.provenance import checked_out_commit, provenance
from nlpcapsule.compare.run_record import cell_path, finished_cell, load_per_document
from nlpcapsule.compare.summary import summarise_systems
from nlpcapsule.compare.system_runs import RunOptions, run_systems
from nlpcapsule.compare.systems import missing_package
from nlpcapsule.compare.table import Record, markdown
from nlpcapsule.config import DEFAULT_SYSTEM
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import NlpCapsuleError

NAME = "compare"


@dataclass(frozen=True)
class CompareOptions:
    """Options of a comparison.

    Attributes:
        source: The user's folder.
        settings: System → its non-default settings, in the table's order.
        out: Folder for tables and finished systems.
        seed: The seed of every system.
        jobs: Number of systems to run in parallel.
        pecos_python: The Python that has libpecos, as the user gave it.
        assignments: The --set arguments behind `settings`, for the record.
        quiet: Whether to hide progress.
        say: Receives messages.
        preset: The preset of the default system, for the record.
        kind: The kind as the user gave it, for the record; None if it was read from the rows.
    """

    source: UserFolder
    settings: dict[str, dict[str, Any]]
    out: Path
    seed: int = 1
    jobs: int = 1
    pecos_python: str | None = None
    assignments: Sequence[str] = ()
    quiet: bool = False
    say: Callable[[str], None] = lambda text: None
    preset: str | None = None
    kind: str | None = None

    @property
    def command(self) -> str:
        """The command that repeats the comparison."""
        words = [
            "nlpcapsule",
            NAME,
            "--data",
            self.source.folder.resolve().name,
            "--systems",
            ",".join(self.settings),
        ]
        words += ["--seed", str(self.seed), "--jobs", str(self.jobs)]
        words += [] if self.preset is None else ["--preset", self.preset]
        words += [] if self.kind is None else ["--task", self.kind]
        words += _reading_words(self.source.reading)
        return shlex.join([*words, *(word for text in self.assignments for word in ("--set", text))])


def compare(options: CompareOptions) -> tuple[str, dict[str, str]]:
    """Train missing systems, and write compare.json and compare.md into `options.out`.

    Returns:
        The Markdown, and the reasons of failures, if any.
    """
    python = pecos_python(options.pecos_python) if PECOS in options.settings else None
    absent = {name: why for name in options.settings if (why := _why_absent(name, python))}
    source, folder = options.source, options.out / "cells"
    data = source.name
    cells = [
        Cell(source.kind, data, system, system, settings, options.seed)
        for system, settings in options.settings.items()
        if system not in absent
    ]
    cells = [replace(cell, files=files_fingerprint(reading_config(cell))) for cell in cells]
    if not cells:
        reasons = "\n".join(f"{name}: {why}" for name, why in absent.items())
        raise NlpCapsuleError(f"none of the systems can run here:\n{reasons}")
    options.say(source.split)
    places, sizes = prepare(source, cells, options.out / "data")
    commit = checked_out_commit()
    running = RunOptions(places, folder, commit, options.jobs, python, options.quiet, options.say)
    failures = run_systems(cells, running)
    bad_rows = sum(report.bad_rows for report in source.counted.values())
    systems = _results(source.kind, cells, folder)
    if not systems:
        told = "\n".join(f"{name}: {why}" for name, why in failures.items())
        raise NlpCapsuleError(f"every system failed:\n{told}")
    record: Record = {
        "table": NAME,
        **provenance(options.command, commit),
        "kind": source.kind,
        "data": data,
        "split": source.split,
        "sizes": sizes | ({"bad rows left out": bad_rows} if bad_rows else {}),
        "seed": options.seed,
        "systems at a time": options.jobs,
        "ours": DEFAULT_SYSTEM[source.kind],
        "systems": systems,
        "not measured": absent | {name: f"failed: {why}" for name, why in failures.items()},
    }
    page = markdown(record)
    write_text(options.out / f"{NAME}.json", json.dumps(record, indent=1) + "\n")
    write_text(options.out / f"{NAME}.md", page)
    return page, failures


def _reading_words(reading: ReadOptions) -> list[str]:
    """Return the given reader options, as written in a command."""
    words: list[str] = []
    for field in fields(reading):
        value, option = getattr(reading, field.name), f"--{field.name.replace('_', '-')}"
        if value != field.default:
            words += [option] if value is True else [option, value]
    return words


def _why_absent(system: str, python: str | None) -> str | None:
    if system == PECOS:
        return None if python else f"needs libpecos in a Python of its own: {INSTALL}"
    return missing_package(system)


def _results(kind: str, cells: Sequence[Cell], folder: Path) -> dict[str, Any]:
    """Return system → metrics, costs, and the paired bootstrap against the best other system."""
    found = ((cell, finished_cell(cell, folder)) for cell in cells)
    runs = {
        cell.system: [(record, load_per_document(cell_path(cell, folder)))]
        for cell, record in found
        if record is not None
    }
    return summarise_systems(runs, kind)
