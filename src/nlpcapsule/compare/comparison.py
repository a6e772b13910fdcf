"""`nlpcapsule compare`: train systems on one split of a user's data and compare their metrics."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nlpcapsule.atomic_files import write_text
from nlpcapsule.compare.data import UserFolder
from nlpcapsule.compare.measuring import ANSWER_FIGURES, LABEL_FIGURES, RUN_JSON, SystemRun, run_name
from nlpcapsule.compare.record import RunRecord, load_per_document
from nlpcapsule.compare.run_missing import ChildProcess, Run, raise_failures, run_missing
from nlpcapsule.compare.systems import missing_package
from nlpcapsule.compare.table import markdown
from nlpcapsule.config import DEFAULT_SYSTEM, Config
from nlpcapsule.evaluation.bootstrap import PairedBootstrap, paired_bootstrap
from nlpcapsule.processes import module_command
from nlpcapsule.provenance import checked_out_commit, provenance

NAME = "compare"


def compare(
    source: UserFolder,
    configs: Mapping[str, Config],
    output: Path,
    jobs: int = 1,
    quiet: bool = False,
    say: Callable[[str], None] = lambda text: None,
    **facts: Any,
) -> tuple[str, dict[str, str]]:
    """Train missing systems, `jobs` at a time, and write compare.json and compare.md into a folder.

    `facts` are entries of compare.json: "command", "sizes" and "seed". Returns the Markdown, and the reasons
    of failures, if any.
    """
    absent = {name: why for name in configs if (why := missing_package(name))}
    if len(absent) == len(configs):
        raise_failures(absent, "none of the systems can run here")
    data, commit = source.name, checked_out_commit()
    runs = {
        name: SystemRun(source, config, output / "cells" / data / f"{run_name(config)}.json", commit)
        for name, config in configs.items()
        if name not in absent
    }
    say(source.split)
    failures = run_systems(runs, say, jobs, show_errors=jobs == 1 and not quiet)
    records = {name: run.record for name, run in runs.items() if run.record.exists()}
    if not records:
        raise_failures(failures, "every system failed")
    scores = {name: load_per_document(path) for name, path in records.items()}
    table = {
        "table": NAME,
        **provenance(commit=commit, **facts),
        "kind": source.kind,
        "data": data,
        "split": source.split,
        "systems at a time": jobs,
        "ours": DEFAULT_SYSTEM[source.kind],
        "systems": {
            name: RunRecord.load(path).to_json() | against_best_rival(name, scores, source.kind)
            for name, path in records.items()
        },
        "not measured": absent | {name: f"failed: {why}" for name, why in failures.items()},
    }
    page = markdown(table)
    write_text(output / f"{NAME}.json", json.dumps(table, indent=1) + "\n")
    write_text(output / f"{NAME}.md", page)
    return page, failures


def run_systems(
    runs: Mapping[str, SystemRun], say: Callable[[str], None], jobs: int, show_errors: bool
) -> dict[str, str]:
    """Run unfinished systems, each in a child process; return the reasons of failures."""
    children = [child_run(name, run) for name, run in runs.items()]
    return run_missing(children, "systems", say, jobs, show_errors)


def child_run(name: str, run: SystemRun) -> Run:
    """Return the run of a system in a child process, whose memory is added to the record."""

    def add_memory(child: ChildProcess) -> None:
        if run.record.exists():
            record = RunRecord.load(run.record)
            peak = max(record.process_memory_gib or 0.0, round(child.peak_bytes / 2**30, 2))
            record.model_copy(update={"process_memory_gib": peak}).save(run.record)

    command = [*module_command("nlpcapsule.compare"), RUN_JSON.dump_json(run).decode()]
    log = run.record.with_suffix(".log")
    return Run(name, run.record.exists, command=command, log=log, ended=add_memory, watches_memory=True)


def paired_differences(kind: str, ours: np.ndarray, theirs: np.ndarray) -> dict[str, PairedBootstrap]:
    """Return metric → the difference of two systems by a paired bootstrap; both are (metrics, documents)."""
    figures = LABEL_FIGURES if kind == "labels" else ANSWER_FIGURES
    return {figure: paired_bootstrap(ours[row], theirs[row]) for row, figure in enumerate(figures)}


def against_best_rival(name: str, scores: Mapping[str, np.ndarray], kind: str) -> dict[str, Any]:
    """Compare a system with the best other one by the first metric; scores are (metrics, documents)."""
    rivals = [other for other in scores if other != name]
    best = max(rivals, key=lambda other: float(scores[other][0].mean()), default=None)
    found = {} if best is None else paired_differences(kind, scores[name], scores[best])
    differences = {figure: asdict(difference) for figure, difference in found.items()}
    return {"best rival": best, "difference to the best rival": differences or None}
