"""End worker processes with the process that started them, even if that was killed."""

from __future__ import annotations

import os
import threading
import time

_LOOK_EVERY = 1.0  # seconds


def end_with_parent(parent: int) -> None:
    """Make this worker process end soon after its parent, which cannot stop it when killed.

    Args:
        parent: The process that started this one.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:  # orphans are adopted by another process
        time.sleep(_LOOK_EVERY)
    os._exit(1)
