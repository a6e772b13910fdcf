"""Merge the finished cells of a table with the rows of an earlier results file that are still valid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cell import Cell, cell_path, finished_cell
from benchmarks.pecos import PECOS
from benchmarks.plan import Plan
from benchmarks.seed_summary import FinishedRun, summarise_systems
from nlpcapsule.compare.record import load_per_document
from nlpcapsule.compare.table import Record
from nlpcapsule.config import Config
from nlpcapsule.config.nesting import NESTED, flatten

# Settings that do not affect the result: the seed is in the cell, the vectors are the data set's.
_IGNORED = {"training.seed", "training.checkpoint_epochs", "text.vectors", "text.tokenizer"}


def summarise(plan: Plan, cells: Sequence[Cell], folder: Path, earlier: Record | None = None) -> Record:
    """Return a table of finished cells by data set, fraction and system, in the plan's order.

    Args:
        plan: The plan.
        cells: Its cells.
        folder: Folder of finished cells.
        earlier: The earlier table. Its rows are kept where there are no cells, unless the plan's settings
            have changed. They are not compared with, as they have no metrics per document.
    """
    rows: dict[str, dict[str, dict[str, list[FinishedRun]]]] = {}
    for cell in cells:
        record = finished_cell(cell, folder)
        if record is None:
            continue
        scores = load_per_document(cell_path(cell, folder))
        place = rows.setdefault(cell.data, {}).setdefault(f"{cell.fraction:g}", {})
        place.setdefault(cell.system, []).append((record, scores))
    results = {
        data: {
            fraction: summarise_systems(systems, plan.kind, plan.peers)
            for fraction, systems in by_part.items()
        }
        for data, by_part in rows.items()
    }
    if earlier is not None:
        results = _with_earlier(results, cells, earlier["results"])
    return {
        "title": plan.title,
        "smoke": plan.is_smoke,
        "differs": plan.differs,
        "paper": {row["name"]: row["paper"] for row in plan.systems if "paper" in row},
        "paper data": plan.paper_data,
        "paper fractions": list(plan.paper_fractions),
        "planned": [row["name"] for row in plan.systems],
        "planned on": {data: plan.systems_on(data) for data in plan.data},
        "planned data": list(plan.data),
        "planned fractions": list(plan.fractions),
        "results": results,
    }


def _with_earlier(results: Record, cells: Sequence[Cell], earlier: Record) -> Record:
    """Return the rows of both, in the cells' order; new runs replace earlier rows."""
    joined: Record = {}
    stayed: dict[tuple[str, str], set[str]] = {}  # data set and fraction → systems
    for cell in cells:
        place = (cell.data, f"{cell.fraction:g}")
        found = _row(results, *place, cell.system)
        if found is None:
            found = _row(earlier, *place, cell.system)
            if found is None or not _is_still(found["config"], cell):
                continue
            stayed.setdefault(place, set()).add(cell.system)
        joined.setdefault(place[0], {}).setdefault(place[1], {}).setdefault(cell.system, found)
    for (data, fraction), systems in stayed.items():
        for system in systems:
            joined[data][fraction][system] = _compared_within(joined[data][fraction][system], systems)
    return joined


def _compared_within(row: Record, systems: set[str]) -> Record:
    """Return an earlier row without its comparisons with rows that were removed or run again."""
    row = dict(row)
    if row["best rival"] not in systems:
        row |= {"best rival": None, "difference to the best rival": None}
    if "difference to peers" in row:
        peers = row["difference to peers"].items()
        row["difference to peers"] = {peer: found for peer, found in peers if peer in systems}
    return row


def _row(results: Record, data: str, fraction: str, system: str) -> Record | None:
    return results.get(data, {}).get(fraction, {}).get(system)


def _is_still(config: Record, cell: Cell) -> bool:
    """Return whether a row was trained with the plan's current settings; files are compared by name.

    A setting that the row lacks is newer than the row and must be at its default, which keeps the old
    behaviour.
    """
    if cell.model == PECOS:
        known = config.get("model", config)
        return all(known.get(key, value) == value for key, value in cell.settings.items())
    before = _settings(config)
    now, usual = (
        _settings(json.loads(each.model_dump_json()))
        for each in (cell.config, Config.build(cell.kind, cell.model, overrides=_choices(cell)))
    )
    return all(
        Path(str(before.get(key, usual[key]))).name == Path(str(value)).name
        for key, value in now.items()
        if key not in _IGNORED and key.partition(".")[0] in config
    )


def _settings(config: Record) -> dict[str, Any]:
    """Return all settings of a configuration by their full names."""
    sections = (flatten(config[section], section) for section in Config.SECTIONS if section in config)
    return {key: value for section in sections for key, value in section}


def _choices(cell: Cell) -> dict[str, Any]:
    """Return the network and the encoder of a cell."""
    return {key: value for key, value in cell.settings.items() if key in NESTED}
