"""`cost`: parameters, time per batch and memory of each system, beside what the paper printed.

Every system is measured in a process of its own, one after the other, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nlpcapsule import __version__
from nlpcapsule.errors import ConfigError, NlpCapsuleError, did_you_mean
from nlpcapsule.experiments.cost_cell import SEED, Spec, write_cost
from nlpcapsule.experiments.provenance import checked_out_commit, hardware, provenance
from nlpcapsule.experiments.table import Options, Record, Table, markdown_table
from nlpcapsule.experiments.table_plots import Interval, systems_plot

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
    """All systems, in the table's order.

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
    """Measures the missing systems, where wanted, and puts the finished ones together."""
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
        **provenance(f"nlpcapsule reproduce cost{budget}", commit=options.commit),
        "data": f"random tokens and labels, numpy seed {SEED}",
        "seeds": [SEED],
        "title": "Parameters, time per batch and memory",
        "smoke": options.budget == "smoke",
        "planned": known,
        "systems": {system: {**cell, **_beside(cell, cells)} for system, cell in cells.items()},
    }


def _beside(cell: Record, cells: dict[str, Record]) -> Record:
    """The paper's figures, and ours as ratios to the base system's if it was measured on the same machine."""
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
    """What is compared; figures that memory was too small for are not there."""
    figures = {
        "parameters": cell["parameters"],
        "parameters without word vectors": cell["parameters without word vectors"],
        "training": cell["training"].get("milliseconds"),
        "inference": cell["inference"].get("milliseconds"),
        "peak memory": cell["peak memory MiB"],
    }
    return {name: value for name, value in figures.items() if value is not None}


def _finished(spec: Spec, folder: Path) -> Record | None:
    """The record of a system that has been measured in this very way."""
    path = folder / f"{spec.system}.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return record if record is not None and record["spec"] == asdict(spec) else None


def _measure_missing(specs: list[Spec], folder: Path, options: Options) -> None:
    missing = [spec for spec in specs if _finished(spec, folder) is None]
    options.say(f"{len(specs) - len(missing)} of {len(specs)} systems are measured")
    folder.mkdir(parents=True, exist_ok=True)
    commit = options.commit or checked_out_commit()
    failures = []
    for number, spec in enumerate(missing, start=1):
        failure = _measure_beside(spec, folder, commit)
        options.say(f"[{number}/{len(missing)}] {spec.system}: {'failed' if failure else 'measured'}")
        failures += [f"{spec.system}: {failure}"] if failure else []
    if failures:
        raise NlpCapsuleError("systems could not be measured, the others are kept:\n" + "\n".join(failures))


def _measure_beside(spec: Spec, folder: Path, commit: str) -> str | None:
    """Measures a system in a process of its own; what went wrong, if something did."""
    path, log = folder / f"{spec.system}.json", folder / f"{spec.system}.log"
    command = [
        sys.executable,
        "-m",
        "nlpcapsule.experiments.cost_cell",
        json.dumps(asdict(spec)),
        str(path),
        commit,
    ]
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode == -signal.SIGKILL:
        write_cost(path, _killed(spec), commit)
    elif done.returncode:
        said = log.read_text(encoding="utf-8").strip().splitlines()
        return f"{said[-1] if said else 'nothing was said'} (all of it: {log})"
    log.unlink()
    return None


def _killed(spec: Spec) -> Record:
    """A system that the operating system put an end to, as it does when memory runs out."""
    outcome = {"out of memory": "killed by the operating system"}
    nothing = ("parameters", "parameters without word vectors", "peak memory MiB", "routing iterations")
    head = {"spec": asdict(spec), "hardware": hardware(), "nlpcapsule": __version__}
    return {**head, **dict.fromkeys(nothing), "training": outcome, "inference": outcome}


def cost_markdown(record: Record) -> str:
    """A table for labels and one for answers, and how to read them."""
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
    """A figure with its unit and its ratio."""
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
    """Time per training batch, as a multiple of the base system's, for labels and for answers."""
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
