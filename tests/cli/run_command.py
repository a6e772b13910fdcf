"""Runs `nlpcapsule` as a user does: in this process, so that it is quick, or in a process of its own."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO
from unittest.mock import patch

from nlpcapsule.cli.app import main

# Networks small enough to be trained in a moment.
TINY = (
    "--set=embedding_size=8",
    "--set=filters=8",
    "--set=capsule_size=8",
    "--set=condensed=4",
    "--set=epochs=1",
)
TINY_KIM = ("--model=kim-cnn", "--set=embedding_size=8", "--set=filters=8", "--set=epochs=1")


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The messages among the lines of standard error."""
        return [line for line in self.err.splitlines() if line.startswith("error:")]


def run_command(
    *arguments: object,
    stdin: bytes = b"",
    entry_point: Callable[[], None] = main,
    terminal: TextIO | None = None,
) -> Finished:
    """Calls the entry point of the `nlpcapsule` command, or another one; errors may go to a terminal."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    # Python's own standard error escapes what cannot be encoded, too.
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", errors="backslashreplace")
    code = 0
    with (
        patch.object(sys, "argv", ["nlpcapsule", *map(str, arguments)]),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")),
        patch.object(sys, "stdout", out),
        patch.object(sys, "stderr", terminal or err),
    ):
        try:
            entry_point()
        except SystemExit as exit:
            code = int(exit.code or 0)
        out.flush()
        err.flush()
    return Finished(code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())


def run_process(*arguments: object, stdin: bytes = b"") -> Finished:
    """Runs the command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "nlpcapsule.cli.app", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=300,
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


def assert_refused(done: Finished, message: str) -> None:
    """Checks that a command ended in one message, which matches a pattern, and exit code 2."""
    assert done.code == 2, done
    assert done.out == ""
    assert "Traceback" not in done.err
    assert len(done.errors) == 1, done.err
    assert done.err.rstrip("\n").endswith(done.errors[0]), "the message is the last that is said"
    assert re.search(message, done.errors[0]), done.errors[0]
