"""Systems run in child processes: a failure does not stop the others, and an interruption ends all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil
import pytest
from compare_runs import write_letters

from nlpcapsule.compare import comparison
from nlpcapsule.compare.comparison import run_systems
from nlpcapsule.compare.data import open_folder
from nlpcapsule.compare.measuring import SystemRun
from nlpcapsule.config import Config
from nlpcapsule.data.readers.reading import ReadOptions

RECORD = json.dumps({"figures": {"P@1": 1.0}, "process memory GiB": 0.01})
FINISH = f"open(path, 'w').write({RECORD!r})"


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function: system → a few lines of Python that its child process runs → the runs."""
    source = open_folder(write_letters(tmp_path / "mine"), ReadOptions())
    config = Config.build("labels", "one-vs-rest")
    monkeypatch.setattr(comparison, "POLL_SECONDS", 0.02)

    def runs(**codes: str) -> dict[str, SystemRun]:
        def command(run: SystemRun) -> list[str]:
            code = f"import os, sys, time\npath = sys.argv[1]\n{codes[run.record.stem]}"
            return [sys.executable, "-c", code, str(run.record)]

        monkeypatch.setattr(comparison, "child_command", command)
        return {name: SystemRun(source, config, tmp_path / "cells" / f"{name}.json") for name in codes}

    return runs


@pytest.mark.parametrize("jobs", [1, 3])
def test_what_is_missing_is_run_and_a_failure_does_not_stop_the_others(scripted, jobs: int) -> None:
    said: list[str] = []
    runs = scripted(old="1 / 0", bad="print('error: the trees are ill'); sys.exit(2)", good=FINISH)
    runs["old"].record.parent.mkdir()
    runs["old"].record.write_text(RECORD)
    failures = run_systems(runs, said.append, jobs, show_errors=False)
    log = runs["bad"].record.with_suffix(".log")
    assert failures == {"bad": f"the trees are ill (full log: {log})"}
    assert said[0] == "1 of 3 systems are finished"
    assert {"bad: started", "good: started"} < set(said)
    ends = [text.partition("] ") for text in said if text.startswith("[")]
    assert sorted(end[0] for end in ends) == ["[1/2", "[2/2"]
    assert {end[2] for end in ends} == {"good: done", f"bad: {failures['bad']}"}
    assert log.exists()
    assert not runs["good"].record.with_suffix(".log").exists()


def test_the_memory_of_a_process_and_its_children_is_recorded(scripted) -> None:
    held = "held = bytearray(200 * 2**20); import time; time.sleep(1.5)"
    code = f"import subprocess; subprocess.run([sys.executable, '-c', {held!r}])\n{FINISH}"
    runs = scripted(large=code)
    assert run_systems(runs, lambda text: None, 1, show_errors=False) == {}
    record = json.loads(runs["large"].record.read_text())
    assert 0.19 < record["process memory GiB"] < 0.4


def test_an_interruption_ends_the_children(scripted, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    slow = f"open({str(ids)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    waits = f"while not os.path.exists({str(ids)!r}): time.sleep(0.02)\n{FINISH}"

    def interrupt(text: str) -> None:
        if "first: done" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_systems(scripted(first=waits, slow=slow), interrupt, 2, show_errors=False)
    number = int(ids.read_text())
    assert not psutil.pid_exists(number) or psutil.Process(number).status() == "zombie"
