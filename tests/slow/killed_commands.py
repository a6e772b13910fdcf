"""Starts commands and kills them; finds the processes that they leave behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

PATIENCE = 300  # seconds until a test gives up on a process
SOON = 120  # seconds in which the children of a killed process have to end
MARK = "NLPCAPSULE_KILL_TEST"  # a variable that children of a command inherit


class Started(NamedTuple):
    """A command's process and what its children's environment has in `MARK`."""

    process: int
    mark: str

    def children(self) -> list[list[str]]:
        """The command lines of its children, of theirs, and so on, wherever they hang now."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.cmdline())
            except psutil.Error:
                continue
        return found


class Commands:
    """Runs `nlpcapsule` commands as children of a process that has imported everything.

    Args:
        folder: For what they print.
    """

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        script = Path(__file__).with_name("command_server.py")
        self._server = subprocess.Popen(
            [sys.executable, "-P", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        assert self._answer() == "ready"

    def start(self, *words: object) -> Started:
        mark = uuid.uuid4().hex
        request = {"words": list(map(str, words)), "environment": {MARK: mark}, "log": str(self.log)}
        return Started(self._ask(request), mark)

    def finish(self, *words: object) -> float:
        """Run a command to its end; return the seconds that it took."""
        began = time.monotonic()
        code = self.wait(self.start(*words))
        assert code == 0, self.log.read_text(encoding="utf-8")
        return time.monotonic() - began

    def wait(self, started: Started) -> int:
        """Wait for a command's process; return its exit code."""
        return self._ask({"wait": started.process})

    def kill(self, seconds: float, *words: object, after: Callable[[], bool] = lambda: True) -> int:
        """Start a command, kill it so many seconds after a condition, and check that no process of it stays.

        Returns its exit code: 0 if it had ended before.
        """
        started = self.start(*words)
        process = psutil.Process(started.process)
        while not after() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(started.process, signal.SIGKILL)
        code = self.wait(started)
        assert code in (0, -signal.SIGKILL), self.log.read_text(encoding="utf-8")
        end = time.monotonic() + SOON
        while (left := started.children()) and time.monotonic() < end:
            time.sleep(0.1)
        assert left == [], f"killed after {seconds} s"
        return code

    def close(self) -> None:
        self._server.kill()
        self._server.wait()

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._server.stdout is not None
        ready, _, _ = select.select([self._server.stdout], [], [], PATIENCE)
        assert ready, "a command does not end"
        return json.loads(self._server.stdout.readline())
