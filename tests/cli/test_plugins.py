"""A file outside the package adds a part, and the command line trains with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from run_command import TINY, Finished, assert_refused, run_command

PLUGINS = {
    "routing": '''
from nlpcapsule.capsules.routing import ROUTINGS, kde_mean_shift

@ROUTINGS.register("one-step")
def one_step(votes, **options):
    """One mean-shift step, whatever the settings say."""
    return kde_mean_shift(votes, **{**options, "iterations": 1})
''',
    "encoder": '''
from torch import nn
from nlpcapsule.encoders.word_encoder import WordEncoder
from nlpcapsule.registry import ENCODERS

@ENCODERS.register("one-layer")
class OneLayer(WordEncoder):
    """A linear layer on each word vector."""

    def __init__(self, settings, inputs):
        super().__init__(settings, inputs)
        self.state_size = 8
        self.layer = nn.Linear(self.embedding.size, 8)

    def read(self, words, mask):
        return self.layer(words) * mask.unsqueeze(-1)
''',
    "loss": '''
from torch.nn import functional as F
from nlpcapsule.registry import LABEL_LOSSES

@LABEL_LOSSES.register("squared")
def squared(logits, targets):
    """The squared error of probabilities."""
    return (logits.sigmoid() - targets) ** 2
''',
    "reader": '''
from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.formats import DOCUMENT_READERS

@DOCUMENT_READERS.register("bars")
def read_bars(path, options, report):
    """Lines such as `label one, label two | the text`."""
    for line in path.read_text(encoding="utf-8").splitlines():
        labels, _, text = line.partition("|")
        yield Document(text.strip(), tuple(label.strip() for label in labels.split(",")))
''',
    "system": '''
from typing import Literal
from pydantic import Field
from torch import nn
from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.networks.scored import Scored
from nlpcapsule.registry import System, register

class BagSettings(SystemSettings):
    """`bag`: the mean of word vectors and a linear layer."""

    name: Literal["bag"] = "bag"
    embedding_size: int = Field(8, ge=1, description="numbers per word")

class Bag(nn.Module):
    """The mean of word vectors and a linear layer."""

    def __init__(self, settings, inputs):
        super().__init__()
        self.words = nn.EmbeddingBag(inputs.vocabulary_size, settings.embedding_size, mode="mean")
        self.labels = nn.Linear(settings.embedding_size, inputs.label_count)

    def forward(self, tokens, outputs=None, valid=None):
        return Scored(self.labels(self.words(tokens)).float())

register(System("bag", BagSettings, labels=Bag))
''',
}
WITH = {
    "routing": ["--model", "paper", "--set", "routing=one-step", "--set", "inference.candidates=0"],
    "encoder": ["--encoder", "one-layer"],
    "loss": ["--set", "loss=squared"],
    "reader": ["--format", "bars"],
    "system": ["--model", "bag"],
}
# What `TINY` sets is not for every system and encoder.
FITTING = {
    "system": ["--set=epochs=1"],
    "encoder": [setting for setting in TINY if "filters" not in setting],
}


# Runs commands one after another, each in its folder; a process apart, since plugins stay registered.
PROGRAM = """
import json, os, sys
from run_command import run_command
for folder, arguments in json.loads(sys.argv[1]):
    os.chdir(folder)
    print(json.dumps(vars(run_command(*arguments))))
"""


def train_with(part: str, output: str) -> list[str]:
    return ["train", "train.bars", "--output", output, "--quiet", *FITTING.get(part, TINY), *WITH[part]]


@pytest.fixture(scope="module")
def trained(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Finished]]:
    """The folder and the outcome of a training with each plugin."""
    lines = (sample / "documents-train.jsonl").read_text(encoding="utf-8").splitlines()
    bars = [f"{', '.join(row['labels'])} | {row['text']}" for row in map(json.loads, lines)]
    folders = {part: tmp_path_factory.mktemp(part) for part in PLUGINS}
    for part, folder in folders.items():
        (folder / "mine.py").write_text(PLUGINS[part], encoding="utf-8")
        (folder / "train.bars").write_text("\n".join(bars if part == "reader" else lines), encoding="utf-8")
    commands = [
        (str(folder), ["--plugin", "mine.py", *train_with(part, "model")]) for part, folder in folders.items()
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    finished = [Finished(**json.loads(line)) for line in done.stdout.splitlines()]
    return {part: (folders[part], end) for part, end in zip(folders, finished, strict=True)}


@pytest.mark.parametrize("part", PLUGINS)
def test_a_part_from_one_file_is_trained_with(
    part: str, trained: dict[str, tuple[Path, Finished]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, done = trained[part]
    assert done.code == 0, done.err
    assert (folder / "model" / "manifest.json").exists()
    monkeypatch.chdir(folder)
    refused = run_command(*train_with(part, "other"))  # without the plugin
    assert refused.code == 2, refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    ("name", "told"),
    [("bad.py", "the plugin failed: ValueError: no"), ("none.py", "no such plugin file")],
)
def test_a_plugin_that_fails_is_told_in_one_line(
    name: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.py").write_text("raise ValueError('no')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert_refused(run_command("--plugin", name, "systems"), told)
