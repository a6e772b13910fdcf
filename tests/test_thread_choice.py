"""Threads follow affinity and quota, and fewer are kept where that is faster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nlpcapsule import threads

CPUS = 8


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight CPUs, and nothing chosen before or after."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(CPUS)), raising=False)
    monkeypatch.setattr(threads, "_chosen", None)
    monkeypatch.setattr(threads, "_is_asked_for", False)
    for name in threads._POOLS:
        monkeypatch.setenv(name, "")
    for name in ("GOMP_SPINCOUNT", "THP_MEM_ALLOC_ENABLE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # set and deleted, so that it is deleted again after the test


def files(root: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


GROUP = "proc/self/cgroup"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({}, CPUS),
        ({GROUP: "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, CPUS),
        ({GROUP: "0::/\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1),
        ({GROUP: "0::/\n", "sys/fs/cgroup/cpu.max": "350000 100000\n"}, 3),
        ({GROUP: "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({GROUP: "0::/\n", "sys/fs/cgroup/cpu.max": "9900000 100000\n"}, CPUS),
        ({GROUP: "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "200000 100000\n"}, 2),
        (
            {
                GROUP: "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "200000 100000\n",
            },
            2,
        ),
        ({GROUP: "nonsense\n0::/\n", "sys/fs/cgroup/cpu.max": "a b c\n"}, CPUS),
        (
            {
                GROUP: "4:memory:/x\n3:cpu,cpuacct:/docker/1\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            {
                GROUP: "3:cpuacct,cpu:/docker/1\n",
                "sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us": "100000\n",
                "sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us": "100000\n",
            },
            1,
        ),
        (
            {
                GROUP: "3:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            CPUS,
        ),
    ],
)
def test_quotas_of_both_versions_limit_the_cpus(tmp_path: Path, texts: dict[str, str], expected: int) -> None:
    assert threads.available_cpus(files(tmp_path, **texts)) == expected


def test_under_a_quota_of_one_cpu_one_thread_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_quotas", lambda root: iter([1.0]))
    assert threads.use_threads(None) == threads.thread_count() == 1
    assert [os.environ[name] for name in threads._POOLS] == ["1", "1"]


def test_the_users_number_comes_before_the_environments_and_both_before_the_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert threads.thread_count() == threads.use_threads(None)
    monkeypatch.setattr(threads, "_chosen", None)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.thread_count() == 3, "also without a command that calls use_threads"
    assert threads.use_threads(None) == threads.thread_count() == 3
    assert threads.use_threads(5) == threads.thread_count() == 5
    assert os.environ["RAYON_NUM_THREADS"] == "5"


LARGE_TENSORS = """
import resource, sys
from nlpcapsule.threads import use_threads

use_threads(1)
import torch

before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(2**24)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_large_tensors_get_large_pages_unless_the_user_wants_small_ones() -> None:
    system = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not system.exists() or "[madvise]" not in system.read_text(encoding="utf-8"):
        pytest.skip("this system gives large pages to all processes or to none")
    pages = {}
    for wish in ("", "0"):
        environment = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
        environment |= {"THP_MEM_ALLOC_ENABLE": wish} if wish else {}
        command = [sys.executable, "-c", LARGE_TENSORS]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        pages[wish] = int(done.stdout)
    assert pages["0"] > 20 * 2**14  # 64 MiB each
    assert pages[""] < 0.1 * pages["0"]


def test_waiting_threads_sleep_after_as_many_turns_as_the_user_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    threads.use_threads(2)
    assert os.environ["GOMP_SPINCOUNT"] == "3000"
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    threads.use_threads(2)
    assert os.environ["GOMP_SPINCOUNT"] == "7"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({8: 1.0, 4: 2.0, 2: 4.0, 1: 8.0}, 8),
        ({8: 9.0, 4: 5.0, 2: 2.0, 1: 3.0}, 2),
        ({8: 1.0, 4: 0.95, 2: 0.95, 1: 0.95}, 8),  # within the noise
        ({8: 9.0, 4: 5.0, 2: 2.0, 1: 1.0}, 1),
    ],
)
def test_fewer_threads_are_kept_where_they_are_clearly_faster(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], expected: int
) -> None:
    import torch

    monkeypatch.setattr(threads, "_seconds_of_steps", seconds.__getitem__)
    monkeypatch.setattr(threads, "_quotas", lambda root: iter([]))
    used: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    said: list[str] = []
    threads.use_threads(None)
    threads.keep_faster_torch_threads(said.append)
    assert used[-1] == threads.thread_count() == expected
    assert len(said) == (expected < CPUS)
    assert all(f"{expected} of {CPUS}" in remark for remark in said)


def test_a_number_that_was_asked_for_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(threads, "_seconds_of_steps", lambda count: float(count))
    used: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    threads.use_threads(4)
    threads.keep_faster_torch_threads(pytest.fail)
    assert used == [4]


def test_a_resumed_run_uses_the_threads_that_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(threads, "_seconds_of_steps", lambda count: float(count))
    monkeypatch.setattr(threads, "_quotas", lambda root: iter([]))
    used: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    threads.use_threads(None)
    threads.keep_faster_torch_threads(pytest.fail, earlier=3)
    assert used == [3]
    threads.use_threads(2)
    threads.keep_faster_torch_threads(pytest.fail, earlier=3)
    assert used == [3, 2]
