"""Render a comparison as a Markdown page."""

from collections.abc import Mapping
from typing import Any

from nlpcapsule.compare.record import LOWER_BOUND
from nlpcapsule.evaluation.report import ABSENT, markdown_table, metrics_markdown

TAIL = "recall@5 (1-10 examples)"
LABEL_COLUMNS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", TAIL, "ECE@5")
NAMED_COLUMNS = ("recall@5 (0 examples)", "recall@5 among unused labels")  # if labels have names
ANSWER_COLUMNS = ("MAP", "MAP 95% low", "MAP 95% high", "MRR", "MRR 95% low", "MRR 95% high")
_REPORTED = "report"  # the reported part of the answers' metrics

Record = dict[str, Any]  # a table as written to a JSON file


def markdown(record: Record) -> str:
    """Return the page: accuracy, cost, the default against the best peer, and what was not measured."""
    is_labels = record["kind"] == "labels"
    systems, split = record["systems"], record["split"]
    sizes = ", ".join(f"{count:,} {what}" for what, count in record["sizes"].items())
    found = {name: system["figures"].get(_REPORTED, system["figures"]) for name, system in systems.items()}
    columns = LABEL_COLUMNS if is_labels else ANSWER_COLUMNS
    if any(NAMED_COLUMNS[-1] in row for row in found.values()):
        columns = (*columns, *NAMED_COLUMNS)
    blocks = [
        f"# Systems on {record['data'].rpartition('-')[0]}\n",
        f"{split[:1].upper()}{split[1:]}. {sizes}.\n",
        metrics_markdown(found, columns),
        _costs(systems, "milliseconds per document" if is_labels else "milliseconds per question"),
        _against_the_best_peer(record),
        "".join(f"- {name}: not measured: {why}\n" for name, why in record["not measured"].items()),
        _reading_aid(record),
    ]
    return "\n".join(block for block in blocks if block)


def at_least(system: Mapping[str, Any]) -> str:
    """Return the sign before a system's training seconds."""
    return "≥ " if system.get(LOWER_BOUND) else ""


def _costs(systems: Mapping[str, Any], speed: str) -> str:
    rows = [
        {
            "system": name,
            "training seconds": f"{at_least(system)}{system['training seconds']:,.1f}",
            speed: f"{system[speed]:,.2f}",
            "peak memory (MiB)": f"{1024 * system['process memory GiB']:,.0f}",
            "model (MiB)": f"{system['model MiB']:,.1f}",
        }
        for name, system in systems.items()
    ]
    return markdown_table(list(rows[0]), rows)


def _against_the_best_peer(record: Record) -> str:
    ours, systems = record["ours"], record["systems"]
    if ours not in systems or systems[ours]["best rival"] is None:
        return ""
    rival, differences = systems[ours]["best rival"], systems[ours]["difference to the best rival"]
    rows = [
        {
            "figure": {"AP": "MAP"}.get(figure, figure),
            "difference": f"{100 * found['difference']:+.2f}",
            "95% interval": f"{100 * found['low']:+.2f} to {100 * found['high']:+.2f}",
            "p": f"{found['p_value']:.4f}",
        }
        for figure, found in differences.items()
    ]
    unit = "documents" if record["kind"] == "labels" else "questions"
    head = f"{ours} against the best peer, {rival}: points, by a paired bootstrap over {unit}.\n"
    return f"{head}\n{markdown_table(list(rows[0]), rows)}"


def _reading_aid(record: Record) -> str:
    first = next(iter(record["systems"].values()))
    jobs = record["systems at a time"]
    shared = f" {jobs} systems ran in parallel, which affects their times." if jobs > 1 else ""
    meaning = (
        f"Percent; {TAIL}: of true labels with 1 to 10 training documents; ECE@5: calibration error of the "
        f"first five labels; {ABSENT}: no such label. "
        if record["kind"] == "labels"
        else "Percent; intervals from a bootstrap over questions. "
    )
    return (
        f"{meaning}Each system runs in a separate process; its peak memory includes Python and torch."
        f"{shared} Seed {record['seed']}; {first['hardware']}.\nMade by `{record['command']}`.\n"
    )
