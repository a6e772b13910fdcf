"""Training in several processes, as `accelerate launch` starts them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nlpcapsule.model_folder import load_model
from nlpcapsule.sample import load_documents

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("model", ["hybrid", "paper"])  # dense gradients, and sparse ones
def test_two_processes_train_one_model(tmp_path, model):
    rows = [{"text": row.text, "labels": row.labels} for row in load_documents("train")[:200]]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {
        "epochs": 2,
        "filters": 16,
        "capsule_size": 16,
        "condensed": 8,
        "max_tokens": 60,
        "gradient_accumulation_steps": 2,
    }
    launch = ["accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1"]
    done = subprocess.run(
        [sys.executable, "-m", *launch, "--mixed_precision", "no", "--dynamo_backend", "no", "-m"]
        + ["nlpcapsule.cli.app", "train", "train.jsonl", "--dev", "train.jsonl", "--output", "model"]
        + ["--model", model]
        + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    history = (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in history] == [1, 2]
    assert done.stderr.count("epoch 2/2") == 1
    model = load_model(tmp_path / "model")
    assert len(model.rank(["The lamp in our street is dark."], 3)[0]) == 3
    assert not Path(tmp_path / "model" / "checkpoint").exists()
