"""`predict` and `evaluate` show progress on a terminal, and nothing elsewhere."""

from __future__ import annotations

import os
import pty
import re
import threading
from pathlib import Path

import pytest
from run_command import run_command


def run_on_terminal(*arguments: object) -> tuple[str, str]:
    """Run a command whose standard error is a terminal: standard output, and what the terminal got."""
    terminal, end = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(terminal, 4096):
                shown.append(part)
        except OSError:  # the command has closed its end
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(end, "w", encoding="utf-8") as screen, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "100")
        done = run_command(*arguments, terminal=screen)
    reader.join(timeout=300)
    os.close(terminal)
    assert done.code == 0, shown
    return done.out, b"".join(shown).decode()


@pytest.mark.parametrize(
    ("command", "kind", "rows"), [("predict", "documents", 20), ("evaluate", "questions", 8)]
)
def test_a_terminal_shows_how_many_rows_are_done(
    command: str, kind: str, rows: int, sample: Path, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue("label_model" if kind == "documents" else "answer_model")
    data = sample / f"{kind}-dev.jsonl"
    _, shown = run_on_terminal(command, model, data)
    total = r"\?" if command == "predict" else str(rows)
    assert re.search(rf"{kind}.*{rows}/{total}", shown), shown


def test_a_terminal_shows_nothing_if_told_to_be_quiet(sample: Path, label_model: Path) -> None:
    data = sample / "documents-dev.jsonl"
    out, shown = run_on_terminal("predict", label_model, data, "--quiet")
    assert shown == ""
    assert out == run_command("predict", label_model, data).out


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_elsewhere_there_is_no_progress(command: str, sample: Path, label_model: Path) -> None:
    done = run_command(command, label_model, sample / "documents-dev.jsonl")
    assert done.code == 0
    assert done.err == ""
