"""Systems run in child processes: kept once finished, named when they fail, ended when stopped."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from compare_runs import made_up_record, write_letters

from nlpcapsule.compare import child_process, run_missing
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.data import open_folder
from nlpcapsule.compare.prepared import prepare
from nlpcapsule.compare.run_missing import start_child
from nlpcapsule.compare.run_record import RunRecord, cell_path
from nlpcapsule.compare.system_runs import RunOptions, SystemRun, run_systems
from nlpcapsule.data.readers.reading import ReadOptions

GOOD = "write()"
# Holds memory in a process it starts, as one-vs-rest does.
LARGE = """
held = "import time; held = bytearray(200 * 2**20); time.sleep(1.5)"
subprocess.run([sys.executable, "-c", held])
write()
"""
START = "import json, os, subprocess, sys, time\nfrom pathlib import Path\nrecord = Path(sys.argv[1])\n"
START += "def write(): record.write_text(sys.argv[2])\n"


def cell(system: str) -> Cell:
    return Cell("labels", "mine", system, system, {}, seed=1)


@dataclass(frozen=True)
class Scripted(RunOptions):
    """Runs a few lines of Python in the place of a system."""

    scripts: tuple[tuple[str, str], ...] = ()

    def command(self, cell: Cell) -> list[str]:
        code = START + dict(self.scripts)[cell.system]
        written = json.dumps(made_up_record(cell, process_memory_gib=0.01).to_json())
        return [sys.executable, "-c", code, str(cell_path(cell, self.cells)), written]


def scripted(folder: Path, jobs: int = 1, **scripts: str) -> tuple[list[Cell], Scripted, list[str]]:
    said: list[str] = []
    running = Scripted({}, folder, "abc", jobs, quiet=True, say=said.append, scripts=tuple(scripts.items()))
    return [cell(name) for name in scripts], running, said


def test_one_that_fails_is_named_and_the_others_are_run(tmp_path: Path) -> None:
    cells, running, said = scripted(
        tmp_path,
        first=GOOD,
        told="print('error: the trees are ill'); sys.exit(2)",
        raised="raise ValueError('by surprise')",
        silent="sys.exit(3)",
        unwritten="pass",
        killed="os.kill(os.getpid(), 9)",
        last=GOOD,
    )
    assert run_systems(cells, running) == {
        "told": "the trees are ill",
        "raised": "ValueError: by surprise",
        "silent": "ended with exit code 3",
        "unwritten": "ended with exit code 0",
        "killed": "ended by signal 9, perhaps out of memory",
    }
    assert cell_path(cells[-1], tmp_path).exists()
    assert "[2/7] told: the trees are ill" in said
    assert "[7/7] last: done" in said


def test_what_is_finished_is_not_run_again_and_what_failed_is(tmp_path: Path) -> None:
    cells, running, _ = scripted(tmp_path, first=GOOD, second="sys.exit(3)")
    assert run_systems(cells, running).keys() == {"second"}
    _, running, said = scripted(tmp_path, first="sys.exit(4)", second=GOOD)
    assert run_systems(cells, running) == {}
    assert said == ["1 of 2 systems are finished", "second: started", "[1/1] second: done"]


def test_memory_counts_what_a_system_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_missing, "POLL_SECONDS", 0.05)
    cells, running, _ = scripted(tmp_path, small=GOOD, large=LARGE)
    assert run_systems(cells, running) == {}
    small, large = (RunRecord.load(cell_path(one, tmp_path)).process_memory_gib for one in cells)
    assert small is not None
    assert large is not None
    assert small < 0.1
    assert 0.19 < large < 0.4


def test_several_run_at_a_time(tmp_path: Path) -> None:
    meet = "record.with_suffix('.here').touch()\nends = time.time() + 20\n"
    meet += "while len(list(record.parent.glob('*.here'))) < 2: assert time.time() < ends; time.sleep(0.02)\n"
    cells, running, _ = scripted(tmp_path, jobs=2, one=meet + GOOD, two=meet + GOOD)
    assert run_systems(cells, running) == {}, "each waits for the other, so alone neither would end"


def test_a_stop_ends_every_process_and_keeps_what_is_finished(tmp_path: Path) -> None:
    sleeps = "subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    cells, running, _ = scripted(tmp_path, first=GOOD, slow=sleeps)
    family: list[psutil.Process] = []

    def stop_when_deep(process: psutil.Process) -> int:
        family[:] = [process, *process.children(recursive=True)]
        if len(family) > 1:
            raise KeyboardInterrupt
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_process, "_memory", lambda process: stop_when_deep(process))
        started = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            run_systems(cells, running)
    assert time.perf_counter() - started < 30
    assert len(family) == 2
    assert not [member for member in family if member.is_running() and member.status() != "zombie"]
    assert cell_path(cells[0], tmp_path).exists()
    assert not cell_path(cells[1], tmp_path).exists()


def test_a_system_that_is_stopped_notes_the_seconds_it_has_trained(tmp_path: Path) -> None:
    source = open_folder(write_letters(tmp_path / "mine"), ReadOptions())
    long = {"training.epochs": 10_000, "model.filters": 4, "model.embedding_size": 8}
    kim = Cell("labels", source.name, "kim-cnn", "kim-cnn", long, seed=1)
    places, _ = prepare(source, [kim], tmp_path / "data")
    process = start_child(SystemRun(kim, RunOptions(places, tmp_path / "cells", "abc", quiet=True)))
    work, ends = tmp_path / "cells" / f"{kim.name}.work", time.time() + 60
    while not (work / "metrics.jsonl").exists():
        assert time.time() < ends
        assert not process.has_ended(), process.ended()
        time.sleep(0.05)
    process.stop()
    noted = json.loads((work / "seconds.json").read_text(encoding="utf-8"))
    assert noted["seconds"] > 0
    assert not noted["running"]


def test_only_pecos_is_told_of_its_python(tmp_path: Path) -> None:
    places = {"pecos": tmp_path, "omikuji": tmp_path}
    running = RunOptions(places, tmp_path, "abc", pecos_python="/some/python")
    assert running.command(cell("pecos"))[-2:] == ["--pecos-python", "/some/python"]
    assert "/some/python" not in running.command(cell("omikuji"))
