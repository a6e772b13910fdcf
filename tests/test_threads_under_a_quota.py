"""A quota of one CPU on a machine with two: torch, worker processes and ONNX Runtime use one thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nlpcapsule import threads

SOURCE = Path(threads.__file__).parents[1]
QUOTAS = [("100000 100000", 1), ("max 100000", 2)]  # of a machine with two CPUs, and the threads to use

CHOOSE = """
import json, os, sys
from pathlib import Path
from nlpcapsule import threads

os.sched_getaffinity = lambda process: {0, 1}
threads.available_cpus.__defaults__ = (Path(sys.argv[1]),)
threads.use_threads(None)
"""
TORCH_AND_POOL = """
import torch
from nlpcapsule.lexical.many_labels.pool import in_processes

workers = set(in_processes(os.getpid, [()] * 4, 4))
print(json.dumps({"torch": torch.get_num_threads(), "here": workers == {os.getpid()}}))
"""
ONNX = """
import threading
import numpy as np, onnxruntime, psutil
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.export.onnx_scorer import OnnxScorer, WholeNetwork

before = psutil.Process().num_threads()
scorer = OnnxScorer.load(Path(sys.argv[2]), label_count=3)
of_library = psutil.Process().num_threads() - before
score, in_main_thread = WholeNetwork.score, set()

def noted(*arguments):
    in_main_thread.add(threading.current_thread() is threading.main_thread())
    return score(*arguments)

WholeNetwork.score = noted
scores = scorer.score(Ragged.from_rows([[0, 1], [1], [0]]))
assert scores.log_odds.tolist() == [[2, 3, 4], [3, 4, 5], [1, 2, 3]], scores
print(json.dumps({"threads of the library": of_library, "in the main thread": list(in_main_thread)}))
"""


def run(program: str, root: Path, quota: str, *arguments: object) -> dict[str, Any]:
    """Run a program in a process of a control group with this quota, where the environment sets no number."""
    for name, text in (("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/cpu.max", f"{quota}\n")):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text, encoding="utf-8")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith(("_NUM_THREADS", "_WORLD_SIZE"))
    }
    environment["PYTHONPATH"] = str(SOURCE)
    command = [sys.executable, "-c", CHOOSE + program, str(root), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("quota", "expected"), [QUOTAS[0], pytest.param(*QUOTAS[1], marks=pytest.mark.slow)])
def test_torch_and_the_pool_of_processes_use_what_the_quota_grants(tmp_path, quota, expected):
    found = run(TORCH_AND_POOL, tmp_path, quota)
    assert found == {"torch": expected, "here": expected == 1}, "one worker is this process itself"


@pytest.mark.parametrize(("quota", "expected"), QUOTAS)
def test_documents_are_scored_by_onnx_in_as_many_threads_as_the_quota_grants(tmp_path, quota, expected):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    table = onnx.helper.make_tensor("table", onnx.TensorProto.FLOAT, (2, 3), [1, 2, 3, 3, 4, 5])
    tokens = onnx.helper.make_tensor_value_info("tokens", onnx.TensorProto.INT64, (1, "length"))
    logits = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, (1, 3))
    nodes = [
        onnx.helper.make_node("Gather", ["table", "tokens"], ["states"]),  # (1, l, n)
        onnx.helper.make_node("ReduceMean", ["states"], ["logits"], axes=[1], keepdims=0),
    ]
    graph = onnx.helper.make_graph(nodes, "mean", [tokens], [logits], [table])
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "mean.onnx")
    found = run(ONNX, tmp_path / "root", quota, tmp_path / "mean.onnx")
    assert found == {"threads of the library": 0, "in the main thread": [expected == 1]}
