"""`cost`: parameters, time per batch and memory of each system, beside what the paper printed.

Every system is measured in its own process, one after the other, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cost_cell import SEED, Spec, write_cost
from benchmarks.table import COMMAND, Options, Table
from benchmarks.table_plots import Interval, systems_plot
from nlpcapsule import __version__
from nlpcapsule.compare.child_process import EndedChild
from nlpcapsule.compare.provenance import checked_out_commit, hardware, provenance
from nlpcapsule.compare.run_missing import Run, RunProgress, raise_failures, run_missing
from nlpcapsule.compare.table import Record, markdown_table
from nlpcapsule.errors import ConfigError, did_you_mean

_PER_CLASS = {"votes": "class"}
_NO_COMPRESSION = {"condensed": 0}
_NO_PARTIAL_ROUTING = {"negatives": "all", "candidates": 0}
# Kind, system, model, settings, and what the paper printed: millions of parameters, seconds per batch.
_SYSTEMS: tuple[tuple[str, str, str, dict[str, Any], dict[str, float]], ...] = (
    ("labels", "xml-cnn", "xml-cnn", {}, {"parameters": 22.52, "seconds": 0.08}),
    ("labels", "released-xml-cnn", "released-xml-cnn", {}, {}),
    ("labels", "paper", "paper", {}, {"parameters": 14.06, "seconds": 0.25}),
    ("labels", "paper-without-partial-routing", "paper", _NO_PARTIAL_ROUTING, {}),
    # A matrix per pair of 14,272 primary capsules and 3,956 labels would be 58 GB of weights.
    ("labels", "paper-class", "paper", _PER_CLASS, {}),
    ("labels", "paper-class-without-compression", "paper", {**_PER_CLASS, **_NO_COMPRESSION}, {}),
    (
        "labels",
        "paper-class-without-both",
        "paper",
        {**_PER_CLASS, **_NO_COMPRESSION, **_NO_PARTIAL_ROUTING},
        {"seconds": 1.7},
    ),
    ("labels", "label-query", "label-query", {}, {}),
    ("labels", "label-query-partial-routing", "label-query", {"negatives": "uniform", "candidates": 200}, {}),
    ("answers", "hd-lstm", "hd-lstm", {}, {"parameters": 34.51, "seconds": 0.03}),
    ("answers", "paper-answers", "paper", {}, {"parameters": 17.84, "seconds": 0.06}),
    ("answers", "paper-answers-without-compression", "paper", _NO_COMPRESSION, {"seconds": 0.12}),
)
_BASES = {"labels": "xml-cnn", "answers": "hd-lstm"}  # what the others are compared with
_PRINTED = {system: printed for _, system, _, _, printed in _SYSTEMS}

_TOKENS = {"full": {"labels": 500, "answers": 64}, "smoke": {"labels": 40, "answers": 12}}
_VECTOR = {"full": 300, "smoke": 24}
_SMALL: dict[str, dict[str, dict[str, Any]]] = {
    "labels": {
        "xml-cnn": {"filters": 8, "bottleneck": 16},
        "released-xml-cnn": {"filters": 4, "bottleneck": 16},
        "paper": {"filters": 4, "condensed": 8, "negative_count": 10, "candidates": 10},
        "label-query": {"filters": 8, "capsule_size": 8, "condensed": 8, "negative_count": 10},
    },
    "answers": {"hd-lstm": {"state_size": 8, "hidden": 8}, "paper": {"filters": 4, "condensed": 8}},
}
_SMALL_SIZES = {"vocabulary": 300, "labels": 60, "own_labels": 3, "batch": 4, "warm_up": 1, "repeats": 3}


def cost_specs(budget: str = "full") -> list[Spec]:
    """Return all systems, in the table's order.

    Args:
        budget: "full", or "smoke" for the same systems, much smaller.
    """
    is_small = budget == "smoke"
    specs = []
    for kind, system, model, settings, _ in _SYSTEMS:
        text = {"max_tokens": _TOKENS[budget][kind], "embedding_size": _VECTOR[budget]}
        own = _SMALL[kind][model] if is_small else {}
        sizes = _SMALL_SIZES if is_small else {}
        specs.append(Spec(system, kind, model, {**text, **own, **settings}, **sizes))
    return specs


def make_cost(options: Options) -> Record:
    """Measure the missing systems, if wanted, and summarise the finished ones."""
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
        "systems": {system: {**cell, **_beside(cell, cells)} for system, cell in cells.items()},
    }


def _beside(cell: Record, cells: dict[str, Record]) -> Record:
    """Return the paper's figures, and ours relative to the base system measured on the same machine."""
    spec = cell["spec"]
    base = cells.get(_BASES[spec["kind"]])
    ratios = {}
    if base is not None and base["hardware"] == cell["hardware"]:
        ours, theirs = _figures(cell), _figures(base)
        ratios = {name: round(ours[name] / theirs[name], 3) for name in ours if theirs.get(name)}
    printed, base_printed = _PRINTED[spec["system"]], _PRINTED[_BASES[spec["kind"]]]
    return {
        "ratio to": _BASES[spec["kind"]],
        "ratios": ratios,
        "paper": printed,
        "paper's ratios": {name: round(value / base_printed[name], 2) for name, value in printed.items()},
    }


def _figures(cell: Record) -> dict[str, float]:
    """Return the figures to compare, without those that memory was too small for."""
    figures = {
        "parameters": cell["parameters"],
        "parameters without word vectors": cell["parameters without word vectors"],
        "training": cell["training"].get("milliseconds"),
        "inference": cell["inference"].get("milliseconds"),
        "peak memory": cell["peak memory MiB"],
    }
    return {name: value for name, value in figures.items() if value is not None}


def _finished(spec: Spec, folder: Path) -> Record | None:
    """Return the record of a system, if it has been measured with these sizes."""
    path = folder / f"{spec.system}.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return record if record is not None and record["spec"] == asdict(spec) else None


@dataclass(frozen=True)
class CostRun(Run):
    """One system, measured in a child process so that its peak memory is its own."""

    spec: Spec
    folder: Path
    commit: str

    @property
    def name(self) -> str:
        """The system's name."""
        return self.spec.system

    @property
    def log(self) -> Path:
        """The log lies beside the record."""
        return self.folder / f"{self.spec.system}.log"

    def is_finished(self) -> bool:
        """Return whether the system has been measured with these sizes."""
        return _finished(self.spec, self.folder) is not None

    def command(self) -> list[str]:
        """Return the command of the child process."""
        spec = json.dumps(asdict(self.spec))
        return [sys.executable, "-m", "benchmarks.cost_cell", spec, str(self._record), self.commit]

    def failure_of(self, child: EndedChild) -> str | None:
        """Return why it failed, or None; a process that was killed ran out of memory, which is a result."""
        if child.code == -signal.SIGKILL:
            write_cost(self._record, _killed(self.spec), self.commit)
            return None
        return super().failure_of(child)

    @property
    def _record(self) -> Path:
        return self.folder / f"{self.spec.system}.json"


def _measure_missing(specs: list[Spec], folder: Path, options: Options) -> None:
    commit = options.commit or checked_out_commit()
    runs = [CostRun(spec, folder, commit) for spec in specs]
    progress = RunProgress(options.say, "systems are measured", "measured")
    failures = run_missing(runs, progress, jobs=1)  # one at a time, so that nothing disturbs the clock
    raise_failures(failures, "systems could not be measured")


def _killed(spec: Spec) -> Record:
    """Return the record of a system that the operating system killed, as it does when memory runs out."""
    outcome = {"out of memory": "killed by the operating system"}
    nothing = ("parameters", "parameters without word vectors", "peak memory MiB", "routing iterations")
    head = {"spec": asdict(spec), "hardware": hardware(), "nlpcapsule": __version__}
    return {**head, **dict.fromkeys(nothing), "training": outcome, "inference": outcome}


def cost_markdown(record: Record) -> str:
    """Return a table for labels and one for answers, and how to read them."""
    blocks = [f"# {record['title']}\n"]
    for kind, base in _BASES.items():
        names = [system for of, system, _, _, _ in _SYSTEMS if of == kind]
        rows = [_row(name, record["systems"].get(name)) for name in names]
        columns = ["system", *dict.fromkeys(column for row in rows for column in row if column != "system")]
        blocks += [f"## {kind.capitalize()}\n", markdown_table(columns, rows)]
        blocks.append(
            _sizes(next((record["systems"][name] for name in names if name in record["systems"]), None))
        )
        blocks.append(f"In brackets: how many times the figure of {base}, here and in the paper.\n")
    blocks.append(_reading_aid(record))
    return "\n".join(blocks)


def _row(name: str, system: Record | None) -> dict[str, str]:
    printed = _PRINTED[name]
    if system is None:
        return {"system": name, "parameters": "not measured"}
    ratios, theirs = system["ratios"], system["paper's ratios"]
    return {
        "system": name,
        "parameters": _millions(system["parameters"], ratios.get("parameters")),
        "without word vectors": _millions(
            system["parameters without word vectors"], ratios.get("parameters without word vectors")
        ),
        "training batch": _time(system["training"], ratios.get("training")),
        "inference batch": _time(system["inference"], ratios.get("inference")),
        "peak memory": _times(system["peak memory MiB"], ",.0f", " MiB", ratios.get("peak memory")),
        "routing iterations": _times(system["routing iterations"], "g", "", None),
        "parameters in the paper": _times(printed.get("parameters"), ".2f", "M", theirs.get("parameters")),
        "batch in the paper": _times(printed.get("seconds"), "g", " s", theirs.get("seconds")),
    }


def _times(value: float | None, form: str, unit: str, ratio: float | None) -> str:
    """Format a figure with its unit and its ratio."""
    if value is None:
        return ""
    return f"{value:{form}}{unit}" + ("" if ratio is None else f" ({ratio:.3g}×)")


def _millions(value: int | None, ratio: float | None) -> str:
    return _times(None if value is None else value / 1e6, ".2f", "M", ratio)


def _time(outcome: Record, ratio: float | None) -> str:
    if "out of memory" in outcome:
        return f"out of memory ({outcome['out of memory']})"
    return _times(outcome["milliseconds"], ",.1f", " ms", ratio)


def _sizes(system: Record | None) -> str:
    if system is None:
        return ""
    spec = system["spec"]
    settings, kind = spec["settings"], spec["kind"]
    what = "documents" if kind == "labels" else "pairs of question and answer"
    of_labels = f", {spec['labels']:,} labels, {spec['own_labels']} of them per document"
    return (
        f"A batch is {spec['batch']} {what} of {settings['max_tokens']} random tokens; "
        f"{spec['vocabulary']:,} words of {settings['embedding_size']} random numbers"
        f"{of_labels if kind == 'labels' else ''}.\n"
    )


def _reading_aid(record: Record) -> str:
    places = sorted({system["hardware"] for system in record["systems"].values()})
    smoke = "Small systems: this shows that the table can be made, no more. " if record["smoke"] else ""
    return (
        f"{smoke}Time: median of several batches after a warm-up, float32, without reading data; a training "
        "batch is forward, backward and optimiser step; inference with partial routing includes "
        "the Kim-CNN that nominates the labels to route to, which its parameters do not. Peak memory is that "
        "of training: of tensors on a GPU, else of the process less what it held before the network was "
        "built. Routing iterations are the mean of the first training batch; a trained network may take "
        "more.\n\n"
        "Ours differ from the paper's in hardware and batch size, neither of which the paper states; nor "
        "does it state the vocabulary or whether word vectors count: compare the ratios, not the seconds. "
        "Its 1.7 s and 0.12 s are those without acceleration.\n\n"
        f"Made by `{record['command']}` on {'; '.join(places) or 'no machine yet'}.\n"
    )


def cost_plots(record: Record) -> dict[str, str]:
    """Plot the time per training batch, relative to the base system, for labels and for answers."""
    pictures = {}
    for kind, base in _BASES.items():
        systems = {
            name: system
            for name, system in record["systems"].items()
            if system["spec"]["kind"] == kind and "training" in system["ratios"]
        }
        ours: dict[str, Interval] = {
            name: (ratio, ratio, ratio)
            for name, ratio in ((name, system["ratios"]["training"]) for name, system in systems.items())
        }
        paper = {
            name: system["paper's ratios"]["seconds"]
            for name, system in systems.items()
            if "seconds" in system["paper's ratios"]
        }
        if ours:
            pictures[f"cost-{kind}"] = systems_plot(
                f"Time per training batch: {kind}", f"times as long as {base}", ours, paper
            )
    return pictures


COST = Table("cost", make_cost, cost_markdown, cost_plots)
