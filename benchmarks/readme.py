"""Write the tables of README.md and docs/ from the files in results/.

A table is between `<!-- results: NAME -->` and `<!-- end -->`; `python -m benchmarks readme` writes them
again, and a test fails if a page and the files disagree.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.fusion_table import RARE, figures_table, leads_table
from benchmarks.label_tables import MEMORY, against_rival, fractions_table, peak_memory, spread
from benchmarks.speed.tables import GROWTH
from nlpcapsule.compare.measuring import LABEL_FIGURES
from nlpcapsule.compare.table import at_least
from nlpcapsule.evaluation.report import markdown_table
from nlpcapsule.report.demo_page import demo_tables

_BLOCK = re.compile(r"(<!-- results: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages(root: Path) -> list[Path]:
    """Return the pages of a checkout that hold tables."""
    found = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in found if _BLOCK.search(page.read_text(encoding="utf-8"))]


def with_tables(readme: str, results: Path) -> str:
    """Return the README's text with every table as in the results files."""

    def table(match: re.Match[str]) -> str:
        source = _SOURCES.get(match[2], match[2])
        record = json.loads((results / f"{source}.json").read_text(encoding="utf-8"))
        return match[1] + _RENDER[match[2]](record) + match[3]

    return _BLOCK.sub(table, readme)


def summary_table(record: dict[str, Any]) -> str:
    """Return the rows of the fusion table that the README shows."""
    systems = record["results"]["eurlex15k"]["1"]
    figures = ("P@1", "P@5", "nDCG@5", RARE[-1], "ECE@5")
    rows = [
        {"system": title} | {figure: spread(systems[name], figure) for figure in figures}
        for name, title in _SUMMARY.items()
        if name in systems
    ]
    return markdown_table(["system", *figures], rows) + _source("fusion", _hardware(record))


def demo_table(record: dict[str, Any]) -> str:
    """Return the demo's tables: both test parts of the embedded sample, and its questions."""
    text = io.StringIO()
    console = Console(file=text, width=80)
    for table in demo_tables(record["labels"], record["answers"]):
        console.print(table)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "```\n" + "\n".join(lines) + "\n```\n" + _source("demo", record["hardware"])


def load_table(record: dict[str, Any]) -> str:
    """Return the latencies of a service under load, and what a batch saves."""
    load, cost = record["load"], record["cost"]
    rows = [
        {"request": f"`{path}`"} | {name: f"{value:,.0f}" for name, value in figures.items()}
        for path, figures in load["latency"].items()
    ]
    told = (
        f"{load['callers']} callers for {load['seconds']:.0f} seconds, {load['workers']} process: "
        f"{load['requests per second']:.0f} requests per second, {load['errors']} errors, "
        f"{load['feedback lost']} of {load['feedback acknowledged']:,} acknowledged reviews lost. A "
        f"document in a batch of 32 costs {cost['batch / alone']:.2f} of one alone; the batcher adds "
        f"{cost['added by the batcher ms']:.1f} ms to one alone."
    )
    table = markdown_table(["request", "requests", "p50 ms", "p99 ms"], rows)
    return f"{told}\n\n{table}\n<sub>`results/load.json`: {record['hardware']}.</sub>\n"


def learn_table(record: dict[str, Any]) -> str:
    """Return what `learn` reaches, next to the model before and to a training from scratch."""
    rows = []
    for title, name in (("before", "before"), ("`learn`", "learned"), ("from scratch", "scratch")):
        found, seconds = record["figures"][name], record["seconds"].get(name.removesuffix("ed"))
        rows.append(
            {
                "model": title,
                "recall@5 of new labels": _with_interval(found, "new recall@5"),
                "P@1 of the others": _with_interval(found, "old P@1"),
                "seconds": "" if seconds is None else f"{seconds:,.0f}",
            }
        )
    return markdown_table(list(rows[0]), rows) + _source("learn-labels", record["hardware"])


def faithfulness_table(record: dict[str, Any]) -> str:
    """Return how much the best label's probability falls if words are deleted."""
    falls = sorted(record["fall"].items(), key=lambda row: -row[1]["mean"])
    interval = "{mean:.3f} [{low:.3f}, {high:.3f}]"
    rows = [
        {"ten words deleted": name, "fall of the probability": interval.format(**row)} for name, row in falls
    ]
    times = "{mean:.1f} [{low:.1f}, {high:.1f}]".format(**record["named / random"])
    more = interval.format(**record["named - tf-idf heaviest"])
    told = (
        f"{record['documents']:,} documents. Deleting the named words takes {times} times as much as "
        f"deleting random words, and {more} more than deleting those of the largest tf-idf weight."
    )
    source = f"\n<sub>`results/faithfulness.json`: {record['hardware']}.</sub>\n"
    return f"{told}\n\n{markdown_table(list(rows[0]), rows)}{source}"


def _with_interval(figures: dict[str, Any], name: str) -> str:
    """Return a share and its 95% interval, in percent."""
    low, high = figures[f"{name} interval"]
    return f"{100 * figures[name]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def main_table(record: dict[str, Any]) -> str:
    """Return every data set's label systems, with the paper's figures."""
    text = ""
    for data in record["results"]:
        text += f"#### {_TITLES[data]}\n\n{_systems(record, data)}\n"
    return text.rstrip("\n") + "\n" + _source("main-table", _hardware(record))


def routing_table(record: dict[str, Any]) -> str:
    """Return the routing algorithms in two networks."""
    return _systems(record, "eurlex15k") + _source("routing-comparison", _hardware(record))


def low_resource_table(record: dict[str, Any]) -> str:
    """Return P@1 by training fraction."""
    return fractions_table(record, "eurlex15k", "P@1") + _source("low-resource", _hardware(record))


def fusion_table(record: dict[str, Any]) -> str:
    """Return hybrids and linear models, with all training documents and with half of them."""
    text = ""
    for data, parts in record["results"].items():
        for fraction, systems in parts.items():
            part = "" if fraction == "1" else f", {float(fraction):.0%} of them"
            ours = {name: row for name, row in systems.items() if row["network alone"]}
            leads = leads_table(ours).replace("### ", "").replace("intervals\n", "intervals:\n", 1)
            text += f"#### {_TITLES[data]}{part}\n\n{figures_table(record, systems)}\n{leads}\n"
    return text.rstrip("\n") + "\n" + _source("fusion", _hardware(record))


def comparison_table(source: str, record: dict[str, Any]) -> str:
    """Return the result of `nlpcapsule compare`: accuracy, cost, and our lead over the best peer."""
    rows = []
    figures = (*LABEL_FIGURES, *RARE, "ECE@5")
    for name, system in record["systems"].items():
        row = {"system": name} | {
            figure: f"{100 * _value(system['figures'][figure]):.2f}" for figure in figures
        }
        row["training minutes"] = f"{at_least(system)}{_value(system['training seconds']) / 60:.1f}"
        row["ms per document"] = f"{_value(system['milliseconds per document']):.1f}"
        row[MEMORY] = peak_memory(system)
        rows.append(row)
    lead = against_rival(record["systems"][record["ours"]], "P@1")
    told = f"`{record['command']}`: {record['ours']} against the best peer, in points of P@1: {lead}.\n"
    return markdown_table(list(rows[0]), rows) + f"\n{told}" + _source(source, record["hardware"])


def _value(found: Any) -> float:
    """Return a number of compare.json; files of older versions have a mean or a list, by seed."""
    if isinstance(found, dict):
        return float(found["mean"])
    return float(found[0] if isinstance(found, list) else found)


def _systems(record: dict[str, Any], data: str) -> str:
    """Return a row per system that has been run, with the paper's figures, and what is missing."""
    systems, where = record["results"][data]["1"], record["paper data"][data]
    printed_column = f"P@1 on {where} in the paper"
    columns = ["system", "P@1", "P@3", "P@5", "nDCG@5", "PSP@5", "seeds", MEMORY, printed_column]
    rows = []
    for name, system in systems.items():
        row = {figure: spread(system, figure) for figure in columns[1:6]}
        row |= {"system": name, "seeds": str(len(system["seeds"])), MEMORY: peak_memory(system)}
        printed = record["paper"].get(name, {}).get(where, "")
        row[printed_column] = f"{printed[0]:.2f}" if isinstance(printed, list) else printed
        rows.append(row)
    waiting = [name for name in record["planned on"][data] if name not in systems]
    missing = f"\nNot run yet: {', '.join(waiting)}.\n" if waiting else ""
    return markdown_table(columns, rows) + missing


def answers_table(record: dict[str, Any]) -> str:
    """Return MAP with its interval and MRR on both versions of dev, with the paper's figures on test."""
    systems = record["results"]["trecqa"]["1"]
    printed_columns = ["MAP in the paper", "MRR in the paper"]
    columns = ["system", "clean MAP", "clean MRR", "raw MAP", "raw MRR", *printed_columns]
    rows = []
    for name, system in systems.items():
        row = {"system": name}
        for part, short in (("dev-clean", "clean"), ("dev-raw", "raw")):
            figures = system["figures"][part]
            value, low, high = (100 * figures[key]["mean"] for key in ("MAP", "MAP 95% low", "MAP 95% high"))
            row[f"{short} MAP"] = f"{value:.1f} [{low:.1f}, {high:.1f}]"
            row[f"{short} MRR"] = f"{100 * figures['MRR']['mean']:.1f}"
        printed = record["paper"].get(name, {}).get("TREC QA")
        if printed:
            row |= {column: f"{value:.2f}" for column, value in zip(printed_columns, printed, strict=True)}
        rows.append(row)
    waiting = [name for name in record["planned"] if name not in systems]
    text = markdown_table(columns, rows)
    if waiting:
        text += f"\nNot run yet: {', '.join(waiting)}.\n"
    return text + _source("answer-selection", _hardware(record))


_TITLES = {
    "eurlex15k": "eurlex15k: 3,321 labels, 15,449 training documents",
    "eurlex57k": "EURLEX57K: 4,066 labels, 42,000 training documents",
    "microthesauri": "Micro-thesauri: the same documents, 127 labels",
    "reuters": "Reuters-21578: 90 labels, 6,993 training documents",
}

# Row of the fusion table → its name in README.
_SUMMARY = {
    "PECOS": "PECOS XR-Linear",
    "Omikuji": "Omikuji",
    "one-vs-rest": "one-vs-rest, linear SVM on tf-idf",
    "label-query": "`label-query`, the network alone",
    "hybrid": "**`hybrid`**, the default: network and lexical system",
    "hybrid with label names": "`hybrid` with label names",
    "hybrid on MiniLM with label names": "the same on MiniLM",
}
_SOURCES = {"summary": "fusion"}  # tables whose file has another name

_RENDER: dict[str, Callable[[dict[str, Any]], str]] = {
    "summary": summary_table,
    "demo": demo_table,
    "load": load_table,
    "main-table": main_table,
    "routing-comparison": routing_table,
    "low-resource": low_resource_table,
    "fusion": fusion_table,
    **{name: partial(comparison_table, name) for name in ("eurlex5k", "eurlex5k-names")},
    "answer-selection": answers_table,
    "learn-labels": learn_table,
    "faithfulness": faithfulness_table,
    **GROWTH,
}


def _hardware(record: dict[str, Any]) -> str:
    """Return the machines that trained the systems of a table."""
    places = {
        system["hardware"]
        for parts in record["results"].values()
        for systems in parts.values()
        for system in systems.values()
    }
    return "; ".join(sorted(places))


def _source(name: str, hardware: str) -> str:
    return f"\n<sub>Percent; `results/{name}.json`: {hardware}.</sub>\n"
