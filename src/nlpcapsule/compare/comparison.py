"""`nlpcapsule compare`: train systems on one split of a user's data and compare their metrics."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nlpcapsule.atomic_files import write_text
from nlpcapsule.compare.child_process import POLL_SECONDS, ChildProcess
from nlpcapsule.compare.data import UserFolder
from nlpcapsule.compare.measuring import ANSWER_FIGURES, LABEL_FIGURES, RUN_JSON, SystemRun, run_name
from nlpcapsule.compare.record import load_per_document, load_record, save_record
from nlpcapsule.compare.systems import missing_package
from nlpcapsule.compare.table import markdown
from nlpcapsule.config import DEFAULT_SYSTEM, Config
from nlpcapsule.errors import NlpCapsuleError
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
            name: load_record(path) | against_best_rival(name, scores, source.kind)
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
    """Run unfinished systems, each in a child process, `jobs` at a time; return the reasons of failures.

    With `show_errors`, a child's standard error, its progress, goes to the terminal instead of its log.
    Ctrl-C stops all of them; what they have written stays.
    """
    missing = [name for name, run in runs.items() if not run.record.exists()]
    say(f"{len(runs) - len(missing)} of {len(runs)} systems are finished")
    waiting, active = list(missing), dict[str, ChildProcess]()
    failures: dict[str, str] = {}
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                name = waiting.pop(0)
                say(f"{name}: started")
                log = runs[name].record.with_suffix(".log")
                active[name] = ChildProcess(child_command(runs[name]), log, show_errors, watches_memory=True)
            for name in [name for name, child in active.items() if child.has_ended()]:
                child = active.pop(name)
                if runs[name].record.exists():
                    _add_memory(runs[name].record, child.peak_bytes)
                    child.log.unlink()
                else:
                    failures[name] = child.last_words
                done = len(missing) - len(waiting) - len(active)
                say(f"[{done}/{len(missing)}] {name}: {failures.get(name, 'done')}")
            if active:
                time.sleep(POLL_SECONDS)
    finally:
        for child in active.values():
            child.stop()
    return failures


def child_command(run: SystemRun) -> list[str]:
    """Return the command of the child process that runs a system."""
    return [*module_command("nlpcapsule.compare"), RUN_JSON.dump_json(run).decode()]


def _add_memory(path: Path, peak_bytes: int) -> None:
    """Add the memory of a child process and its children to the record that it has written."""
    record = load_record(path)
    peak = max(record["process memory GiB"], round(peak_bytes / 2**30, 2))
    save_record(path, record | {"process memory GiB": peak})


def raise_failures(failures: dict[str, str], what: str) -> None:
    """Raise one error that names every failed run, if any."""
    if failures:
        reasons = "\n".join(f"{name}: {why}" for name, why in failures.items())
        raise NlpCapsuleError(f"{what}:\n{reasons}")


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
