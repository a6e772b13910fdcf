"""Run `nlpcapsule serve` in a process, as a user does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BODY = json.dumps({"documents": [{"text": "The street lamp is dark."}]}).encode()


class Running:
    """A service in a process.

    Attributes:
        address: Where it answers.
    """

    def __init__(self, folder: Path, *options: object, program: Sequence[str] = ("-m", "nlpcapsule")) -> None:
        command = [
            sys.executable,
            *program,
            "serve",
            str(folder),
            "--port",
            "0",
            *map(str, options),
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self._lines: list[str] = []
        said, found = "", None
        while found is None:  # a library may warn before
            line = self._read_line()
            said, found = said + line, re.search(r"http://\S+", line)
            assert found or line, said
        self.address = found[0]
        self._reader = threading.Thread(target=self._read, daemon=True)  # a full pipe would stop the service
        self._reader.start()

    def ask(self, path: str = "/v1/labels", body: bytes | None = BODY) -> Any:
        request = urllib.request.Request(self.address + path, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as response:
            content = response.read().decode()
        return json.loads(content) if path != "/metrics" else content

    def stop(self) -> tuple[int, str]:
        """Ask it to stop; return its exit code and its log."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(300)
        self._reader.join(300)
        return code, "".join(self._lines)

    def _read_line(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def _read(self) -> None:
        while line := self._read_line():
            self._lines.append(line)


@contextmanager
def running(folder: Path, *options: object, **how: Any) -> Iterator[Running]:
    """Run a service inside the block."""
    service = Running(folder, *options, **how)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.process.kill()
            service.process.wait()
