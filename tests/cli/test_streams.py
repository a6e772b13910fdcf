"""Streams: results come as rows come, in bounded memory, and a reader or writer may stop at any time."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import typer
from run_command import assert_refused, run_command

from nlpcapsule.cli.chunks import arriving_chunks, full_chunks

PROGRAM = [sys.executable, "-m", "nlpcapsule"]
ROW = b'{"text": "the street lamp is dark", "id": "%d"}\n'


def heed_ctrl_c() -> None:
    """In a child: a shell that starts tests in the background has Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(*arguments: object, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """A command with open pipes that is killed at the end, whatever happens."""
    command = [*PROGRAM, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def test_full_chunks_hold_all_rows_in_order() -> None:
    assert list(full_chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]


def test_arriving_chunks_hold_all_rows_in_order() -> None:
    found = list(arriving_chunks(range(5_000), 7))
    assert [row for chunk in found for row in chunk] == list(range(5_000))
    assert all(0 < len(chunk) <= 7 for chunk in found)


def test_a_row_is_given_before_the_next_one_arrives() -> None:
    go_on = threading.Event()

    def rows() -> Iterator[int]:
        yield 1
        assert go_on.wait(300)
        yield 2

    chunks = arriving_chunks(rows(), 100)
    assert next(chunks) == [1]
    go_on.set()
    assert list(chunks) == [[2]]


def test_no_more_rows_are_read_ahead_than_a_chunk_holds() -> None:
    read: list[int] = []

    def rows() -> Iterator[int]:
        for number in range(10_000):
            read.append(number)
            yield number

    chunks = arriving_chunks(rows(), 10)
    next(chunks)
    time.sleep(0.2)
    assert len(read) <= 10 + 10 + 1


def test_an_error_comes_behind_the_rows_before_it() -> None:
    def rows() -> Iterator[int]:
        yield 1
        raise ValueError("bad row")

    found: list[int] = []
    with pytest.raises(ValueError, match="bad row"):
        found.extend(row for chunk in arriving_chunks(rows(), 10) for row in chunk)
    assert found == [1]


def test_results_are_written_while_standard_input_stays_open_and_ctrl_c_ends_with_130(
    label_model: Path,
) -> None:
    with started("predict", label_model, "-", preexec_fn=heed_ctrl_c) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for number in range(3):
            process.stdin.write(ROW % number)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == str(number)
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
        assert process.stderr.read() == b""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_a_stream_too(label_model: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "rows.jsonl"
    os.mkfifo(pipe)
    with started("predict", label_model, pipe) as process, pipe.open("wb", buffering=0) as file:
        assert process.stdout is not None
        file.write(ROW % 1)
        assert json.loads(process.stdout.readline())["id"] == "1"


def test_endless_rows_take_bounded_memory_and_no_temporary_folder_until_the_reader_stops(
    label_model: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with (
        subprocess.Popen(["yes", (ROW % 1).decode().rstrip()], stdout=subprocess.PIPE) as rows,
        started("predict", label_model, "-", stdin=rows.stdout, env=environment) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        memory = []  # every 250 rows, as a batch in hand takes some for a moment
        for count in range(1, 10_001):
            assert process.stdout.readline()
            if count % 250 == 0:
                memory.append(psutil.Process(process.pid).memory_info().rss)
        assert list(temporary.iterdir()) == []
        process.stdout.close()
        assert process.wait(300) == 141
        assert process.stderr.read() == b""
        rows.kill()
    assert min(memory[32:]) < max(memory[4:12]) + 10_000_000


def test_a_bad_row_of_a_stream_leaves_the_results_before_it(label_model: Path) -> None:
    done = run_command("predict", label_model, "-", stdin=ROW % 1 + b"no JSON\n")
    assert (done.code, len(done.out.splitlines()), len(done.errors)) == (2, 1, 1)
    assert "<stdin>, line 2: invalid JSON" in done.err


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_a_reader_that_never_reads_is_no_error(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*PROGRAM, *arguments], stdout=write, stderr=subprocess.PIPE, timeout=300)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_file_is_still_held_back_until_its_last_row_is_ranked(label_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(ROW % 1 + b"no JSON\n")
    assert_refused(run_command("predict", label_model, tmp_path / "in.jsonl"), "line 2: invalid JSON")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_that_never_ends_is_one_message(device: str, label_model: Path, tmp_path: Path) -> None:
    if not Path(device).exists():
        pytest.skip(f"this system has no {device}")
    for command in (
        ["predict", label_model, device],
        ["evaluate", label_model, device],
        ["train", device, "--output", tmp_path / "out"],
        ["train", device, "--output", tmp_path / "out", "--task", "answers"],
        ["train", "a.jsonl", "--output", tmp_path / "out", "--config", device],
    ):
        assert_refused(run_command(*command), device)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_binary_stream_gives_no_result_though_its_first_line_is_text(
    label_model: Path, pack: Callable[[bytes], bytes]
) -> None:
    with started("predict", label_model, "-") as process:
        output, errors = process.communicate(pack(b"text\n\xff\0\n"), timeout=300)
    assert (process.returncode, output) == (2, b"")
    assert b"<stdin>, line 2: it holds a NUL byte" in errors


@pytest.mark.parametrize("module", ["nlpcapsule.cli.app", "typer", "torch", "torch.nn"])
def test_ctrl_c_during_imports_ends_with_130_and_no_traceback(module: str, label_model: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "from nlpcapsule.__main__ import main\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, "predict", str(label_model), "-"]
    done = subprocess.run(command, input=ROW % 1, capture_output=True, timeout=300, preexec_fn=heed_ctrl_c)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, typer.Abort])
def test_ctrl_c_outside_of_a_command_ends_with_130(stop: type[BaseException], monkeypatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise stop

    monkeypatch.setattr("nlpcapsule.cli.app.app", stopped)
    done = run_command("systems")
    assert (done.code, done.out, done.err) == (130, "", "")


def test_a_file_without_utf8_in_its_name_can_be_named(
    label_model: Path, sample: Path, tmp_path: Path
) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.jsonl"
    try:
        with open(path, "wb") as file:  # noqa: PTH123
            file.write((sample / "documents-dev.jsonl").read_bytes())
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    name = os.fsdecode(path)
    assert run_command("predict", label_model, name).code == 0
    missing = run_command("predict", label_model, name + "x")
    assert missing.code == 2
    assert "there is no such file" in missing.err


def test_folders_and_settings_that_are_not_utf8_are_refused_before_any_work(
    label_model: Path, sample: Path, tmp_path: Path
) -> None:
    name = os.fsdecode(b"caf\xe9")
    train = sample / "documents-train.jsonl"
    for command in (
        ["train", train, "--output", tmp_path / name],
        ["train", train, "--output", tmp_path / "out", "--label-names", name + ".json"],
        ["train", train, "--output", tmp_path / "out", "--set", f"vectors={name}"],
        ["predict", tmp_path / name, train],
        ["evaluate", tmp_path / name, train],
        ["inspect", tmp_path / name, train],
        ["compare", "--data", tmp_path / name],
        ["demo", "--output", tmp_path / name],
    ):
        assert_refused(run_command(*command), r"caf\\udce9.*UTF-8; rename")
    assert list(tmp_path.iterdir()) == []
