"""Tables of the speed benchmarks, from results/speed-*.json, for the documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nlpcapsule.evaluation.report import markdown_table
from nlpcapsule.provenance import CHANGED

Record = Mapping[str, Any]


def steps_table(name: str, record: Record) -> str:
    """Return the time and memory of a training step, as labels or tokens grow."""
    grows = "tokens" if "tokens" in name else "labels"
    rows = [
        {
            grows: f"{row[grows]:,}",
            "ms per step": f"{row['milliseconds']:,.0f}",
            "ratio": f"{row['ratio']:.2f}",
            "CPU ms per step": f"{row['cpu_milliseconds']:,.0f}",
            "CPU ratio": f"{row['cpu_ratio']:.2f}",
            "memory, GiB": f"{row['peak_memory_mib'] / 2**10:.2f}",
        }
        for row in record["rows"]
    ]
    note = f"batches of {record['batch_size']}, medians of {record['rounds']} rounds and of their ratios"
    return _table(name, record, rows, note)


def memory_table(name: str, record: Record) -> str:
    """Return the peak memory of training by stage, as documents grow."""
    rows = [
        {
            "documents": f"{row['documents']:,}",
            **{stage: f"{held:,}" for stage, held in row["peak_memory_mib_of_stages"].items()},
            "peak, MiB": f"{row['peak_memory_mib']:,}",
            "ratio": f"{row['ratio']:.2f}",
            "with mapped files": f"{row['peak_resident_mib']:,}",
            "CPU s": f"{row['cpu_seconds']:,.0f}",
        }
        for row in record["rows"]
    ]
    return _table(name, record, rows)


def processes_table(name: str, record: Record) -> str:
    """Return the time of an epoch, as processes grow."""
    rows = [
        {
            "processes": str(row["processes"]),
            "s per epoch": f"{row['seconds']:.1f}",
            "speed-up": f"{row['speedup']:.2f}",
            "memory, MiB": f"{row['peak_memory_mib']:,}",
            "cores that others used": f"{row['machine']['cores_used_by_other_processes']:.1f}",
        }
        for row in record["rows"]
    ]
    return _table(name, record, rows)


def neighbours_table(name: str, record: Record) -> str:
    """Return the time and accuracy of a search for similar documents."""
    rows = [
        {
            "compared": row["system"],
            "ms per document": f"{row['milliseconds']:.2f}",
            "CPU ms": f"{row['cpu_milliseconds']:.2f}",
            "P@1": f"{100 * row['precision_at_1']:.2f}",
            "the same nearest": f"{row['same_nearest']:.1%}",
        }
        for row in record["rows"]
    ]
    return _table(name, record, rows, f"{record['documents']:,} documents, {record['asked']:,} searches")


def documents_table(name: str, record: Record) -> str:
    """Return the cost of a training with many labels, and what it reaches."""
    machine = record["machine"]
    row = {
        "documents": f"{record['documents']:,}",
        "labels": f"{record['labels']:,}",
        "candidates, s": f"{record['candidates_seconds']:.0f}",
        "first epoch, s": f"{record['epoch_seconds']:.0f}",
        "CPU, core-minutes": f"{record['cpu_seconds'] / 60:.1f}",
        "memory, GiB": f"{record['peak_memory_gib']:.2f}",
        "recall@200": f"{100 * record['candidate_recall']:.1f}",
        "ceiling of recall": f"{100 * record['recall_ceiling']:.1f}",
        "P@1 of the lexical system": f"{100 * record['lexical_precision_at_1']:.1f}",
        "P@1": f"{100 * record['precision_at_1']:.1f}",
        "ceiling of P@1": f"{100 * record['precision_ceiling']:.1f}",
    }
    gpu = record["peak_gpu_memory_gib"]
    if gpu is not None:
        row["GPU memory, GiB"] = f"{gpu:.1f}"
    share = (
        f"{machine['cores_used']} of {machine['cores']} cores used, "
        f"{machine['cores_used_by_other_processes']} by other processes"
    )
    return _table(name, record, [row], share)


def predict_table(name: str, record: Record) -> str:
    """Return the time of prediction from raw text, as ratios to Omikuji's."""
    rows = [
        {
            "system": row["system"],
            "ms per document": f"{row['milliseconds']:.2f}",
            "ratio": f"{row['ratio']:.2f}",
            "ms of a request": f"{row['request_milliseconds']:.2f}",
            "its ratio": f"{row['request_ratio']:.2f}",
            "CPU s of a process": f"{row['process_cpu_seconds']:.2f}",
            "its memory, MiB": f"{row['process_memory_mib']:.0f}",
            "P@1": f"{100 * row['precision_at_1']:.2f}",
            "logits differ by": "" if row["difference"] is None else f"{row['difference']:.0e}",
        }
        for row in record["rows"]
    ]
    trained = [
        f"{model}: {facts['epochs']} epochs, {facts['negatives']} negatives, {facts['precision']}"
        for model, facts in record["models"].items()
        if "epochs" in facts
    ]
    remarks = [f"{record['documents']:,} documents, {record['timed']:,} of them timed", *trained]
    return _table(name, record, rows, "; ".join(remarks))


def routing_table(name: str, record: Record) -> str:
    """Return the time of a training step of capsule networks, as ratios to convolutional networks."""
    rows = []
    for row in record["rows"]:
        shown = {"network": row["system"]}
        for kind in ("launched", "recorded"):
            if f"{kind}_ratio" in row:
                shown[f"ms, {kind}"] = f"{row[f'{kind}_milliseconds']:.2f}"
                shown[f"ratio, {kind}"] = f"{row[f'{kind}_ratio']:.2f}"
        shown["to"] = row["reference"] or ""
        if any("recorded_ratio_alike" in each for each in record["rows"]):
            alike = row.get("recorded_ratio_alike")
            shown["ratio, same convolution"] = f"{alike:.2f}" if alike else ""
        rows.append({**shown, "memory, MiB": f"{row['peak_memory_mib']:,}"})
    sizes = f"{record['batch_size']} documents of {record['tokens']} tokens, {record['labels']:,} labels"
    return _table(name, record, rows, sizes)


def trainings_table(name: str, ways: tuple[str, str], record: Record) -> str:
    """Return trainings in two ways, in turn, and the ratios of the second to the first."""
    rows = [
        {
            "seed": str(training["seed"]),
            "training": way.format(shortened(training["commit"], 7)),
            "s": f"{training['seconds']:,.0f}",
            "CPU s": f"{training['cpu_seconds']:,.0f}",
            "memory, MiB": f"{training['peak_memory_mib']:,.0f}",
            "P@1": f"{100 * training['precision_at_1']:.2f}",
        }
        for turn in record["rounds"]
        for way, training in zip(ways, turn, strict=True)
    ]
    told = f"ratio of times {record['ratio']:.2f}, of CPU times {record['cpu_ratio']:.2f}"
    if record["settings"]:
        told = f"{', '.join(record['settings'])}; {told}"
    return _table(name, record, rows, f"{told} (medians); points of P@1 lost {record['lost_points']:.2f}")


def shortened(commit: str, digits: int) -> str:
    """Return a commit with fewer digits, and with the mark of changed code if it has it."""
    hash_, mark, _ = commit.partition(CHANGED)
    return hash_[:digits] + mark


def _table(name: str, record: Record, rows: list[dict[str, str]], note: str = "") -> str:
    used = [column for column in rows[0] if any(row[column] for row in rows)]
    told = f"{note}; " if note else ""
    source = f"\n<sub>{told}`results/{name}.json`: {record['hardware']}.</sub>\n"
    return markdown_table(used, rows) + source


_STEPS = ("speed-labels", "speed-labels-256", "speed-labels-gpu-32", "speed-labels-gpu-256", "speed-tokens")
GROWTH: dict[str, Callable[[Any], str]] = {
    **{name: partial(steps_table, name) for name in _STEPS},
    "speed-memory": partial(memory_table, "speed-memory"),
    "speed-predict": partial(predict_table, "speed-predict"),
    "speed-routing": partial(routing_table, "speed-routing"),
    "speed-processes": partial(processes_table, "speed-processes"),
    "speed-neighbours": partial(neighbours_table, "speed-neighbours"),
    **{name: partial(documents_table, name) for name in ("speed-documents", "speed-documents-gpu")},
    **{
        name: partial(trainings_table, name, ("commit {}", "commit {}"))
        for name in ("speed-train", "speed-pages")
    },
    "speed-busy": partial(trainings_table, "speed-busy", ("alone", "next to a busy process")),
}
