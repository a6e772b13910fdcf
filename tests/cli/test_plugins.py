"""A file outside the package adds a part, and the command line trains with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from run_command import TINY, run_command

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
from nlpcapsule.encoders.encoder import register_encoder
from nlpcapsule.encoders.word_encoder import WordEncoder, new_embedding

@register_encoder("one-layer")
class OneLayer(WordEncoder):
    """A linear layer on each word vector."""

    def __init__(self, embedding):
        super().__init__(embedding)
        self.state_size = 8
        self.layer = nn.Linear(embedding.size, 8)

    @classmethod
    def from_settings(cls, settings, inputs):
        return cls(new_embedding(settings.embedding_size, inputs))

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


def nlpcapsule(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nlpcapsule.cli.app", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def rows(sample: Path) -> list[dict]:
    lines = (sample / "documents-train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("part", PLUGINS)
def test_a_part_from_one_file_is_trained_with(
    part: str, rows: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(PLUGINS[part], encoding="utf-8")
    if part == "reader":
        lines = [f"{', '.join(row['labels'])} | {row['text']}" for row in rows]
        (tmp_path / "train.bars").write_text("\n".join(lines), encoding="utf-8")
    else:
        (tmp_path / "train.bars").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    train = ["train", "train.bars", "--output", "model", "--quiet", *FITTING.get(part, TINY), *WITH[part]]
    monkeypatch.chdir(tmp_path)
    refused = run_command(*train)  # without the plugin
    assert refused.code == 2, refused.err
    assert "Traceback" not in refused.err
    done = nlpcapsule("--plugin", "mine.py", *train, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model" / "manifest.json").exists()


def test_a_plugin_that_fails_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("raise ValueError('no')\n", encoding="utf-8")
    for name, told in (("bad.py", "the plugin failed: ValueError: no"), ("none.py", "no such plugin file")):
        done = nlpcapsule("--plugin", name, "systems", folder=tmp_path)
        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr
