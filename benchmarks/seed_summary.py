"""Summarise runs: means and deviations over seeds, and paired tests against the best other system."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from benchmarks.cell import CellRecord
from nlpcapsule.compare.comparison import against_best_rival, paired_differences
from nlpcapsule.compare.record import LOWER_BOUND

_THRESHOLDED = ("micro-F1", "macro-F1")  # metrics that depend on a decision threshold

FinishedRun: TypeAlias = tuple[CellRecord, np.ndarray]  # metrics per document: (metrics, documents)


def summarise_systems(
    systems: Mapping[str, Sequence[FinishedRun]], kind: str, peers: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """Return a row for each system.

    Args:
        systems: System → its runs, one for each seed.
        kind: "labels" or "answers".
        peers: Systems that all others are compared with, in addition to the best other system.
    """
    means = {name: np.mean([scores for _, scores in runs], axis=0) for name, runs in systems.items()}
    summaries = {}
    for name, runs in systems.items():
        summaries[name] = {
            **_over_seeds([record for record, _ in runs], kind),
            **against_best_rival(name, means, kind),
        }
        if peers and name not in peers:
            summaries[name]["difference to peers"] = {
                peer: {
                    figure: asdict(found)
                    for figure, found in paired_differences(kind, means[name], means[peer]).items()
                }
                for peer in peers
                if peer in systems
            }
    return summaries


def _over_seeds(records: list[CellRecord], kind: str) -> dict[str, Any]:
    first = records[0]
    figures: dict[str, Any] = (
        _spread([record.figures for record in records])
        if kind == "labels"
        else {part: _spread([record.figures[part] for record in records]) for part in first.figures}
    )
    network = [_comparable(record.network_only) for record in records if record.network_only]
    speeds = {
        "milliseconds per document": [record.milliseconds_per_document for record in records],
        "milliseconds per question": [record.milliseconds_per_question for record in records],
    }
    return {
        "seeds": [record.cell.seed for record in records],
        "figures": figures,
        "network alone": _spread(network) if network else None,
        "training seconds": [record.training_seconds for record in records],
        **{name: values for name, values in speeds.items() if None not in values},
        **({LOWER_BOUND: True} if any(record.is_lower_bound for record in records) else {}),
        "parameters": first.parameters,
        "model MiB": first.model_mib,
        "gpu memory GiB": first.gpu_memory_gib,
        "process memory GiB": first.process_memory_gib,
        "documents by routing iterations": first.documents_by_iterations,
        "selected on": [record.selected_on for record in records],
        "loss by epoch": [[epoch["loss"] for epoch in record.epochs] for record in records],
        "config": first.config,
        "data": first.data,
        "hardware": first.hardware,
        "commit": first.commit,
    }


def _comparable(figures: dict[str, float]) -> dict[str, float]:
    """Leave out metrics that older records computed with the hybrid system's threshold."""
    return {
        name: value for name, value in figures.items() if "threshold" in figures or name not in _THRESHOLDED
    }


def _spread(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return metric → mean and sample standard deviation over seeds."""
    return {
        name: {
            "mean": float(np.mean([run[name] for run in runs])),
            "deviation": float(np.std([run[name] for run in runs], ddof=1)) if len(runs) > 1 else 0.0,
        }
        for name in runs[0]
        if all(name in run for run in runs)
    }
