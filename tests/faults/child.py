"""A worker process that is started again when a case has ended it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

LONGEST = 240  # seconds for a case


class Outcome(NamedTuple):
    """What came of a case: what is wrong with it, or None, and the message it was refused with, or None."""

    problem: str | None
    refused: str | None


class Child:
    """Runs the cases of `worker.py`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the child

    def run(self, **case: Any) -> Outcome:
        """Run a case; a process that died or hangs is its outcome."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(case) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], LONGEST)
        line = process.stdout.readline() if ready else ""
        if line:
            answer = json.loads(line)
            return Outcome(answer["problem"], answer["refused"])
        if not ready:
            process.kill()
        code = process.wait()
        self._process = None
        how = (
            f"did not end in {LONGEST} s"
            if not ready
            else f"ended with {signal.Signals(-code).name if code < 0 else code}"
        )
        self._errors.seek(0)
        return Outcome(f"the process {how}: {self._errors.read()[-500:]}", None)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._errors.seek(0)
            self._errors.truncate()
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("worker.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
            )
        return self._process
