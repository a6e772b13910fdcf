"""What is missing is run in child processes, and what is finished is kept."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.run_missing import Run, run_missing
from nlpcapsule.compare import child_process
from nlpcapsule.compare.comparison import raise_failures
from nlpcapsule.errors import NlpCapsuleError

START = "import sys\nfrom pathlib import Path\nfinish = Path(sys.argv[1]).touch\n"


def scripted(name: str, folder: Path, code: str = "finish()") -> Run:
    """A run of a few lines of Python that call `finish()` when they succeed."""
    result = folder / name
    command = [sys.executable, "-c", START + code, str(result)]
    return Run(name, result.exists, command, folder / "logs" / f"{name}.log")


def quietly(runs: list[Run], jobs: int = 1) -> dict[str, str]:
    return run_missing(runs, "runs", lambda text: None, jobs)


@pytest.mark.parametrize("jobs", [1, 3])
def test_only_what_is_missing_is_run_and_progress_counts_it(tmp_path: Path, jobs: int) -> None:
    said: list[str] = []
    (tmp_path / "first").touch()
    runs = [
        scripted("first", tmp_path, "raise OSError"),
        *(scripted(n, tmp_path) for n in ("second", "third")),
    ]
    assert run_missing(runs, "runs", said.append, jobs) == {}
    assert said[0] == "1 of 3 runs are finished"
    assert {"second: started", "third: started"} < set(said)
    assert {text.partition("] ")[2] for text in said if text.startswith("[")} == {
        "second: done",
        "third: done",
    }
    assert all(run.is_finished() for run in runs)
    assert not list(tmp_path.glob("logs/*")), "the log of a run that succeeds is removed"


def test_a_failure_does_not_stop_the_others_and_is_named(tmp_path: Path) -> None:
    said: list[str] = []
    runs = [scripted("bad", tmp_path, "raise OSError('disk full')"), scripted("good", tmp_path)]
    failures = run_missing(runs, "runs", said.append)
    why = f"OSError: disk full (full log: {runs[0].log})"
    assert failures == {"bad": why}
    assert {f"[1/2] bad: {why}", "[2/2] good: done"} < set(said)
    assert runs[0].log.exists()
    again = [scripted("bad", tmp_path), scripted("good", tmp_path, "raise OSError")]
    assert quietly(again) == {}, "what failed is run again"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print('error: the trees are ill'); sys.exit(2)", "the trees are ill"),
        ("sys.exit(3)", "ended with exit code 3"),
        ("pass", "ended with exit code 0"),
        ("import os; os.kill(os.getpid(), 9)", "ended by signal 9, perhaps out of memory"),
    ],
)
def test_a_child_without_a_result_has_failed(tmp_path: Path, code: str, why: str) -> None:
    assert quietly([scripted("bad", tmp_path, code)])["bad"].startswith(why)


def test_an_interruption_anywhere_ends_the_children_and_theirs(tmp_path: Path) -> None:
    """Here: while the end of the first one is reported."""
    ids = tmp_path / "ids"
    ended = tmp_path / "ended"
    sleep = f"import time; time.sleep(100); open({str(ended)!r}, 'w')"
    deep = f"import os, subprocess, sys\nsleep = {sleep!r}\n"
    deep += "child = subprocess.Popen([sys.executable, '-c', sleep])\n"
    deep += f"Path({str(ids)!r}).write_text(f'{{os.getpid()}} {{child.pid}}')\nchild.wait()"
    waits = f"import time\nwhile not Path({str(ids)!r}).exists(): time.sleep(0.02)\nfinish()"
    runs = [scripted("first", tmp_path, waits), scripted("slow", tmp_path, deep)]

    def interrupt(text: str) -> None:
        if "first: done" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # long before the slow one would end
        run_missing(runs, "runs", interrupt, jobs=2)
    assert not ended.exists()
    left = [
        psutil.Process(int(number)) for number in ids.read_text().split() if psutil.pid_exists(int(number))
    ]
    assert not [process for process in left if process.status() != "zombie"]


def test_memory_is_measured_only_on_request_and_counts_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.run_missing.POLL_SECONDS", 0.05)
    held = "import time; held = bytearray(200 * 2**20); time.sleep(1.5)"
    code = f"import subprocess; subprocess.run([sys.executable, '-c', {held!r}]); finish()"
    run, peaks = scripted("large", tmp_path, code), []
    run = Run(
        "large",
        run.is_finished,
        command=run.command,
        log=run.log,
        ended=lambda child: peaks.append(child.peak_bytes),
        watches_memory=True,
    )
    assert quietly([run]) == {}
    assert 0.19 < peaks[0] / 2**30 < 0.4
    monkeypatch.setattr(child_process, "_memory", lambda _: pytest.fail("disturbs what is measured"))
    assert quietly([scripted("timed", tmp_path)]) == {}


def test_one_error_names_all_failures() -> None:
    raise_failures({}, "cells failed")
    with pytest.raises(NlpCapsuleError) as error:
        raise_failures({"one": "no luck", "two": "disk full"}, "cells failed")
    assert str(error.value) == "cells failed:\none: no luck\ntwo: disk full"
