"""Answer selection: tables and plots of answer rankers."""

from __future__ import annotations

from benchmarks.label_tables import against_rival, make_from_plan, reading_aid
from benchmarks.table import Table
from benchmarks.table_plots import Interval, systems_plot
from nlpcapsule.compare.table import Record
from nlpcapsule.evaluation.report import markdown_table

_WHOLE = "1"


def answers_markdown(record: Record) -> str:
    """Return MAP with its interval and MRR of each reported part, and the paper's figures."""
    blocks = [f"# {record['title']}\n", f"{record['differs']}\n"]
    for data, fractions in record["results"].items():
        systems = fractions[_WHOLE]
        parts = list(next(iter(systems.values()))["figures"])
        columns = ["system", *(f"{part} {figure}" for part in parts for figure in ("MAP", "MRR"))]
        columns += [f"{parts[0]} MAP against the best rival", "seeds", "MAP in the paper", "MRR in the paper"]
        rows = []
        for name in record["planned"]:
            row = {"system": name}
            if name in systems:
                for part, figures in systems[name]["figures"].items():
                    value, low, high = (
                        100 * figures[key]["mean"] for key in ("MAP", "MAP 95% low", "MAP 95% high")
                    )
                    row[f"{part} MAP"] = f"{value:.1f} [{low:.1f}, {high:.1f}]"
                    row[f"{part} MRR"] = f"{100 * figures['MRR']['mean']:.1f}"
                row[f"{parts[0]} MAP against the best rival"] = against_rival(systems[name], "AP")
                row["seeds"] = str(len(systems[name]["seeds"]))
            else:
                row[f"{parts[0]} MAP"] = "not run"
            printed = record["paper"].get(name, {}).get(record["paper data"].get(data, ""))
            if printed:
                row |= {"MAP in the paper": f"{printed[0]:.2f}", "MRR in the paper": f"{printed[1]:.2f}"}
            rows.append(row)
        blocks += [f"## {data}\n", markdown_table(columns, rows)]
    blocks.append(reading_aid(record))
    return "\n".join(blocks)


def answers_plots(record: Record) -> dict[str, str]:
    """Plot MAP of the first reported part, with its interval."""
    pictures = {}
    for data, fractions in record["results"].items():
        systems = fractions[_WHOLE]
        part = next(iter(next(iter(systems.values()))["figures"]))
        ours: dict[str, Interval] = {}
        for name, system in systems.items():
            figures = system["figures"][part]
            value, low, high = (100 * figures[key]["mean"] for key in ("MAP", "MAP 95% low", "MAP 95% high"))
            ours[name] = (value, low, high)
        where = record["paper data"].get(data, "")
        paper = {
            name: printed[where][0]
            for name, printed in record["paper"].items()
            if name in systems and where in printed
        }
        pictures[f"{record['table']}-{data}"] = systems_plot(
            f"{record['title']}: {data}, {part}", "MAP (%), bars: 95% interval", ours, paper
        )
    return pictures


ANSWER_SELECTION = Table(
    "answer-selection",
    lambda options: make_from_plan("answer-selection", options),
    markdown=answers_markdown,
    plots=answers_plots,
)
