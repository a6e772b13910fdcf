"""Cells put together: means and deviations over seeds, and paired tests against the best rival."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nlpcapsule.config import Config
from nlpcapsule.evaluation.bootstrap import paired_bootstrap
from nlpcapsule.experiments.cell import LABEL_FIGURES, cell_path, finished_cell, load_per_document
from nlpcapsule.experiments.pecos_settings import PECOS
from nlpcapsule.experiments.plan import Cell, Plan, by_itself
from nlpcapsule.experiments.table import Record
from nlpcapsule.experiments.training_time import LOWER_BOUND

ANSWER_FIGURES = ("AP",)
# What says nothing about a training's outcome: the seed is in the cell, the vectors are the data set's.
_IGNORED = {
    ("training", "seed"),
    ("training", "checkpoint_epochs"),
    ("text", "vectors"),
    ("text", "tokenizer"),
}
# What a setting that a row does not know stood for before it came, where that is not its default.
_BEFORE = {("model", "bandwidth"): 0.0, ("model", "max_iterations"): 3, ("model", "overlap"): False}
# What only a pretrained transformer looks at.
_OF_A_TRANSFORMER = {("model", key) for key in ("window", "stride", "encoder_rate", "checkpointing")}
_DECIDED = ("micro-F1", "macro-F1")  # figures that depend on a decision threshold


def summarise(plan: Plan, cells: Sequence[Cell], folder: Path, earlier: Record | None = None) -> Record:
    """The finished cells of a table, by data set, fraction and system, in the plan's order.

    Args:
        plan: The plan.
        cells: Its cells.
        folder: Where finished cells are.
        earlier: The table as it was. A row of it stays where there are no cells for it, unless the plan now
            asks for other settings. Without figures per document, nothing is compared with such a row.
    """
    rows: dict[str, dict[str, dict[str, list[tuple[Record, np.ndarray]]]]] = {}
    for cell in cells:
        record = finished_cell(cell, folder)
        if record is None:
            continue
        scores = load_per_document(cell_path(cell, folder))
        place = rows.setdefault(cell.data, {}).setdefault(f"{cell.fraction:g}", {})
        place.setdefault(cell.system, []).append((record, scores))
    results = {
        data: {fraction: _summarise_systems(systems, plan) for fraction, systems in by_part.items()}
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
        "planned data": list(plan.data),
        "planned fractions": list(plan.fractions),
        "results": results,
    }


def _with_earlier(results: Record, cells: Sequence[Cell], earlier: Record) -> Record:
    """The rows of both, in the cells' order; what was run again replaces what was there."""
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
    """An earlier row without its comparisons with rows that are gone or were run again."""
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
    """Whether a row was trained as the plan says now; files are compared by their names.

    A setting that the row does not know is newer than the row. It must be at its default, which leaves things
    as they were, except in `paper`, whose defaults changed when `votes` came.
    """
    if cell.model == PECOS:
        known = config.get("model", {})
        return all(known.get(key, value) == value for key, value in cell.settings.items())
    if cell.model == "paper" and "votes" not in config.get("model", {}):
        return False
    now, usual = (
        json.loads(each.model_dump_json())
        for each in (cell.config, Config.build(cell.kind, cell.model, overrides=by_itself(cell.kind)))
    )
    ignored = _IGNORED if cell.config.transformer else _IGNORED | _OF_A_TRANSFORMER

    def is_same(section: str, key: str, value: Any) -> bool:
        if section not in config:
            return True
        if key not in config[section]:
            return value in (usual[section][key], _BEFORE.get((section, key), usual[section][key]))
        return Path(str(config[section][key])).name == Path(str(value)).name

    return all(
        is_same(section, key, value)
        for section in Config.SECTIONS
        for key, value in now[section].items()
        if (section, key) not in ignored
    )


def _summarise_systems(
    systems: dict[str, list[tuple[Record, np.ndarray]]], plan: Plan
) -> dict[str, dict[str, Any]]:
    means = {name: np.mean([scores for _, scores in runs], axis=0) for name, runs in systems.items()}
    figures = LABEL_FIGURES if plan.kind == "labels" else ANSWER_FIGURES

    def difference(name: str, other: str) -> dict[str, Any]:
        return {
            figure: asdict(paired_bootstrap(means[name][row], means[other][row]))
            for row, figure in enumerate(figures)
        }

    summaries = {}
    for name, runs in systems.items():
        rivals = [other for other in systems if other != name]
        best = max(rivals, key=lambda other: means[other][0].mean(), default=None)
        summaries[name] = {
            **_over_seeds([record for record, _ in runs], plan.kind),
            "best rival": best,
            "difference to the best rival": None if best is None else difference(name, best),
        }
        if plan.peers and name not in plan.peers:
            summaries[name]["difference to peers"] = {
                peer: difference(name, peer) for peer in plan.peers if peer in systems
            }
    return summaries


def _over_seeds(records: list[Record], kind: str) -> dict[str, Any]:
    first = records[0]
    figures: dict[str, Any] = (
        _spread([record["figures"] for record in records])
        if kind == "labels"
        else {part: _spread([record["figures"][part] for record in records]) for part in first["figures"]}
    )
    alone = [_decided(record["network alone"]) for record in records if record.get("network alone")]
    kept = ("training seconds", "milliseconds per document", "milliseconds per question")
    return {
        "seeds": [record["cell"]["seed"] for record in records],
        "figures": figures,
        "network alone": _spread(alone) if alone else None,
        **{name: [record[name] for record in records] for name in kept if name in first},
        **({LOWER_BOUND: True} if any(record.get(LOWER_BOUND) for record in records) else {}),
        "parameters": first["parameters"],
        "model MiB": first.get("model MiB"),
        "gpu memory GiB": first["gpu memory GiB"],
        "process memory GiB": first.get("process memory GiB"),
        "documents by routing iterations": first.get("documents by routing iterations"),
        "selected on": [record["selected on"] for record in records],
        "loss by epoch": [[epoch["loss"] for epoch in record["epochs"]] for record in records],
        "config": first["config"],
        "data": first["data"],
        "hardware": first["hardware"],
        "commit": first["commit"],
    }


def _decided(alone: dict[str, float]) -> dict[str, float]:
    """A network's own figures; older records decided with a threshold that was the joined system's."""
    return {name: value for name, value in alone.items() if "threshold" in alone or name not in _DECIDED}


def _spread(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Figure → mean and standard deviation over seeds: of all seeds there might be, as these show it."""
    return {
        name: {
            "mean": float(np.mean([run[name] for run in runs])),
            "deviation": float(np.std([run[name] for run in runs], ddof=1)) if len(runs) > 1 else 0.0,
        }
        for name in runs[0]
        if all(name in run for run in runs)
    }
