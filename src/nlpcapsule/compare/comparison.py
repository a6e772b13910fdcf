"""`nlpcapsule compare`: systems trained on one split of a user's data, and their figures side by side."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from nlpcapsule.atomic_files import write_text
from nlpcapsule.compare.data import UserFolder
from nlpcapsule.compare.named_files import files_fingerprint
from nlpcapsule.compare.prepared import prepare, reading_config
from nlpcapsule.compare.processes import Running, run_systems
from nlpcapsule.compare.systems import OURS, missing_package
from nlpcapsule.compare.table import markdown
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.experiments.cell import cell_path
from nlpcapsule.experiments.pecos import pecos_python
from nlpcapsule.experiments.pecos_settings import INSTALL, PECOS
from nlpcapsule.experiments.plan import Cell, Plan
from nlpcapsule.experiments.provenance import checked_out_commit, provenance
from nlpcapsule.experiments.summary import summarise
from nlpcapsule.experiments.table import Record

NAME = "compare"


@dataclass(frozen=True)
class Wanted:
    """What is compared.

    Attributes:
        source: The user's folder.
        settings: System → its settings that differ from the defaults, in the table's order.
        out: Where tables and finished systems go.
        seed: The seed of every system.
        jobs: Systems at a time.
        pecos_python: The Python that has libpecos, as the user gave it.
        assignments: The user's own words for `settings`, for the record.
        quiet: Whether progress is left out.
        say: Told what happens.
        preset: What our own system's settings start from, for the record.
        kind: The kind as the user gave it, for the record; None if the rows told it.
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
        """The command that does it again."""
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
        words += [] if self.kind is None else ["--kind", self.kind]
        words += _reading_words(self.source.reading)
        return shlex.join([*words, *(word for text in self.assignments for word in ("--set", text))])


def compare(wanted: Wanted) -> tuple[str, dict[str, str]]:
    """Trains what is missing, writes compare.json and compare.md into `wanted.out`.

    Returns:
        The Markdown, and why systems failed that have.
    """
    python = pecos_python(wanted.pecos_python) if PECOS in wanted.settings else None
    absent = {name: why for name in wanted.settings if (why := _why_absent(name, python))}
    source, folder = wanted.source, wanted.out / "cells"
    data = source.name
    cells = [
        Cell(source.kind, data, system, system, settings, wanted.seed)
        for system, settings in wanted.settings.items()
        if system not in absent
    ]
    cells = [replace(cell, files=files_fingerprint(reading_config(cell))) for cell in cells]
    if not cells:
        reasons = "\n".join(f"{name}: {why}" for name, why in absent.items())
        raise NlpCapsuleError(f"none of the systems can run here:\n{reasons}")
    wanted.say(source.split)
    places, sizes = prepare(source, cells, wanted.out / "data")
    commit = checked_out_commit()
    running = Running(places, folder, commit, wanted.jobs, python, wanted.quiet, wanted.say)
    failures = run_systems(cells, running)
    bad_rows = sum(report.bad_rows for report in source.counted.values())
    systems = _results(source.kind, cells, folder)
    if not systems:
        told = "\n".join(f"{name}: {why}" for name, why in failures.items())
        raise NlpCapsuleError(f"every system failed:\n{told}")
    record: Record = {
        "table": NAME,
        **provenance(wanted.command, commit),
        "kind": source.kind,
        "data": data,
        "split": source.split,
        "sizes": sizes | ({"bad rows left out": bad_rows} if bad_rows else {}),
        "seed": wanted.seed,
        "systems at a time": wanted.jobs,
        "ours": OURS,
        "systems": systems,
        "not measured": absent | {name: f"failed: {why}" for name, why in failures.items()},
    }
    page = markdown(record)
    write_text(wanted.out / f"{NAME}.json", json.dumps(record, indent=1) + "\n")
    write_text(wanted.out / f"{NAME}.md", page)
    return page, failures


def _reading_words(reading: ReadOptions) -> list[str]:
    """The readers' options that were given, as they are written in a command."""
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
    """System → figures, costs, and the paired bootstrap against the best of the others."""
    finished = [cell for cell in cells if cell_path(cell, folder).exists()]
    if not finished:
        return {}
    plan = Plan(NAME, "", kind, (finished[0].data,), [], seeds=1)
    results = summarise(plan, finished, folder)["results"]
    found: dict[str, Any] = results[finished[0].data]["1"]
    return found
