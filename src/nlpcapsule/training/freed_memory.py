"""Give the memory of freed tensors back to the operating system.

Batches differ in length. Freed tensors leave gaps of all sizes between those in use, which glibc keeps for
later ones that fit. Training on a CPU would take more memory than its largest batch needs.
"""

import ctypes
import sys

_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


def give_back_freed_memory() -> None:
    """Return freed heap memory to the operating system. Does nothing without glibc."""
    if _TRIM is not None:
        _TRIM(0)
