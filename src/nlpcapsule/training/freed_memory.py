"""Reuse the memory of freed tensors while training on a CPU, and give back what is left over.

By default glibc asks the operating system for the memory of every large tensor and gives it back with the
tensor. The system has to clear all of its pages first, which takes a large part of the time of training. Kept
in the heap, memory is reused. Batches differ in length, so that gaps remain, which are given back now and
then.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from nlpcapsule.training.shared_work import this_process

# `mallopt` of glibc: its parameters, and its initial values.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_USUAL = {_TRIM_THRESHOLD: 2**17, _MMAP_MAX: 2**16}
_REUSING = {_TRIM_THRESHOLD: 2**31 - 1, _MMAP_MAX: 0}

_LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None
_HAS_GLIBC = all(hasattr(_LIBRARY, name) for name in ("gnu_get_libc_version", "mallopt", "malloc_trim"))


@contextmanager
def reused_memory() -> Iterator[None]:
    """Keep freed memory in the heap until the end of the block. Does nothing on a GPU or without glibc."""
    if not _HAS_GLIBC or this_process().device.type != "cpu":
        yield
        return
    _set(_REUSING)
    try:
        yield
    finally:
        _set(_USUAL)
        give_back_freed_memory()


def give_back_freed_memory() -> None:
    """Return freed heap memory to the operating system. Does nothing without glibc."""
    if _HAS_GLIBC:
        assert _LIBRARY is not None
        _LIBRARY.malloc_trim(0)


def _set(values: dict[int, int]) -> None:
    assert _LIBRARY is not None
    for parameter, value in values.items():
        _LIBRARY.mallopt(parameter, value)
