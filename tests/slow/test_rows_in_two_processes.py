"""`paper` in two real processes: gradients of W_ij are summed, and both end with the same weights."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import json, sys
from pathlib import Path

from accelerate import Accelerator

accelerator = Accelerator(cpu=True)  # before anything else asks for the state of one process

from nlpcapsule.config import Config
from nlpcapsule.networks.build import build_label_network
from nlpcapsule.sample import load_documents
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.loop import train_network
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress

sizes = {"embedding_size": 24, "filters": 4, "condensed": 8, "capsule_size": 8, "max_tokens": 30}
config = Config.build("labels", "paper", overrides={**sizes, "training.epochs": 2, "candidates": 0})
data = prepare_labels(load_documents("train")[:128], None, config)
network = build_label_network(config, data.tokenizer.size, len(data.labels))
network.start_from(data.train.tokens)
rank, folder = accelerator.process_index, Path(sys.argv[1])
task = LabelTask(config, data.train, None, data.labels)
history = train_network(network, task, config.training, folder / f"run{rank}", TrainingProgress(quiet=True))
told = {
    "processes": accelerator.num_processes,
    "losses": [epoch["loss"] for epoch in history],
    "weights": network.transform.rows.detach().double().sum().item(),
}
(folder / f"{rank}.json").write_text(json.dumps(told))
"""


def test_two_processes_share_the_gradients_of_rows(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    subprocess.run(
        [*command, str(script), str(tmp_path)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text("utf-8")) for rank in range(2))
    assert first["processes"] == second["processes"] == 2
    assert first["losses"] != second["losses"]  # each has read its own half of every batch
    assert first["weights"] == second["weights"]
    assert first["losses"][1] < first["losses"][0]
