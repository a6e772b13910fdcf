"""Help, version, tracebacks, and how the command behaves in a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from run_command import run_command, run_process

from nlpcapsule import __version__
from nlpcapsule.cli.app import app
from nlpcapsule.errors import ModelFolderError

EMPTY = "it is empty: there are no rows; check that this is the right file"
COMMANDS = ["demo", "train", "evaluate", "predict", "inspect", "compare", "tune", "learn"]


# Runs commands one after another in one process; prints what each ended with, and whether torch was imported.
PROGRAM = """
import contextlib, io, json, sys
from nlpcapsule.cli.app import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["nlpcapsule", *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main()
    except SystemExit as end:
        print(json.dumps([arguments, end.code or 0, "torch" in sys.modules]))
"""


def test_help_lists_the_commands_and_says_where_to_begin() -> None:
    done = run_command("--help")
    assert (done.code, done.err) == (0, "")
    assert all(f"\n  {command} " in done.out for command in COMMANDS)
    assert "nlpcapsule demo" in done.out
    told = done.out[done.out.index("Commands:") :]
    assert "...\n" not in told  # no sentence is cut off


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_has_help(command: str, option: str) -> None:
    done = run_command(command, option)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: nlpcapsule {command} ")


def test_help_names_all_formats_networks_and_defaults() -> None:
    text = " ".join(run_command("train", "--help").out.split())
    for name in [
        "labels-tab-text",
        "extreme-text",
        "omikuji",
        "`nlpcapsule systems`",
        "hybrid, label-query, paper, omikuji",
        "[default: hybrid; for answers label-query]",
        "[default: ;]",
        "--dev-split",
    ]:
        assert name in text


def test_systems_are_listed_with_what_they_need() -> None:
    lines = run_command("systems").out.splitlines()
    assert any(line.split()[:2] == ["xml-cnn", "labels"] for line in lines)
    assert lines[1].split()[:2] == ["hybrid", "labels"]
    assert any(line.startswith("fast-xml") and " trees " in line for line in lines)
    answers = run_command("systems", "--task", "answers").out
    assert "bm25" in answers
    assert "xml-cnn" not in answers


def test_predict_has_no_options_about_labels() -> None:
    assert "--labels-key" not in run_command("predict", "--help").out
    assert run_command("predict", "model", "data", "--labels-key", "x").code == 2


def test_help_and_wrong_arguments_do_not_wait_for_torch() -> None:
    expected = [
        [["--help"], 0, False],
        [["--version"], 0, False],
        *[[[command, "--help"], 0, False] for command in COMMANDS],
        [["predict", "model", "data", "--top-k", "0"], 2, False],
        [["train", "data", "--output", "model", "--model", "nonsense"], 2, False],
        [["evaluate", "model"], 2, False],
    ]
    commands = json.dumps([arguments for arguments, _, _ in expected])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, commands], capture_output=True, text=True, check=True
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected


def test_an_option_has_the_same_name_in_every_command() -> None:
    options: dict[str, set[str]] = {}
    for command in typer.main.get_command(app).commands.values():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                options.setdefault(parameter.name, set()).add(" ".join(parameter.opts))
    assert {name: names for name, names in options.items() if len(names) > 1} == {}
    assert options["output"] == {"--output"}
    assert options["task"] == {"--task"}


def test_no_command_at_all_shows_the_help() -> None:
    done = run_command()
    assert done.code == 2
    assert "Usage: nlpcapsule" in done.out + done.err


def test_version() -> None:
    done = run_command("--version")
    assert (done.code, done.out) == (0, f"nlpcapsule {__version__}\n")


@pytest.mark.parametrize("place", [0, 1, 3])
def test_debug_raises_the_error_wherever_it_stands(place: int) -> None:
    arguments = ["predict", "nowhere", "-"]
    arguments.insert(place, "--debug")
    with pytest.raises(ModelFolderError, match="nowhere: there is no such model folder"):
        run_command(*arguments)


def test_debug_shows_the_traceback() -> None:
    done = run_process("train", "data", "--output", "model", "--task", "nonsense", "--debug")
    assert done.code == 1
    assert "Traceback" in done.err
    assert "ConfigError: unknown task 'nonsense'" in done.err


def test_output_may_go_to_a_reader_that_stops_early(label_model: Path, sample: Path) -> None:
    program = [sys.executable, "-m", "nlpcapsule.cli.app"]
    ranking = [*program, "predict", str(label_model), str(sample / "whole" / "documents-train.jsonl")]
    with subprocess.Popen(ranking, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def redirected(redirection: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command whose streams a shell redirects, with Python's own buffers."""
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "nlpcapsule"]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [*shell, *map(str, words)], capture_output=True, text=True, timeout=300, env=variables, check=False
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_a_message(label_model: Path, sample: Path) -> None:
    for words in (["predict", label_model, sample / "documents-dev.jsonl", "-q"], ["--version"]):
        done = redirected(">/dev/full", *words)
        assert (done.returncode, done.stderr) == (2, "error: [Errno 28] No space left on device\n")
    assert redirected("2>/dev/full", "predict", label_model, "nowhere").returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="there is no such shell here")
def test_streams_that_are_closed_are_a_message(label_model: Path, sample: Path, tmp_path: Path) -> None:
    done = redirected(">&-", "labels", "list", label_model)
    assert (done.returncode, done.stderr) == (2, "error: [Errno 9] Bad file descriptor\n")
    done = redirected("<&-", "predict", label_model, "-")
    assert (done.returncode, done.stderr) == (2, f"error: <stdin>: {EMPTY}\n")
    texts, output = sample / "documents-dev.jsonl", tmp_path / "out.jsonl"
    done = redirected("<&- >&- 2>&-", "predict", label_model, texts, "--output", output)
    assert done.returncode == 0
    rows = output.read_text(encoding="utf-8").splitlines()
    assert len([json.loads(row) for row in rows]) == len(texts.read_text(encoding="utf-8").splitlines())


def test_a_message_cannot_control_the_terminal(tmp_path: Path) -> None:
    done = run_command("train", tmp_path / "\x1b[2Ja.jsonl", "--output", tmp_path / "model")
    assert done.code == 2
    assert "\x1b" not in done.err
    assert r"\x1b[2Ja.jsonl" in done.err
