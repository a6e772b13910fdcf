"""The embedded sample in small slices, and tiny models trained on it by the command line itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from run_command import TINY, TINY_KIM, run_command

from nlpcapsule.sample import write_sample

SLICES = {"documents-train": 60, "documents-dev": 20, "questions-train": 16, "questions-dev": 8}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the first rows of the sample's files."""
    folder = tmp_path_factory.mktemp("sample")
    for name, path in write_sample(folder / "whole").items():
        if name in SLICES:
            rows = path.read_text(encoding="utf-8").splitlines(keepends=True)[: SLICES[name]]
            (folder / path.name).write_text("".join(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def label_model(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("networks") / "labels"
    trained = run_command("train", sample / "documents-train.jsonl", "--output", folder, *TINY)
    assert trained.code == 0, trained.err
    return folder


@pytest.fixture(scope="session")
def answer_model(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("networks") / "answers"
    questions = sample / "questions-train.jsonl"
    trained = run_command("train", questions, "--task", "answers", "--output", folder, *TINY)
    assert trained.code == 0, trained.err
    return folder


@pytest.fixture(scope="session")
def unrouted_model(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("networks") / "kim"
    trained = run_command("train", sample / "documents-train.jsonl", "--output", folder, *TINY_KIM)
    assert trained.code == 0, trained.err
    return folder
