"""Write files atomically: to a temporary name in the same folder, then renamed."""

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil
from safetensors import SafetensorError

from nlpcapsule.errors import NlpCapsuleError

# Errors of file systems that cannot sync; a full or broken disk raises others.
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)


def check_file_name(path: Path) -> None:
    """Reject a path that names no file: replacing /dev/null by a file would do harm."""
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a device or a pipe"
        raise NlpCapsuleError(f"{path} is {what}: expected the name of a file to write")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` if the block succeeds and is removed otherwise."""
    check_file_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NlpCapsuleError(f"{path.parent} cannot be made: {error.strerror or error}") from None
    _remove_stale_parts(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        mode = _mode_of_new_file(temporary)  # some libraries write files that only their owner can read
        yield temporary
        temporary.chmod(mode)
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except (OSError, SafetensorError) as error:
        raise NlpCapsuleError(f"{path} cannot be written: {_reason(error)}") from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_text(path: Path) -> Iterator[IO[str]]:
    """Yield an open UTF-8 text file that appears at `path` if the block succeeds."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def write_text(path: Path, text: str) -> None:
    """Write a whole text file atomically."""
    with atomic_text(path) as file:
        file.write(text)


def _mode_of_new_file(path: Path) -> int:
    """Return the permissions that the umask, or the folder, gives to a new file; the path must be free."""
    path.touch()
    mode = path.stat().st_mode
    path.unlink()
    return stat.S_IMODE(mode)


def _remove_stale_parts(path: Path) -> None:
    """Remove temporary files that killed processes have left next to this file."""
    part = re.compile(rf"\.{re.escape(path.name)}\.(\d+)-[0-9a-f]{{8}}\.part")
    with suppress(OSError):
        for entry in list(os.scandir(path.parent)):
            named = part.fullmatch(entry.name)
            if named and not psutil.pid_exists(int(named[1])):
                Path(entry.path).unlink(missing_ok=True)


def _reason(error: OSError | SafetensorError) -> str:
    """Return the system message, which safetensors wraps as in "I/O error: File too large (os error 27)"."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    wrapped = re.search(r"I/O error: (.+?) \(os error \d+\)", str(error))
    return wrapped[1] if wrapped else str(error)


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk."""
    if path.is_dir() and os.name == "nt":  # Windows cannot open a folder
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Wait until all files of a folder, and their names, are on the disk."""
    for place, _, names in os.walk(folder):
        for name in names:
            sync(Path(place, name))
        sync(Path(place))


def remove_parts(folder: Path) -> None:
    """Remove temporary files and folders that interrupted writes have left in a folder.

    No other process may be writing to the folder.
    """
    for path in [*folder.rglob(".*.part"), *folder.rglob(".part-*")]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
