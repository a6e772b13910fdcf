"""What a process and its children take of the machine, sampled while they run."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

_EVERY = 0.5  # seconds between samples
_GPU_EVERY = 10  # samples between questions to the GPU's driver
_GPU = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]


class Usage:
    """Samples memory and CPU time of a process and its children, and how busy the machine is.

    Attributes:
        cpu_seconds: CPU time of all processes.
        peak_memory: Bytes of all processes together, without files that are mapped into memory.
        peak_resident: The same with them, counted in each process.
        peak_gpu_memory: Bytes in use on the GPU, also by others; None without a GPU.
        stage: What the process does now, set by the caller.
        stages: The peak of `peak_memory` in each stage.
    """

    def __init__(self, process: int, every: float = _EVERY) -> None:
        self.cpu_seconds, self.peak_memory, self.peak_resident = 0.0, 0, 0
        self.peak_gpu_memory: int | None = None
        self.stage, self.stages, self._every = "start", dict[str, int](), every
        self._process, self._gpu = psutil.Process(process), shutil.which(_GPU[0]) is not None
        self._began, self._busy = time.perf_counter(), _busy_seconds()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        spent: dict[int, float] = {}
        samples = 0
        while not self._ended.wait(self._every):
            resident = mapped = 0
            with suppress(psutil.Error):
                for process in [self._process, *self._process.children(recursive=True)]:
                    held = process.memory_info()
                    resident += held.rss
                    mapped += _mapped_files(process.pid, getattr(held, "shared", 0))
                    times = process.cpu_times()
                    spent[process.pid] = times.user + times.system
            self.peak_memory = max(self.peak_memory, resident - mapped)
            self.stages[self.stage] = max(self.stages.get(self.stage, 0), resident - mapped)
            self.peak_resident = max(self.peak_resident, resident)
            self.cpu_seconds = sum(spent.values())
            if self._gpu and samples % _GPU_EVERY == 0:
                self.peak_gpu_memory = max(self.peak_gpu_memory or 0, _gpu_memory())
            samples += 1

    def stop(self) -> dict[str, Any]:
        """End the sampling and return the share of the machine that the processes had."""
        self._ended.set()
        self._thread.join()
        seconds = time.perf_counter() - self._began
        others = max(0.0, _busy_seconds() - self._busy - self.cpu_seconds)
        return {
            "cores": psutil.cpu_count() or 1,
            "cores_used": round(self.cpu_seconds / seconds, 2),
            "cores_used_by_other_processes": round(others / seconds, 2),
        }


def _mapped_files(process: int, shared: int) -> int:
    """Return the resident bytes of files; where Linux tells them apart, without those in memory (tmpfs)."""
    status = Path(f"/proc/{process}/status")
    with suppress(OSError):
        found = re.search(r"^RssFile:\s+(\d+) kB", status.read_text(encoding="utf-8"), re.MULTILINE)
        return 2**10 * int(found[1]) if found else shared
    return shared


def _busy_seconds() -> float:
    """Return the seconds that all CPUs of the machine have computed since it started."""
    times = psutil.cpu_times()
    return times.user + times.system + getattr(times, "nice", 0.0)


def _gpu_memory() -> int:
    found = subprocess.run(_GPU, capture_output=True, text=True, check=False).stdout.split()
    return max((2**20 * int(number) for number in found if number.isdecimal()), default=0)
