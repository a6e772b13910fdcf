"""What is missing is run, in this process or in children, and what is finished is kept."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from nlpcapsule.compare import child_process
from nlpcapsule.compare.run_missing import Run, RunProgress, raise_failures, run_missing
from nlpcapsule.errors import ConfigError, NlpCapsuleError

HERE, CHILD = 0, 1  # jobs
START = "import sys\nfrom pathlib import Path\nfinish = Path(sys.argv[1]).touch\n"


@dataclass(frozen=True)
class Scripted(Run):
    """A few lines of Python that call `finish()` when they succeed."""

    title: str
    folder: Path
    code: str = "finish()"

    @property
    def name(self) -> str:
        return self.title

    @property
    def log(self) -> Path:
        return self.folder / "logs" / f"{self.title}.log"

    @property
    def result(self) -> Path:
        return self.folder / self.title

    def is_finished(self) -> bool:
        return self.result.exists()

    def run_here(self) -> None:
        exec(self.code, {"finish": self.result.touch, "ConfigError": ConfigError})

    def command(self) -> list[str]:
        return [sys.executable, "-c", START + self.code, str(self.result)]


def quiet() -> RunProgress:
    return RunProgress(lambda text: None)


@pytest.mark.parametrize("jobs", [HERE, CHILD, 3])
def test_only_what_is_missing_is_run_and_progress_counts_it(tmp_path: Path, jobs: int) -> None:
    said: list[str] = []
    finished = Scripted("first", tmp_path, "raise OSError")
    finished.result.touch()
    runs = [finished, Scripted("second", tmp_path), Scripted("third", tmp_path)]
    assert run_missing(runs, RunProgress(said.append, "runs are finished", "fine"), jobs) == {}
    assert said[0] == "1 of 3 runs are finished"
    assert sorted(said[1:]) in (
        ["[1/2] second: fine", "[2/2] third: fine"],
        ["[1/2] third: fine", "[2/2] second: fine"],
    )
    assert all(run.is_finished() for run in runs)
    assert not list(tmp_path.glob("logs/*")), "the log of a run that succeeds is removed"


@pytest.mark.parametrize("jobs", [HERE, CHILD])
def test_a_failure_does_not_stop_the_others_and_is_named(tmp_path: Path, jobs: int) -> None:
    said: list[str] = []
    runs = [Scripted("bad", tmp_path, "raise OSError('disk full')"), Scripted("good", tmp_path)]
    failures = run_missing(runs, RunProgress(said.append), jobs)
    log = f"OSError: disk full (full log: {runs[0].log})"
    assert failures == {"bad": log if jobs else "disk full"}
    assert said == ["0 of 2 cells are finished", "[1/2] bad: failed", "[2/2] good: done"]
    assert runs[0].log.exists() == bool(jobs)
    again = [Scripted("bad", tmp_path), Scripted("good", tmp_path, "raise OSError")]
    assert run_missing(again, quiet(), jobs) == {}, "what failed is run again"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise ConfigError('no such model')", "no such model"),
        ("raise RuntimeError('CUDA out of memory')", "out of memory (CUDA out of memory)"),
        ("raise MemoryError", "out of memory"),
    ],
)
def test_an_error_in_this_process_is_a_failure(tmp_path: Path, code: str, why: str) -> None:
    assert run_missing([Scripted("bad", tmp_path, code)], quiet())["bad"].startswith(why)


def test_an_error_of_the_code_itself_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run_missing([Scripted("bug", tmp_path, "1 / 0")], quiet())


def test_an_interruption_stops_at_once_in_this_process(tmp_path: Path) -> None:
    runs = [Scripted("first", tmp_path), Scripted("stopped", tmp_path, "raise KeyboardInterrupt")]
    runs.append(Scripted("last", tmp_path))
    with pytest.raises(KeyboardInterrupt):
        run_missing(runs, quiet())
    assert [run.is_finished() for run in runs] == [True, False, False]


def test_an_interruption_anywhere_ends_the_children(tmp_path: Path) -> None:
    """Here: while it is told that the first has ended."""
    runs = [Scripted("first", tmp_path), Scripted("slow", tmp_path, "import time; time.sleep(60)")]

    def interrupt(text: str) -> None:
        if "first: done" in text:
            raise KeyboardInterrupt

    before, started = set(psutil.Process().children()), time.perf_counter()
    with pytest.raises(KeyboardInterrupt) as stopped:
        run_missing(runs, RunProgress(interrupt), jobs=2)
    assert stopped.traceback, "its frames are alive, and the children are not"
    assert time.perf_counter() - started < 30
    left = set(psutil.Process().children()) - before
    assert not [child for child in left if child.status() != "zombie"]


def test_memory_is_looked_at_only_where_it_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "_memory", lambda _: pytest.fail("disturbs what is measured"))
    assert run_missing([Scripted("timed", tmp_path)], quiet(), CHILD) == {}


def test_one_error_names_all_failures() -> None:
    raise_failures({}, "cells failed")
    with pytest.raises(NlpCapsuleError) as error:
        raise_failures({"one": "no luck", "two": "disk full"}, "cells failed")
    assert str(error.value) == "cells failed, the others are kept:\none: no luck\ntwo: disk full"
