"""Runs in this process: what is missing is run, and what is finished is kept."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from benchmarks.run_here import run_here
from benchmarks.run_missing import Run, run_missing
from nlpcapsule.errors import ConfigError


def scripted(name: str, folder: Path, code: str = "finish()") -> Run:
    """A run of a few lines of Python that call `finish()` when they succeed."""
    names = {"finish": (folder / name).touch, "ConfigError": ConfigError}
    return run_here(name, (folder / name).exists, partial(exec, code, names))


def quietly(runs: list[Run]) -> dict[str, str]:
    return run_missing(runs, "runs", lambda text: None)


def test_only_what_is_missing_is_run_and_a_failure_does_not_stop_the_others(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "first").touch()
    codes = {"first": "raise OSError", "bad": "raise OSError('disk full')", "good": "finish()"}
    runs = [scripted(name, tmp_path, code) for name, code in codes.items()]
    assert run_missing(runs, "runs", said.append) == {"bad": "disk full"}
    assert said[0] == "1 of 3 runs are finished"
    assert {"good: started", "[1/2] bad: disk full", "[2/2] good: done"} < set(said)
    assert quietly([scripted("bad", tmp_path), runs[2]]) == {}, "what failed is run again"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise ConfigError('no such model')", "no such model"),
        ("raise RuntimeError('CUDA out of memory')", "out of memory (CUDA out of memory)"),
        ("raise MemoryError", "out of memory"),
    ],
)
def test_an_error_in_this_process_is_a_failure(tmp_path: Path, code: str, why: str) -> None:
    assert quietly([scripted("bad", tmp_path, code)])["bad"].startswith(why)


def test_an_error_of_the_code_itself_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        quietly([scripted("bug", tmp_path, "1 / 0")])


def test_an_interruption_stops_at_once_in_this_process(tmp_path: Path) -> None:
    runs = [scripted("first", tmp_path), scripted("stopped", tmp_path, "raise KeyboardInterrupt")]
    runs.append(scripted("last", tmp_path))
    with pytest.raises(KeyboardInterrupt):
        quietly(runs)
    assert [run.is_finished() for run in runs] == [True, False, False]
