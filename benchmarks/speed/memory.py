"""The peak memory of a training as its documents grow."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.checkout_command import checkout_command
from benchmarks.generated import GeneratedLabels
from benchmarks.speed.memory_run import STAGE
from benchmarks.speed.usage import Usage
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.threads import thread_count

# Short documents of few labels, so that a run takes minutes.
_DATA = GeneratedLabels(labels=200, vocabulary=10_000, common_words=10, labels_per_document=2.0)


def memory_of_training(counts: Sequence[int], folder: Path) -> list[dict[str, Any]]:
    """Return a row for each number of documents; ratios are to the first.

    Memory is that of the training and its worker processes, without files that are mapped into memory.
    """
    rows: list[dict[str, Any]] = []
    for count in counts:
        train, model = folder / f"{count}.jsonl", folder / f"model-{count}"
        replace(_DATA, documents=count).write(train)
        usage, machine = _run([str(train), str(model), str(thread_count())])
        peak = usage.peak_memory
        rows.append(
            {
                "documents": count,
                "labels": _DATA.labels,
                "peak_memory_mib": round(peak / 2**20),
                "peak_memory_mib_of_stages": {
                    stage: round(held / 2**20) for stage, held in usage.stages.items()
                },
                "ratio": peak / 2**20 / rows[0]["peak_memory_mib"] if rows else 1.0,
                "peak_resident_mib": round(usage.peak_resident / 2**20),
                "cpu_seconds": usage.cpu_seconds,
                "machine": machine,
            }
        )
    return rows


def _run(arguments: list[str]) -> tuple[Usage, dict[str, Any]]:
    words = [*checkout_command("benchmarks.speed.memory_run"), *arguments]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    usage, lines = Usage(process.pid, every=0.1), []
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        if line.startswith(STAGE):
            usage.stage = line.removeprefix(STAGE).strip()
    code = process.wait()
    machine = usage.stop()
    if code:
        raise NlpCapsuleError(f"the training ended with {code}: {''.join(lines[-12:])}")
    return usage, machine
