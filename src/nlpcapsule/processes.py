"""Child processes that end with their parent and import nothing from the working folder.

The module uses only the standard library, since it is copied to the Python that runs PECOS.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PARENT_VARIABLE = "NLPCAPSULE_PARENT"  # the process id of the parent, for the child only
WATCH_SECONDS = 0.5

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux's prctl
_SAFE_PATH = "PYTHONSAFEPATH"

_watched: set[int] = set()


def module_command(module: str) -> list[str]:
    """Return the command that runs a module.

    With `-P`, a file such as `random.py` in the working folder cannot shadow Python's module.
    """
    return [sys.executable, "-P", "-m", module]


def pool_options() -> dict[str, Any]:
    """Return options of a `joblib.Parallel` whose workers end with this process, also without a task."""
    return {"backend": "loky", "initializer": watch_parent, "initargs": (os.getpid(),)}


@contextmanager
def starting_workers() -> Iterator[None]:
    """Prepare this process for a library that starts worker processes in this block.

    The workers import nothing from the working folder. They ignore Ctrl-C, which a terminal sends to all
    processes at once: this process handles it, behind the block, and ends them.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        with _without_interrupts():
            yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block; processes that are started in it never see one."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it inside the block would let Ctrl-C in again
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def child_environment() -> dict[str, str]:
    """Return the environment of a child that calls `end_with_parent`."""
    return {**os.environ, PARENT_VARIABLE: str(os.getpid())}


def end_with_parent() -> None:
    """Make this child process end when its parent ends, however that happens.

    Linux has a system call for this; elsewhere, a thread watches for a change of the parent.
    """
    # Without the variable, the parent may already have ended, which could not be noticed.
    parent = int(os.environ.pop(PARENT_VARIABLE, os.getppid()))
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    watch_parent(parent)


def leave_signals_to_parent() -> None:
    """Set up a child's signals: end with the parent, ignore Ctrl-C, turn SIGTERM into an exception.

    As an exception, SIGTERM allows temporary files to be removed.
    """
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = os.getpid()

    def end(number: int, _: object) -> None:
        if os.getpid() != process:
            os._exit(128 + number)  # a forked child has nothing to remove
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def watch_parent(parent: int) -> None:
    """End this process soon after the process `parent` has ended; does nothing in `parent` itself.

    For pool workers: Linux would end them with the thread that started them, which the pool outlives.
    """
    if os.getpid() in _watched or os.getpid() == parent:
        return
    _watched.add(os.getpid())
    threading.Thread(target=_end_after, args=(parent,), daemon=True, name="watch-parent").start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(128 + signal.SIGTERM)  # there is no one left to read an error
