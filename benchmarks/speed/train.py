"""Training from raw text: this checkout against an earlier one, in turn and in one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import Any

from nlpcapsule.errors import ConfigError, NlpCapsuleError

_COMMAND = "from nlpcapsule.cli.app import main; main()"  # as a checkout's own `nlpcapsule`


@dataclass(frozen=True)
class Training:
    """One training of the small preset."""

    commit: str
    seconds: float
    cpu_seconds: float  # of all processes
    peak_memory_mib: float  # of the largest process
    precision_at_1: float  # on documents that neither training nor the choice of settings saw


@dataclass(frozen=True)
class Checkout:
    """A checkout of this repository."""

    folder: Path

    @property
    def commit(self) -> str:
        """The commit that is checked out."""
        git = ["git", "-C", str(self.folder), "rev-parse", "HEAD"]
        done = subprocess.run(git, capture_output=True, text=True, check=False)
        if done.returncode or not (self.folder / "src" / "nlpcapsule").is_dir():
            raise ConfigError(f"{self.folder}: expected a checkout of this repository (git worktree add)")
        return done.stdout.strip()

    def train(self, data: Sequence[Path], settings: Sequence[str], threads: int, folder: Path) -> Training:
        """Train on a file, select on a second, and report P@1 on a third; `folder` gets the model."""
        train, dev, test = map(str, data)
        model, figures = folder / "model", folder / "figures.json"
        output = "--output" if (self.folder / "benchmarks").is_dir() else "--out"  # its former name
        pairs = [word for setting in settings for word in ("--set", setting)]
        arguments = ["train", train, "--dev", dev, output, str(model), "--preset", "small", *pairs]
        began = time.perf_counter()
        cpu_seconds, memory = self._run(arguments, threads)
        seconds = time.perf_counter() - began
        self._run(["evaluate", str(model), test, "--json", str(figures)], threads)
        found = json.loads(figures.read_text(encoding="utf-8"))
        return Training(self.commit, seconds, cpu_seconds, memory, found["P@1"])

    def _run(self, arguments: Sequence[str], threads: int) -> tuple[float, float]:
        """Run its command; return seconds of CPU time, workers included, and MiB of memory."""
        chosen = {name: str(threads) for name in ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT")}
        environment = os.environ | chosen | {"PYTHONPATH": str(self.folder / "src")}
        command = [sys.executable, "-P", "-c", _COMMAND, *arguments]
        with TemporaryFile() as remarks:
            process = subprocess.Popen(command, env=environment, stdout=remarks, stderr=remarks)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            remarks.seek(0)
            lines = remarks.read().decode(errors="replace").splitlines()
        if process.returncode:
            raise NlpCapsuleError(f"{self.folder}: {arguments[0]} failed: {' '.join(lines[-3:])}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 2**10


def speed_of_training(
    checkouts: tuple[Checkout, Checkout],
    data: Sequence[Path],
    settings: Sequence[str],
    threads: int,
    rounds: int,
    folder: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Train with an earlier checkout and another one in turn.

    Returns:
        Medians over rounds of the ratios of CPU time and time, and of the points of P@1 lost; all trainings.
    """
    found: list[list[Training]] = []
    for number in range(rounds):
        found.append([])
        for index, checkout in enumerate(checkouts):
            place = folder / f"{number}-{index}"
            place.mkdir()
            found[-1].append(checkout.train(data, settings, threads, place))
            say(str(found[-1][-1]))
    return {
        "cpu_ratio": median(own.cpu_seconds / other.cpu_seconds for other, own in found),
        "ratio": median(own.seconds / other.seconds for other, own in found),
        "lost_points": 100 * median(other.precision_at_1 - own.precision_at_1 for other, own in found),
        "rounds": [[asdict(training) for training in turn] for turn in found],
    }
