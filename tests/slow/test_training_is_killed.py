"""`nlpcapsule train`, killed at random moments: resumed, it ends with the same bytes, and nothing is left."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from killed_commands import Commands

sys.path += [str(Path(__file__).parents[1] / "training")]

from tiny_runs import some_documents, write_documents
from typer.testing import CliRunner

from nlpcapsule.cli.app import app
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.model_folder import load_model

pytestmark = pytest.mark.slow

NETWORK = {
    "embedding_size": 8,
    "filters": 8,
    "capsule_size": 8,
    "condensed": 4,
    "document_size": 8,
    "batch_size": 8,
    "epochs": 3,
    "checkpoint_epochs": 0.2,
}
RUNS = {
    "network": ["--model=label-query"],
    "lexical": ["--model=one-vs-rest"],
    "hybrid": ["--set=lexical=one-vs-rest"],
}


def arguments(data: Path, out: Path, run: str) -> list[str]:
    sizes = [] if run == "lexical" else [f"--set={key}={value}" for key, value in NETWORK.items()]
    files = [str(data / "train.jsonl"), "--dev", str(data / "dev.jsonl"), "--output", str(out)]
    return ["train", *files, "--quiet", *RUNS[run], *sizes]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_documents(folder / "train.jsonl", some_documents(100))
    write_documents(folder / "dev.jsonl", some_documents(20, "dev"))
    return folder


def model_files(folder: Path) -> dict[str, bytes]:
    """All that is in a finished folder, but for what tells seconds."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "metrics.jsonl"
    }


@pytest.mark.parametrize("run", RUNS)
def test_a_killed_training_is_resumed_to_the_same_bytes(
    run: str, commands: Commands, data: Path, tmp_path: Path, kills: int
) -> None:
    seconds = commands.finish(*arguments(data, tmp_path / "whole", run))
    expected = model_files(tmp_path / "whole")
    generator = random.Random(run)
    for number in range(kills):
        out = tmp_path / str(number)
        command = arguments(data, out, run)
        commands.kill(generator.uniform(0, seconds), *command)
        is_finished = (out / "manifest.json").exists() or (out / ".nlpcapsule-saved").exists()
        if is_finished:
            load_model(out)
        else:
            with pytest.raises(ModelFolderError):
                load_model(out)
        has_begun = is_finished or (out / "checkpoint" / "run.json").exists()
        resumed = CliRunner().invoke(app, [*command, *(["--resume"] if has_begun else [])])
        assert resumed.exit_code == 0, f"kill {number}: {resumed.output} {resumed.exception}"
        assert model_files(out) == expected, f"kill {number}"
