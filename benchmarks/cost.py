"""`cost`: parameters, time per batch and memory of each system, next to the paper's figures.

Every system is measured in a separate process, one after the other, to isolate its peak memory.
"""

from __future__ import annotations

import json
import signal
from dataclasses import asdict
from pathlib import Path

from benchmarks.checkout_command import checkout_command
from benchmarks.cost_page import cost_markdown, cost_plots
from benchmarks.cost_record import SEED, CostRecord, Spec
from benchmarks.cost_systems import BASES, PRINTED, cost_specs
from benchmarks.run_missing import Run, run_missing
from benchmarks.table import COMMAND, Options, Table
from nlpcapsule.compare.child_process import ChildProcess
from nlpcapsule.compare.comparison import raise_failures
from nlpcapsule.compare.table import Record
from nlpcapsule.errors import ConfigError, did_you_mean
from nlpcapsule.provenance import checked_out_commit, provenance


def make_cost(options: Options) -> Record:
    """Measure the missing systems, if requested, and summarise the finished ones."""
    specs = cost_specs(options.budget)
    known = [spec.system for spec in specs]
    for name in options.systems:
        if name not in known:
            raise ConfigError(f"cost has no system {name!r}: {did_you_mean(name, known)}")
    folder = options.cells / "cost"
    if options.run:
        _measure_missing(
            [spec for spec in specs if spec.system in (options.systems or known)], folder, options
        )
    found = [(spec, _finished(spec, folder)) for spec in specs]
    cells = {spec.system: cell for spec, cell in found if cell is not None}
    budget = "" if options.budget == "full" else f" --budget {options.budget}"
    return {
        "table": "cost",
        **provenance(f"{COMMAND} cost{budget}", commit=options.commit),
        "data": f"random tokens and labels, numpy seed {SEED}",
        "seeds": [SEED],
        "title": "Parameters, time per batch and memory",
        "smoke": options.budget == "smoke",
        "planned": known,
        "systems": {system: {**cell.to_json(), **_beside(cell, cells)} for system, cell in cells.items()},
    }


def _beside(cell: CostRecord, cells: dict[str, CostRecord]) -> Record:
    """Return the paper's figures, and ours relative to the base system measured on the same machine."""
    base = cells.get(BASES[cell.spec.kind])
    ratios = {}
    if base is not None and base.hardware == cell.hardware:
        ours, theirs = _figures(cell), _figures(base)
        ratios = {name: round(ours[name] / theirs[name], 3) for name in ours if theirs.get(name)}
    printed, base_printed = PRINTED[cell.spec.system], PRINTED[BASES[cell.spec.kind]]
    return {
        "ratio to": BASES[cell.spec.kind],
        "ratios": ratios,
        "paper": printed,
        "paper's ratios": {name: round(value / base_printed[name], 2) for name, value in printed.items()},
    }


def _figures(cell: CostRecord) -> dict[str, float]:
    """Return the figures to compare, without those for which memory was too small."""
    figures = {
        "parameters": cell.parameters,
        "parameters without word vectors": cell.parameters_without_word_vectors,
        "training": cell.training.get("milliseconds"),
        "inference": cell.inference.get("milliseconds"),
        "peak memory": cell.peak_memory_mib,
    }
    return {name: value for name, value in figures.items() if value is not None}


def _finished(spec: Spec, folder: Path) -> CostRecord | None:
    """Return the record of a system, if it has been measured with these sizes."""
    path = folder / f"{spec.system}.json"
    values = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return CostRecord.from_json(values) if values is not None and values["spec"] == asdict(spec) else None


def _run(spec: Spec, folder: Path, commit: str) -> Run:
    """Return the run of a system, measured in a separate child process."""
    record, log = folder / f"{spec.system}.json", folder / f"{spec.system}.log"

    def ended(child: ChildProcess) -> None:
        if child.code == -signal.SIGKILL:  # it ran out of memory, which is a result
            CostRecord.of_killed(spec, commit).save(record)

    command = [*checkout_command("benchmarks.cost_cell")]
    command += [json.dumps(asdict(spec)), str(record), commit]
    return Run(
        spec.system, lambda: _finished(spec, folder) is not None, command=command, log=log, ended=ended
    )


def _measure_missing(specs: list[Spec], folder: Path, options: Options) -> None:
    commit = options.commit or checked_out_commit()
    runs = [_run(spec, folder, commit) for spec in specs]
    failures = run_missing(runs, "systems", options.say, jobs=1)  # in parallel, they would disturb the timing
    raise_failures(failures, "systems failed, the others are kept; the same command tries again")


COST = Table("cost", make_cost, cost_markdown, cost_plots)
