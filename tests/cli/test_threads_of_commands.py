"""Every command that computes uses the threads that the machine grants, and not all that torch sees."""

import os
import subprocess
import sys

import pytest
from run_command import TINY, run_command

from nlpcapsule.cli import compare, inspect, learn, predict, tune


class ThreadsChosenError(Exception):
    """Raised where a command chooses its threads: what it does then takes too long here."""


@pytest.mark.parametrize(
    ("command", "given"),
    [
        (compare, ("compare", "--data", "{sample}", "--output", "{new}")),
        (inspect, ("inspect", "{model}", "{sample}/documents-train.jsonl", "--output", "{new}")),
        (learn, ("learn", "{model}", "{sample}/documents-train.jsonl", "--output", "{new}")),
        (tune, ("tune", "{sample}/documents-train.jsonl", "--output", "{new}")),
    ],
    ids=["compare", "inspect", "learn", "tune"],
)
def test_a_command_chooses_threads_before_it_computes(sample, tmp_path, monkeypatch, command, given):
    def choose(asked):
        assert asked is None
        raise ThreadsChosenError

    monkeypatch.setattr(command, "use_threads", choose)
    places = {"sample": sample, "model": tmp_path / "model", "new": tmp_path / "new"}
    with pytest.raises(ThreadsChosenError):
        run_command(*(word.format(**places) for word in given), "--debug")


@pytest.mark.parametrize(("model", "times"), [("label-query", 1), ("one-vs-rest", 0)])
def test_predict_tries_fewer_threads_for_torch_alone(sample, tmp_path, monkeypatch, model, times):
    data, folder, tried = sample / "documents-train.jsonl", tmp_path / "model", []
    settings = TINY if model == "label-query" else ()
    done = run_command("train", data, "--output", folder, "--model", model, "--quiet", *settings)
    assert done.code == 0, done.err
    monkeypatch.setattr(predict, "keep_faster_torch_threads", tried.append)
    assert run_command("predict", folder, data, "--quiet").code == 0
    assert len(tried) == times


IMPORTS_TORCH = """
import os, sys

class Torch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("GOMP_SPINCOUNT"), os.environ.get("OMP_NUM_THREADS"))
            sys.stdout.flush()
            os._exit(7)

sys.meta_path.insert(0, Torch())
from nlpcapsule.cli.app import main
main()
"""


@pytest.mark.parametrize(
    "given",
    [
        "train {sample}/documents-train.jsonl --output {new} --dry-run --threads 1",
        "tune {sample}/documents-train.jsonl --output {new}",
        "compare --data {sample} --output {new}",
        "evaluate {new} {sample}/documents-train.jsonl --threads 1",
        "predict {new} {sample}/documents-train.jsonl --threads 1",
        "inspect {new} {sample}/documents-train.jsonl",
        "learn {new} {sample}/documents-train.jsonl",
        "export {new}",
        "demo --output {new}",
    ],
    ids=lambda given: given.split()[0],
)
def test_threads_are_chosen_before_torch_is_imported(sample, tmp_path, given):
    """Its threads read the environment once, when they are loaded: how many they are, and how they wait."""
    chosen = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    words = given.format(sample=sample, new=tmp_path / "new").split()
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS_TORCH, *words], env=chosen, capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    spins, threads = done.stdout.split()
    assert (spins, int(threads) > 0) == ("3000", True)
