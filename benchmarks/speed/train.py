"""Training from raw text: against an earlier checkout, or next to a busy process, in turn and in one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from nlpcapsule.atomic_files import write_text
from nlpcapsule.compare.data import UserFolder, open_folder
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import ConfigError, NlpCapsuleError
from nlpcapsule.provenance import UNKNOWN_COMMIT, commit_of, provenance

_COMMAND = "from nlpcapsule.cli.app import main; main()"  # as a checkout's own `nlpcapsule`


@dataclass(frozen=True)
class Training:
    """One training of the small preset."""

    commit: str
    seed: int
    load: float  # processes that computed in the minute before, this benchmark's included
    seconds: float
    cpu_seconds: float  # of all processes
    peak_memory_mib: float  # of the largest process
    precision_at_1: float  # on documents that neither training nor the choice of settings saw


@dataclass(frozen=True)
class TrainingData:
    """A folder of train, dev and test files, and the settings of all trainings on it."""

    folder: Path
    settings: Sequence[str] = ()

    @cached_property
    def files(self) -> UserFolder:
        """The files; a folder without one of the three parts is an error."""
        files = open_folder(self.folder, ReadOptions(), "labels")
        if files.select is None:
            raise ConfigError(f"{self.folder}: expected train, dev and test files")
        return files


@dataclass(frozen=True)
class Checkout:
    """A checkout of this repository."""

    folder: Path

    @property
    def commit(self) -> str:
        """The commit that is checked out."""
        commit = commit_of(self.folder / "src" / "nlpcapsule")
        if commit == UNKNOWN_COMMIT:
            raise ConfigError(f"{self.folder}: expected a checkout of this repository (git worktree add)")
        return commit

    def train(self, data: TrainingData, threads: int | None, seed: int, folder: Path) -> Training:
        """Train on a file, select on a second, and report P@1 on a third.

        Args:
            data: The files, and settings as of `train --set`.
            threads: Threads and worker processes; None lets the command choose.
            seed: The seed of the training.
            folder: An empty folder, for the model.
        """
        train, dev, test = map(str, (data.files.train, data.files.select, data.files.report))
        model, figures = folder / "model", folder / "figures.json"
        output = "--output" if (self.folder / "benchmarks").is_dir() else "--out"  # its former name
        pairs = [word for setting in (*data.settings, f"seed={seed}") for word in ("--set", setting)]
        arguments = ["train", train, "--dev", dev, output, str(model), "--preset", "small", *pairs]
        load, began = os.getloadavg()[0], time.perf_counter()
        cpu_seconds, memory = self._run(arguments, threads)
        seconds = time.perf_counter() - began
        self._run(["evaluate", str(model), test, "--json", str(figures)], threads)
        found = json.loads(figures.read_text(encoding="utf-8"))
        return Training(self.commit, seed, load, seconds, cpu_seconds, memory, found["P@1"])

    def _run(self, arguments: Sequence[str], threads: int | None) -> tuple[float, float]:
        """Run its command; return seconds of CPU time, workers included, and MiB of memory."""
        names = ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
        chosen = {} if threads is None else dict.fromkeys(names, str(threads))
        kept = {name: value for name, value in os.environ.items() if name not in names}
        environment = kept | chosen | {"PYTHONPATH": str(self.folder / "src")}
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


HERE = Checkout(Path(__file__).parents[2])


def next_to_busy_process(train: Callable[[int, Path], Training]) -> Callable[[int, Path], Training]:
    """Return a training while another process keeps a core busy."""

    def run(seed: int, folder: Path) -> Training:
        process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            return train(seed, folder)
        finally:
            process.kill()
            process.wait()

    return run


def compare_trainings(
    command: str,
    data: TrainingData,
    reference: Callable[[int, Path], Training],
    other: Callable[[int, Path], Training],
    rounds: int,
    output: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Train in two ways, in turn, each round with a seed of its own, and write a results file.

    Returns:
        Medians over rounds of the ratios of CPU time and time, the mean of the points of P@1 lost, and all
        trainings.
    """
    header = provenance(command, data=data.files.name, settings=data.settings)
    found: list[list[Training]] = []
    with TemporaryDirectory(prefix="speed-") as folder:
        for seed in range(1, rounds + 1):
            found.append([])
            for index, train in enumerate((reference, other)):
                place = Path(folder) / f"{seed}-{index}"
                place.mkdir()
                found[-1].append(train(seed, place))
                say(str(found[-1][-1]))
    record = {
        "cpu_ratio": median(last.cpu_seconds / first.cpu_seconds for first, last in found),
        "ratio": median(last.seconds / first.seconds for first, last in found),
        "lost_points": 100 * mean(first.precision_at_1 - last.precision_at_1 for first, last in found),
        "rounds": [[asdict(training) for training in turn] for turn in found],
    }
    write_text(output, json.dumps({**header, **record}, indent=2) + "\n")
    return record
