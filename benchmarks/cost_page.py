"""Render the table `cost` as a Markdown page and as plots."""

from __future__ import annotations

from benchmarks.cost_systems import BASES, PRINTED, SYSTEMS
from benchmarks.table_plots import Interval, systems_plot
from nlpcapsule.compare.table import Record
from nlpcapsule.evaluation.report import markdown_table


def cost_markdown(record: Record) -> str:
    """Return a table for labels and one for answers, with an explanation."""
    blocks = [f"# {record['title']}\n"]
    for kind, base in BASES.items():
        names = [system for of, system, _, _, _ in SYSTEMS if of == kind]
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
    printed = PRINTED[name]
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
    for kind, base in BASES.items():
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
