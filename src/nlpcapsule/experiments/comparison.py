"""Several systems, several seeds, one data set: run cell by cell, then put together.

A plan is a TOML file:

    [[systems]]
    name = "xml-cnn"
    model = "xml-cnn"
    settings = { "training.epochs" = 30 }

Cells run in processes of their own, several at a time, and a comparison that was stopped goes on with the
cells that are missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nlpcapsule.atomic_files import write_text
from nlpcapsule.errors import ConfigError, NlpCapsuleError, did_you_mean
from nlpcapsule.evaluation.bootstrap import paired_bootstrap

FIGURES = ("P@1", "P@3", "P@5", "nDCG@5")  # the rows of a cell's per-document figures


def read_plan(path: Path) -> list[dict[str, Any]]:
    """The systems of a plan."""
    try:
        plan = tomllib.loads(path.read_text(encoding="utf-8"))
        return [
            {"settings": {}, **system, "name": system["name"], "model": system["model"]}
            for system in plan["systems"]
        ]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path}: not a plan with [[systems]] of name, model and settings: {error}"
        ) from None


def find_system(plan: Path, name: str) -> dict[str, Any]:
    """The system of a plan that has this name."""
    systems = {row["name"]: row for row in read_plan(plan)}
    if name not in systems:
        raise ConfigError(f"{plan}: there is no system {name!r}; {did_you_mean(name, systems)}")
    return systems[name]


def run_cells(
    data: Path, plan: Path, seeds: Sequence[int], cells: Path, jobs: int, systems: Sequence[str] = ()
) -> None:
    """Runs the missing cells of a plan, `jobs` at a time."""
    names = systems or [row["name"] for row in read_plan(plan)]
    wanted = [find_system(plan, name)["name"] for name in names]
    commands = [
        [
            sys.executable,
            "-m",
            "nlpcapsule.experiments",
            "cell",
            str(data),
            str(plan),
            name,
            str(seed),
            str(cells),
        ]
        for seed in seeds
        for name in wanted
        if not (cells / f"{name}-seed{seed}.json").exists()
    ]

    def run(command: list[str]) -> str | None:
        name, seed = command[6:8]
        log = cells / f"{name}-seed{seed}.log"
        with log.open("w", encoding="utf-8") as file:
            done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
        said = log.read_text(encoding="utf-8").strip().splitlines()
        print(f"[{name}, seed {seed}] {said[-1] if said else ''}", file=sys.stderr, flush=True)
        return None if done.returncode == 0 else f"{name}, seed {seed}: see {log}"

    cells.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        failures = [failure for failure in pool.map(run, commands) if failure]
    if failures:
        raise NlpCapsuleError("cells failed:\n" + "\n".join(failures))


def summarise(cells: Path, command: str, commit: str) -> dict[str, Any]:
    """Mean and standard deviation over seeds, and the paired bootstrap of every pair of systems."""
    records: dict[str, list[dict[str, Any]]] = {}
    scores: dict[str, list[np.ndarray]] = {}
    for path in sorted(cells.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        records.setdefault(record["system"], []).append(record)
        scores.setdefault(record["system"], []).append(np.load(path.with_suffix(".npy"), allow_pickle=False))
    if not records:
        raise NlpCapsuleError(f"{cells}: no cells to put together")
    first = next(iter(records.values()))[0]
    means = {system: np.mean(arrays, axis=0) for system, arrays in scores.items()}  # (4, documents)
    return {
        "command": command,
        "commit": commit,
        "data": first["data"],
        "hardware": first["hardware"],
        "nlpcapsule": first["nlpcapsule"],
        "systems": {system: _over_seeds(rows) for system, rows in records.items()},
        "paired bootstrap (mean over seeds per document)": {
            f"{ours} - {theirs}": {
                name: asdict(paired_bootstrap(means[ours][row], means[theirs][row]))
                for row, name in enumerate(FIGURES)
            }
            for ours in means
            for theirs in means
            if ours < theirs and means[ours].shape == means[theirs].shape
        },
    }


def _over_seeds(rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = rows[0]["figures"]
    return {
        "seeds": [row["seed"] for row in rows],
        "mean": {name: float(np.mean([row["figures"][name] for row in rows])) for name in names},
        "standard deviation": {name: float(np.std([row["figures"][name] for row in rows])) for name in names},
        "training seconds": [row["training seconds"] for row in rows],
        "milliseconds per document": [row["milliseconds per document"] for row in rows],
        "parameters": rows[0]["parameters"],
        "gpu memory GiB": rows[0]["gpu memory GiB"],
        "documents by routing iterations": rows[0]["documents by routing iterations"],
        "best epoch's select figures": [row["selected on"] for row in rows],
        "loss by epoch": [[epoch["loss"] for epoch in row["epochs"]] for row in rows],
        "config": rows[0]["config"],
    }


def write_summary(summary: dict[str, Any], path: Path) -> None:
    """Writes a results file."""
    write_text(path, json.dumps(summary, indent=1) + "\n")
