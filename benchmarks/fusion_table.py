"""`fusion`: hybrids of a network and a lexical system compared with linear models."""

from __future__ import annotations

from typing import Any

from benchmarks.label_tables import reading_aid, spread, systems_plots, table_of_plan
from nlpcapsule.compare.measuring import LABEL_FIGURES
from nlpcapsule.compare.table import Record
from nlpcapsule.evaluation.report import markdown_table

RARE = ("recall@5 (0 examples)", "recall@5 (1-10 examples)")
FIGURES = (*LABEL_FIGURES, "PSP@5", "micro-F1", *RARE, "ECE@5")


def fusion_markdown(record: Record) -> str:
    """Return, for each data set and training fraction, the figures and the leads over each peer."""
    blocks = [f"# {record['title']}\n", f"{record['differs']}\n"]
    for data in record["planned data"]:
        for fraction in record["planned fractions"]:
            systems = record["results"].get(data, {}).get(f"{fraction:g}", {})
            if systems:
                part = "" if fraction == 1 else f", {fraction:.0%} of the training documents"
                blocks += [f"## {data}{part}\n", figures_table(record, systems), leads_table(systems)]
    blocks.append(reading_aid(record))
    return "\n".join(blocks)


def figures_table(record: Record, systems: dict[str, Any]) -> str:
    """Return a row per system that was run, and one for the network alone of a hybrid."""
    rows = []
    for name in record["planned"]:
        if name not in systems:
            continue
        system = systems[name]
        rows.append({"system": name, **_figures(system), "seeds": str(len(system["seeds"]))})
        if system["network alone"]:
            alone = {"figures": system["network alone"], "seeds": system["seeds"]}
            rows.append({"system": f"{name}: its network alone", **_figures(alone)})
    return markdown_table(["system", *FIGURES, "seeds"], rows)


def leads_table(systems: dict[str, Any]) -> str:
    """Return how far each system is ahead of each peer, with 95% intervals."""
    rows = [
        {"ahead of": f"{name} of {peer}"} | {figure: _interval(found[figure]) for figure in LABEL_FIGURES}
        for name, system in systems.items()
        for peer, found in system.get("difference to peers", {}).items()
    ]
    table = markdown_table(["ahead of", *LABEL_FIGURES], rows)
    return f"### How far ahead, with 95% intervals\n\n{table}" if rows else ""


def _figures(system: dict[str, Any]) -> dict[str, str]:
    return {figure: spread(system, figure) for figure in FIGURES if figure in system["figures"]}


def _interval(found: dict[str, float]) -> str:
    low, high = 100 * found["low"], 100 * found["high"]
    return f"{100 * found['difference']:+.2f} [{low:+.2f}, {high:+.2f}]"


def _plots(record: Record) -> dict[str, str]:
    whole = {data: parts for data, parts in record["results"].items() if "1" in parts}
    return systems_plots({**record, "results": whole})


FUSION = table_of_plan("fusion", markdown=fusion_markdown, plots=_plots)
