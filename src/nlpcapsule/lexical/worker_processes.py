"""Worker processes that end with the process that started them, also where that one was killed."""

from __future__ import annotations

import os
import threading
import time

_LOOK_EVERY = 1.0  # seconds


def end_with_parent(parent: int) -> None:
    """Have this worker process end soon after its parent has: a killed one cannot tell its workers to.

    Args:
        parent: The process that started this one.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # an orphan is given to another process
        time.sleep(_LOOK_EVERY)
    os._exit(1)
