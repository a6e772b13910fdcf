"""A disk that fills up: one message, exit code 2, and what was there before stays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tiny_runs import some_documents, write_documents

sys.path += [str(Path(__file__).parents[1] / "cli")]

from run_command import TINY, run_command

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.model_folder import load_model, save_model

DISK = 2**25  # bytes
TEXTS = [document.text for document in some_documents(3)]
RUNS = {"network": [*TINY, "--model=label-query"], "lexical": ["--model=one-vs-rest"]}
AlmostFull = Callable[[int], AbstractContextManager[None]]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own where this process may mount one, else a plain folder."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    has_mount = shutil.which("mount") is not None
    is_mounted = has_mount and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    yield folder
    if is_mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def almost_full(disk: Path, full_disk: AlmostFull) -> AlmostFull:
    """A block in which the disk, or where it is none each of its files, has room for so many bytes more."""

    @contextmanager
    def limited(free: int) -> Iterator[None]:
        if not disk.is_mount():
            with full_disk(free):
                yield
            return
        room = os.statvfs(disk)
        filler = disk / "filler"
        filler.write_bytes(bytes(max(0, room.f_bavail * room.f_frsize - free)))
        try:
            yield
        finally:
            filler.unlink()

    return limited


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("share", [0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_saving_leaves_the_earlier_model(tiny_models, disk, almost_full, share):
    earlier, new = tiny_models("networks", "kim-cnn"), tiny_models("networks", "hybrid")
    shutil.copytree(earlier, disk / "model")
    before = contents(disk / "model")
    largest = max(path.stat().st_size for path in new.rglob("*"))
    free = int(share * (size_of(new) if disk.is_mount() else largest))
    with (
        pytest.raises(ModelFolderError, match=r"cannot be saved: .*; nothing in it has changed"),
        almost_full(free),
    ):
        save_model(load_model(new), disk / "model")
    assert contents(disk / "model") == before
    load_model(disk / "model").rank(TEXTS)
    save_model(load_model(new), disk / "model")
    assert load_model(disk / "model").rank(TEXTS) == load_model(new).rank(TEXTS)


@pytest.mark.parametrize(
    ("run", "free"),
    [("network", free) for free in (0, 5_000, 40_000, 150_000)]
    + [("lexical", free) for free in (0, 9_000, 60_000)],
)
def test_training_says_what_is_wrong_and_goes_on_when_there_is_room(tmp_path, disk, almost_full, run, free):
    train = write_documents(tmp_path / "train.jsonl", some_documents(64))
    command = ["train", train, "--output", disk / "model", "--quiet", *RUNS[run]]
    with almost_full(free):
        done = run_command(*command)
    assert done.code == 2, done
    assert "Traceback" not in done.err
    assert len(done.errors) == 1, done.err
    assert "No space left on device" in done.err or "File too large" in done.err
    assert not (disk / "model" / "manifest.json").exists()
    has_begun = (disk / "model" / "checkpoint" / "run.json").exists()
    again = run_command(*command, *(["--resume"] if has_begun else []))
    assert again.code == 0, again
    load_model(disk / "model").rank(TEXTS)


@pytest.mark.parametrize("free", [0, 4_096, 8_192, 12_288, 16_384, 20_480])
def test_predicting_leaves_the_earlier_output(tiny_models, tmp_path, disk, almost_full, free):
    model, output = tiny_models("networks", "kim-cnn"), disk / "labels.jsonl"
    rows = [{"text": text} for text in TEXTS * 200]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    output.write_text("earlier\n", encoding="utf-8")
    with almost_full(free):
        done = run_command("predict", model, tmp_path / "texts.jsonl", "--output", output, "--quiet")
    assert done.code == 2, done
    assert len(done.errors) == 1, done.err
    assert "labels.jsonl cannot be written" in done.err
    assert output.read_text(encoding="utf-8") == "earlier\n"
    assert [path.name for path in disk.iterdir()] == ["labels.jsonl"]
