"""The README's tables, written from the files in results/ and never by hand.

A table stands between `<!-- results: NAME -->` and `<!-- end -->`; `python -m nlpcapsule.experiments readme`
writes them anew, and a test fails where the README says something else than the files.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from nlpcapsule.diagnostics.demo_tables import demo_tables

_BLOCK = re.compile(r"(<!-- results: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(readme: str, results: Path) -> str:
    """The README's text with every table as the results files have it."""

    def table(match: re.Match[str]) -> str:
        record = json.loads((results / f"{match[2]}.json").read_text(encoding="utf-8"))
        return match[1] + _RENDER[match[2]](record) + match[3]

    return _BLOCK.sub(table, readme)


def demo_table(record: dict[str, Any]) -> str:
    """What the demo prints: both test parts of the embedded sample, and its questions."""
    text = io.StringIO()
    console = Console(file=text, width=80)
    for table in demo_tables(record["labels"], record["answers"]):
        console.print(table)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "```\n" + "\n".join(lines) + "\n```\n" + _source("demo", record)


def eurlex15k_table(record: dict[str, Any]) -> str:
    """Means and standard deviations over seeds."""
    lines = ["| system | P@1 | P@3 | P@5 | nDCG@5 | PSP@5 |", "|---|---:|---:|---:|---:|---:|"]
    for name, row in record["systems"].items():
        cells = [
            f"{100 * row['mean'][figure]:.2f} ± {100 * row['standard deviation'][figure]:.2f}"
            for figure in ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5")
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n" + _source("eurlex15k", record)


def trecqa_table(record: dict[str, Any]) -> str:
    """MAP with its interval and MRR, on both versions of dev."""
    text = ""
    for part in ("dev-clean", "dev-raw"):
        rows = {name: _with_interval(row["mean"][part], "MAP") for name, row in record["systems"].items()}
        questions = next(iter(record["systems"].values()))["mean"][part]["questions"]
        text += f"{part} ({questions:.0f} questions with a right answer):\n\n"
        text += _interval_table(rows, ["MAP", "MRR"]) + "\n"
    return text.rstrip("\n") + "\n" + _source("trecqa", record)


_RENDER: dict[str, Callable[[dict[str, Any]], str]] = {
    "demo": demo_table,
    "eurlex15k": eurlex15k_table,
    "trecqa": trecqa_table,
}


def _with_interval(row: dict[str, float], figure: str) -> dict[str, str]:
    low, high = row[f"{figure} 95% low"], row[f"{figure} 95% high"]
    return {
        figure: f"{100 * row[figure]:.1f} [{100 * low:.1f}, {100 * high:.1f}]",
        "MRR": f"{100 * row['MRR']:.1f}",
    }


def _interval_table(rows: dict[str, dict[str, str]], columns: list[str]) -> str:
    lines = ["| system | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    lines += [
        f"| {name} | " + " | ".join(row[column] for column in columns) + " |" for name, row in rows.items()
    ]
    return "\n".join(lines) + "\n"


def _source(name: str, record: dict[str, Any]) -> str:
    seeds = record.get("seeds") or next(iter(record["systems"].values()))["seeds"]
    return (
        f"\n<sub>Percent; `results/{name}.json`: {record['hardware']}; "
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}.</sub>\n"
    )
