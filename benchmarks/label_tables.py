"""The main table, the routing comparison and the training fractions of label systems."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.plan import Plan, read_plan
from benchmarks.run_cells import run_cells
from benchmarks.summary import summarise
from benchmarks.table import COMMAND, Options, Table
from benchmarks.table_plots import Interval, fractions_plot, systems_plot
from nlpcapsule.compare.table import Record, markdown_table
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.provenance import provenance

FIGURES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5")
_PRINTED = ("P@1", "P@3", "P@5")  # the paper's figures for each data set
_WHOLE = "1"
MEMORY = "peak GiB"


def make_from_plan(name: str, options: Options) -> Record:
    """Run the missing cells of a table, if requested, and summarise the finished ones."""
    plan = read_plan(name, options.budget)
    cells = plan.cells(options.seeds, options.systems)
    if options.run:
        run_cells(cells, options)
    earlier = options.output / f"{name}.json"
    known = json.loads(earlier.read_text(encoding="utf-8")) if earlier.exists() else None
    record = summarise(plan, plan.cells(options.seeds), options.cells, known)
    if not record["results"]:
        raise NlpCapsuleError(f"no cell of {name} is finished under {options.cells}: leave --no-run out")
    return {"table": name, **provenance(_command(plan, options), commit=options.commit), **record}


def _command(plan: Plan, options: Options) -> str:
    budget = "" if options.budget == "full" else f" --budget {options.budget}"
    data = "" if options.data is None else " --data DIR"
    seeds = "" if options.seeds is None else f" --seeds {options.seeds}"
    return f"{COMMAND} {plan.name}{data}{budget}{seeds}"


def systems_markdown(record: Record) -> str:
    """Return a table per data set: metrics over seeds, the paper's, and the difference to the best rival."""
    blocks = [f"# {record['title']}\n", f"{record['differs']}\n"]
    for data in record["planned data"]:
        blocks.append(f"## {data}\n")
        blocks.append(systems_table(record, data, record["results"].get(data, {}).get(_WHOLE, {})))
    blocks.append(reading_aid(record))
    return "\n".join(blocks)


def systems_table(record: Record, data: str, systems: dict[str, Any]) -> str:
    """Return one data set's rows, with "not run" for planned systems without results."""
    where = record["paper data"].get(data, "")
    paper_columns = [f"{where} {figure} in the paper" for figure in _PRINTED] if where else []
    rows = []
    for name in record["planned on"][data]:
        row = {"system": name}
        if name not in systems:
            row["P@1"] = "not run"
        else:
            row |= _figures(systems[name])
            if systems[name]["best rival"] == _best_rival(systems, name):
                row["P@1 against the best rival"] = against_rival(systems[name], "P@1")
            row["seeds"] = str(len(systems[name]["seeds"]))
            row[MEMORY] = peak_memory(systems[name])
        printed = record["paper"].get(name, {}).get(where)
        if isinstance(printed, str):
            row[paper_columns[0]] = printed
        elif printed:
            row |= {column: f"{value:.2f}" for column, value in zip(paper_columns, printed, strict=True)}
        rows.append(row)
        alone = systems.get(name, {}).get("network alone")
        if alone:
            own = {"figures": alone, "seeds": systems[name]["seeds"]}
            rows.append({"system": f"{name}: its network alone", **_figures(own)})
    columns = ["system", *FIGURES, "P@1 against the best rival", "seeds", MEMORY, *paper_columns]
    return markdown_table(columns, rows)


def _best_rival(systems: dict[str, Any], name: str) -> str | None:
    """Return the best other system of a table by P@1, even if they were not run together."""
    others = {other: system["figures"]["P@1"]["mean"] for other, system in systems.items() if other != name}
    return max(others, key=lambda other: others[other], default=None)


def systems_plots(record: Record) -> dict[str, str]:
    """Plot P@1 of each data set's systems."""
    pictures = {}
    for data, parts in record["results"].items():
        systems = parts[_WHOLE]
        where = record["paper data"].get(data, "")
        paper = {
            name: printed[where][0]
            for name, printed in record["paper"].items()
            if name in systems and isinstance(printed.get(where), list)
        }
        ours: dict[str, Interval] = {}
        for name, system in systems.items():
            value, deviation = (100 * system["figures"]["P@1"][part] for part in ("mean", "deviation"))
            ours[name] = (value, value - deviation, value + deviation)
        pictures[f"{record['table']}-{data}"] = systems_plot(
            f"{record['title']}: {data}", "P@1 (%); bars: over seeds", ours, paper
        )
    return pictures


def fractions_markdown(record: Record) -> str:
    """Return P@1 and nDCG@5 by training fraction, and the paper's figures."""
    blocks = [f"# {record['title']}\n", f"{record['differs']}\n"]
    for data in record["planned data"]:
        for figure in ("P@1", "nDCG@5"):
            blocks += [f"## {data}, {figure}\n", fractions_table(record, data, figure)]
    blocks.append(reading_aid(record))
    return "\n".join(blocks)


def fractions_table(record: Record, data: str, figure: str) -> str:
    """Return one metric by training fraction, a row per system, then the paper's."""
    columns = {f"{fraction:g}": f"{fraction:.0%}" for fraction in record["planned fractions"]}
    parts = record["results"].get(data, {})
    rows = []
    for name in record["planned"]:
        row = {figure: name}
        for fraction, column in columns.items():
            system = parts.get(fraction, {}).get(name)
            mean = None if system is None else system["figures"][figure]["mean"]
            row[column] = "not run" if mean is None else f"{100 * mean:.2f}"
        rows.append(row)
    if figure == "P@1":
        for name, points in _printed_by_fraction(record, data).items():
            rows.append({figure: name} | {f"{part:.0%}": f"{value:.2f}" for part, value in points})
    return markdown_table([figure, *columns.values()], rows)


def _printed_by_fraction(record: Record, data: str) -> dict[str, list[tuple[float, float]]]:
    """Return row → the (fraction, P@1) pairs that the paper printed."""
    where = record["paper data"].get(data, "")
    return {
        f"{name}, {where} in the paper": list(zip(record["paper fractions"], printed[where], strict=True))
        for name, printed in record["paper"].items()
        if where in printed
    }


def fractions_plots(record: Record) -> dict[str, str]:
    """Plot P@1 by training fraction, a line per system and one for the paper's."""
    pictures = {}
    for data, parts in record["results"].items():
        lines: dict[str, list[tuple[float, float]]] = {}
        for fraction, systems in parts.items():
            for name, system in systems.items():
                value = 100 * system["figures"]["P@1"]["mean"]
                lines.setdefault(name, []).append((float(fraction), value))
        lines |= _printed_by_fraction(record, data)
        pictures[f"{record['table']}-{data}"] = fractions_plot(f"{record['title']}: {data}", "P@1 (%)", lines)
    return pictures


def spread(system: dict[str, Any], figure: str) -> str:
    """Format mean ± standard deviation over seeds, in percent; one seed has no deviation."""
    found = system["figures"][figure]
    deviation = f" ± {100 * found['deviation']:.2f}" if len(system["seeds"]) > 1 else ""
    return f"{100 * found['mean']:.2f}{deviation}"


def _figures(system: dict[str, Any]) -> dict[str, str]:
    return {figure: spread(system, figure) for figure in FIGURES}


def peak_memory(system: dict[str, Any]) -> str:
    """Format the peak memory of training: the GPU's if it ran on one, else the process's."""
    if system["gpu memory GiB"] is not None:
        return f"{system['gpu memory GiB']:.1f} GPU"
    held = system["process memory GiB"]
    return "" if held is None else f"{held:.1f} RAM"


def against_rival(system: dict[str, Any], figure: str) -> str:
    """Format the difference to the best other system with its 95% interval, in points."""
    if system["best rival"] is None:
        return ""
    found = system["difference to the best rival"][figure]
    low, high = 100 * found["low"], 100 * found["high"]
    return f"{100 * found['difference']:+.2f} [{low:+.2f}, {high:+.2f}] ({system['best rival']})"


def reading_aid(record: Record) -> str:
    """Return an explanation of the figures and their provenance."""
    hardware = sorted(
        {
            system["hardware"]
            for parts in record["results"].values()
            for systems in parts.values()
            for system in systems.values()
        }
    )
    return (
        "Percent; mean ± standard deviation over seeds, selected and reported on different documents. The "
        "difference to the best other system has a 95% interval from a paired bootstrap over documents; it "
        "is left out where the two were run at different times. "
        f"Made by `{record['command']}` on {'; '.join(hardware)}.\n"
    )


def table_of_plan(name: str, **parts: Any) -> Table:
    """Return the table that a plan describes."""
    return Table(name, lambda options: make_from_plan(name, options), **parts)


MAIN_TABLE = table_of_plan("main-table", markdown=systems_markdown, plots=systems_plots)
ROUTING_COMPARISON = table_of_plan("routing-comparison", markdown=systems_markdown, plots=systems_plots)
PAPER_PARTS = table_of_plan("paper-parts", markdown=systems_markdown, plots=systems_plots)
LOW_RESOURCE = table_of_plan("low-resource", markdown=fractions_markdown, plots=fractions_plots)
