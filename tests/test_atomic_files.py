"""A file appears whole or not at all, and nothing is left beside it."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import save_file

from nlpcapsule.atomic_files import atomic_path, atomic_text, write_text
from nlpcapsule.errors import NlpCapsuleError


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def write_half(path, interruption):
    with atomic_text(path) as file:
        file.write("half of the n")
        file.flush()
        raise interruption("stopped here")


def test_text_is_written_as_utf8_with_plain_newlines(tmp_path):
    write_text(tmp_path / "a.txt", "ä\nλ\n")
    assert (tmp_path / "a.txt").read_bytes() == "ä\nλ\n".encode()
    assert names_in(tmp_path) == ["a.txt"]


def test_missing_folders_are_made(tmp_path):
    write_text(tmp_path / "deep" / "er" / "a.txt", "x")
    assert (tmp_path / "deep" / "er" / "a.txt").read_text() == "x"


def test_an_old_file_is_replaced(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a long old text")
    write_text(path, "new")
    assert path.read_text() == "new"


def test_the_content_is_on_the_disk_before_its_name_and_the_name_before_it_returns(tmp_path, monkeypatch):
    path, synced = tmp_path / "a.txt", []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((os.fstat(file).st_ino, path.exists())))
    write_text(path, "x")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


@pytest.mark.parametrize("interruption", [ValueError, KeyboardInterrupt])
def test_a_block_that_fails_keeps_the_old_file_and_leaves_nothing_behind(tmp_path, interruption):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(interruption):
        write_half(path, interruption)
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["a.txt"]


def test_a_block_that_fails_makes_no_file_where_there_was_none(tmp_path):
    with pytest.raises(ValueError, match="stopped here"):
        write_half(tmp_path / "a.txt", ValueError)
    assert names_in(tmp_path) == []


def test_the_old_file_stands_until_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_text(path) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_a_full_disk_is_reported_with_the_files_name(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(NlpCapsuleError, match=r"a\.txt cannot be written: No space left"), atomic_text(path):
        raise OSError(28, "No space left on device")
    assert names_in(tmp_path) == []


def test_a_full_disk_is_reported_for_weights_too_whose_library_has_an_error_of_its_own(tmp_path, full_disk):
    path = tmp_path / "a.safetensors"
    message = r"a\.safetensors cannot be written: File too large$"
    with pytest.raises(NlpCapsuleError, match=message), full_disk(), atomic_path(path) as temporary:
        save_file({"weights": np.zeros(10_000)}, temporary)
    assert names_in(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="there is no umask here")
def test_permissions_of_weights_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "a.safetensors") as temporary:
            save_file({"weights": np.zeros(3)}, temporary)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.safetensors").stat().st_mode) == 0o640


def test_weights_that_cannot_be_stored_are_reported_in_the_librarys_words(tmp_path):
    path = tmp_path / "a.safetensors"
    with pytest.raises(NlpCapsuleError, match=r"a\.safetensors cannot be written: odd"), atomic_path(path):
        raise SafetensorError("odd")


def test_a_block_that_writes_nothing_is_an_error(tmp_path):
    with pytest.raises(NlpCapsuleError, match="cannot be written"), atomic_path(tmp_path / "a.txt"):
        pass


def test_a_folder_is_no_place_for_a_file(tmp_path):
    with pytest.raises(NlpCapsuleError, match="is a folder"):
        write_text(tmp_path, "x")


def test_a_file_in_the_place_of_the_folder_is_reported(tmp_path):
    (tmp_path / "taken").write_text("x")
    with pytest.raises(NlpCapsuleError, match="taken cannot be made"):
        write_text(tmp_path / "taken" / "a.txt", "x")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_never_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(NlpCapsuleError, match="device or a pipe"):
        write_text(pipe, "x")
    assert pipe.is_fifo()


def test_what_a_killed_process_left_behind_is_removed_by_the_next_one(tmp_path):
    path = tmp_path / "a [1].txt"
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom nlpcapsule.atomic_files import atomic_text\n"
        "with atomic_text(Path(sys.argv[1])) as file:\n"
        "    file.write('half')\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)])
    assert len(names_in(tmp_path)) == 1
    write_text(path, "whole")
    assert names_in(tmp_path) == ["a [1].txt"]


def test_what_another_process_still_writes_is_left_alone(tmp_path):
    path = tmp_path / "a.txt"
    with atomic_text(path) as file:
        file.write("slow")
        write_text(path, "quick")
        write_text(tmp_path / "b.txt", "other")
    assert path.read_text() == "slow"
