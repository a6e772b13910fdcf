"""Training in two processes, as torchrun starts them: they share every batch and train one model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nlpcapsule.model_folder import load_model
from nlpcapsule.sample import load_documents

pytestmark = pytest.mark.slow

DOCUMENTS = 203  # batches of 32: the last one has 11, which two processes cannot share evenly
EPOCHS = 3
SMALL = {"epochs": EPOCHS, "filters": 16, "capsule_size": 16, "condensed": 8, "max_tokens": 60}
NO_DROPOUT = {"word_dropout": 0, "token_dropout": 0}
MODELS = {
    "hybrid": {**SMALL, **NO_DROPOUT, "capsule_dropout": 0, "lexical": "one-vs-rest", "negatives": "hard"},
    "paper": {**SMALL, **NO_DROPOUT, "candidates": 0, "negatives": "all"},  # sparse gradients
}


def train(folder: Path, model: str, processes: int) -> tuple[list[dict], str]:
    """Train through the command line: the history of the epochs, and what was printed."""
    output = folder / f"{model}-{processes}"
    launch = ["torch.distributed.run", "--standalone", "--nproc_per_node", str(processes), "-m"]
    command = [sys.executable, "-m", *(launch if processes > 1 else []), "nlpcapsule", "train"]
    command += [str(folder / "train.jsonl"), "--dev", str(folder / "dev.jsonl"), "--device", "cpu"]
    command += ["--output", str(output), "--model", model]
    settings = {**MODELS[model], "gradient_accumulation_steps": 2}
    command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()], done.stderr


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    for part, count in (("train", DOCUMENTS), ("dev", 33)):
        rows = [{"text": row.text, "labels": row.labels} for row in load_documents(part)[:count]]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("model", MODELS)
def test_two_processes_share_the_work_and_learn_what_one_learns(data, model):
    alone, _ = train(data, model, processes=1)
    shared, told = train(data, model, processes=2)
    shares = [row["rows_per_process"] for row in shared]
    assert [len(row) for row in shares] == [2] * EPOCHS, "two processes"
    assert all(sum(row) == DOCUMENTS and abs(row[0] - row[1]) <= 1 for row in shares), "half of the rows each"
    for name in ("loss", "P@1", "nDCG@5"):
        one, two = ([row[name] for row in history] for history in (alone, shared))
        assert two == pytest.approx(one, abs=1e-4 if name == "loss" else 1e-9), name
    assert "rows_per_process" not in alone[0]
    assert told.count(f"epoch {EPOCHS}/{EPOCHS}") == 1, "one process reports"
    assert told.count("the model is in") == 1, "and one writes"
    trained = load_model(data / f"{model}-2")
    assert len(trained.rank(["The lamp in our street is dark."], 3)[0]) == 3
    assert not (data / f"{model}-2" / "checkpoint").exists()
