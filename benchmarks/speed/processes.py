"""The time of an epoch as processes share it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.generated import GeneratedLabels
from benchmarks.speed.usage import Usage
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.processes import module_command

_DATA = GeneratedLabels(labels=300, documents=3_000)


def speed_of_processes(counts: Sequence[int], folder: Path) -> list[dict[str, Any]]:
    """Train a hybrid (small preset) for an epoch with torchrun, one thread per process."""
    train = folder / "train.jsonl"
    _DATA.write(train)
    rows: list[dict[str, Any]] = []
    for count in counts:
        model = folder / f"model-{count}"
        words = [*module_command("torch.distributed.run"), "--standalone", "--nproc_per_node", str(count)]
        words += ["--module", "nlpcapsule", "train", str(train), "--output", str(model)]
        words += ["--preset", "small", "--epochs", "1", "--device", "cpu", "--quiet"]
        log = folder / f"log-{count}"
        with log.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(words, stderr=file, env={**os.environ, "OMP_NUM_THREADS": "1"})
            usage = Usage(process.pid)
            code = process.wait()
            machine = usage.stop()
        if code:
            lines = log.read_text(encoding="utf-8").splitlines()
            errors = [line for line in lines if line.startswith("error:")] or lines[-12:]
            raise NlpCapsuleError(f"the training failed: {' '.join(errors)}")
        record = json.loads((model / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
        rows.append(
            {
                "processes": count,
                "seconds": record["seconds"],
                "speedup": rows[0]["seconds"] / record["seconds"] if rows else 1.0,
                "loss": record["loss"],
                "rows_per_process": record.get("rows_per_process"),
                "peak_memory_mib": round(usage.peak_memory / 2**20),
                "cpu_seconds": usage.cpu_seconds,
                "machine": machine,
            }
        )
    return rows
