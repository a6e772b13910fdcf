"""Child processes end with their parent, however it ends, and import nothing from the working folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from benchmarks.checkout_command import checkout_command
from nlpcapsule import processes
from nlpcapsule.processes import module_command, starting_workers

# As a user has it: the package is found, and no relative folder is on the path.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(processes.__file__).parents[1])}
HIJACK = "raise SystemExit('a file of the working folder was imported')\n"
LOOK = "import time\nwhile True:\n    time.sleep(0.05)\n"
PARENT = """
import subprocess, sys, time
from nlpcapsule.processes import child_environment
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env=child_environment())
print(child.pid, flush=True)
time.sleep(600)
"""
POOL = """
import os, sys, time
import joblib
from nlpcapsule.processes import pool_options

def work(folder):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    time.sleep(600)

joblib.Parallel(n_jobs=2, **pool_options())(joblib.delayed(work)(sys.argv[1]) for _ in range(1))
"""


def wait_until(is_so: Callable[[], bool], seconds: float = 300) -> bool:
    """Whether something becomes true before it would be given up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.05)
    return False


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    "child",
    [
        f"from nlpcapsule.processes import end_with_parent\nend_with_parent()\n{LOOK}",
        "import os\nfrom nlpcapsule import processes\n"
        f"processes.watch_parent(int(os.environ[processes.PARENT_VARIABLE]))\n{LOOK}",
    ],
    ids=["the system's signal", "a thread that watches"],
)
def test_a_child_ends_when_its_parent_is_killed(child: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, child], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    assert wait_until(lambda: not is_running(pid))


def test_a_child_whose_parent_is_gone_already_ends() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    child = f"from nlpcapsule.processes import end_with_parent\nend_with_parent()\n{LOOK}"
    environment = {**os.environ, processes.PARENT_VARIABLE: str(gone.pid)}
    done = subprocess.run([sys.executable, "-c", child], env=environment, timeout=300)
    assert done.returncode == 128 + signal.SIGTERM


def test_workers_of_a_pool_end_with_the_process_that_started_them_also_without_a_task(tmp_path: Path) -> None:
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    started = tmp_path / "started"
    started.mkdir()
    with subprocess.Popen([sys.executable, str(script), str(started)]) as parent:
        assert wait_until(lambda: len(list(started.iterdir())) == 1)
        children = [child.pid for child in psutil.Process(parent.pid).children()]
        parent.kill()
    assert len(children) >= 2
    assert int(next(started.iterdir()).name) in children
    assert wait_until(lambda: not any(map(is_running, children)))


def test_the_parents_number_is_not_left_to_grandchildren() -> None:
    program = (
        "import os\nfrom nlpcapsule import processes\nprocesses.end_with_parent()\n"
        "print(processes.PARENT_VARIABLE in os.environ)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], env=processes.child_environment(), capture_output=True, text=True
    )
    assert told.stdout == "False\n"


def test_modules_of_the_working_folder_are_not_imported(tmp_path: Path) -> None:
    for name in ("random", "json", "nlpcapsule"):
        (tmp_path / f"{name}.py").write_text(HIJACK)
    command = [*module_command("nlpcapsule"), "--help"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_from_a_folder_comes_after_pythons_own(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text(HIJACK)
    (tmp_path / "mine.py").write_text("import random, sys\nprint(__name__, sys.argv[1:], random.__file__)\n")
    command = [*checkout_command("mine", tmp_path), "a", "b"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("__main__ ['a', 'b']")
    assert str(tmp_path) not in done.stdout


def test_workers_that_joblib_starts_import_nothing_from_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text(HIJACK)
    program = (
        "import joblib\nfrom math import sqrt\nfrom nlpcapsule.processes import starting_workers\n"
        "with starting_workers():\n"
        "    print(joblib.Parallel(n_jobs=2)(joblib.delayed(sqrt)(n) for n in (1, 4)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "[1.0, 2.0]\n"), done.stderr


def test_workers_leave_ctrl_c_to_the_process_that_started_them(tmp_path: Path) -> None:
    # It comes right behind the block, while Python starts in the workers, which could not handle it then.
    program = (
        "import joblib, os, signal\nfrom nlpcapsule.processes import starting_workers\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start tests without\n"
        "with starting_workers():\n"
        "    run = joblib.Parallel(n_jobs=2, return_as='generator')\n"
        "    answers = run(joblib.delayed(abs)(number) for number in range(2))\n"
        "try:\n    os.killpg(0, signal.SIGINT)\nexcept KeyboardInterrupt:\n    print('stopped', *answers)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
        start_new_session=True,
    )
    assert (done.stdout, done.stderr) == ("stopped 0 1\n", "")


def test_the_variable_is_as_before_behind_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in (None, "", "1"):
        monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
        if before is not None:
            monkeypatch.setenv("PYTHONSAFEPATH", before)
        with starting_workers():
            assert os.environ["PYTHONSAFEPATH"] == "1"
        assert os.environ.get("PYTHONSAFEPATH") == before


def test_every_module_that_is_run_is_run_by_module_command() -> None:
    root = Path(__file__).parents[1]
    files = [path for folder in ("src", "benchmarks") for path in (root / folder).rglob("*.py")]
    found = [path.name for path in files if '"-m"' in path.read_text(encoding="utf-8")]
    assert found == ["processes.py"]
