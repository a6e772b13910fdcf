"""What all tests share: one thread (faster for small tensors), no time limit per example, a full disk."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import hypothesis
import pytest
import torch

# Child processes and commands too: a number of threads that depends on the load would change last digits.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)  # here too: fixtures of a module come before those of its first test
hypothesis.settings.register_profile("nlpcapsule", deadline=None)
hypothesis.settings.load_profile("nlpcapsule")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--faults", type=int, default=100, metavar="N", help="damaged inputs per kind in tests/faults"
    )
    parser.addoption(
        "--kills",
        type=int,
        default=18,
        metavar="N",
        help="processes that slow tests kill: trainings, predict, evaluate, compare",
    )


@pytest.fixture(autouse=True, scope="module")
def small_collections() -> None:
    """Exempt what is imported by now from garbage collection: every training asks for a full one."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Iterator[None]:
    """Only a power cut loses what was written but not synced, and no test can cause one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture
def full_disk() -> Callable[..., AbstractContextManager[None]]:
    """A block in which no file can grow beyond so many bytes."""
    resource = pytest.importorskip("resource", reason="this system cannot limit the size of files")

    @contextmanager
    def limited(size: int = 20_000) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited
