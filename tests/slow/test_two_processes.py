"""Training in two processes, as torchrun starts them: they share every batch and train one model."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nlpcapsule.model_folder import load_model
from nlpcapsule.sample import load_documents

pytestmark = pytest.mark.slow

DOCUMENTS = 203  # batches of 32: the last one has 11, which two processes cannot share evenly
EPOCHS = 3
SMALL = {"epochs": EPOCHS, "filters": 16, "capsule_size": 16, "condensed": 8, "max_tokens": 60}
NO_DROPOUT = {"word_dropout": 0, "token_dropout": 0}
HYBRID = {**SMALL, **NO_DROPOUT, "capsule_dropout": 0, "lexical": "one-vs-rest", "negatives": "hard"}
FEW, MANY = 20_000, 1  # more labels are updated by row: none of the sample's tables, or all
RUNS: dict[str, tuple[str, dict[str, Any], int]] = {
    "hybrid": ("hybrid", HYBRID, FEW),
    "paper": ("paper", {**SMALL, **NO_DROPOUT, "candidates": 0, "negatives": "all"}, FEW),  # sparse gradients
    # Each process reads other rows of the tables. Uniform negatives would differ by process, as dropout does.
    "by row": ("hybrid", {**HYBRID, "negative_count": 7, "candidates": 12}, MANY),
}
LABEL_TABLES = {"labels.query", "labels.slot", "labels.output", "labels.bias", "labels.whole"}

CHILD = '''
"""Run `nlpcapsule`; note which files of the model this process writes, and which tables it updates by row."""
import json, os, runpy, sys
from pathlib import Path

from nlpcapsule.training import loop, row_updates

notes, row_updates.MANY_LABELS = Path(sys.argv.pop(1)), int(sys.argv.pop(1))
folder = sys.argv[sys.argv.index("--output") + 1]
written, tables, keep_rows_apart = set(), set(), loop.keep_rows_apart

def note_tables(network):
    tables.update(row_updates.row_tables(network))
    return keep_rows_apart(network)

def note_writes(event, arguments):
    if event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return
    if event in ("open", "os.mkdir", "os.rename", "shutil.rmtree"):
        place = str(arguments[1 if event == "os.rename" else 0])
        if place.startswith(folder):
            written.add(place.removeprefix(folder).removeprefix("/"))

loop.keep_rows_apart = note_tables
sys.addaudithook(note_writes)
try:
    runpy.run_module("nlpcapsule", run_name="__main__", alter_sys=True)
finally:
    rank = os.environ.get("RANK", "0")
    notes.with_name(f"{notes.name}-{rank}.json").write_text(json.dumps([sorted(written), sorted(tables)]))
'''


class Trained(NamedTuple):
    """A training through the command line."""

    folder: Path
    history: list[dict[str, Any]]  # of the epochs
    told: str  # what was printed
    written: list[set[str]]  # into the folder, by each process
    tables: list[set[str]]  # that each process updated by row


def train(folder: Path, run: str, processes: int) -> Trained:
    model, settings, many_labels = RUNS[run]
    output, notes = folder / f"{run}-{processes}", folder / f"notes-{run}-{processes}"
    (folder / "child.py").write_text(CHILD)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    command = [sys.executable, *(launch if processes > 1 else [])]
    command += [str(folder / "child.py"), str(notes), str(many_labels), "train"]
    command += [str(folder / "train.jsonl"), "--dev", str(folder / "dev.jsonl"), "--device", "cpu"]
    command += ["--output", str(output), "--model", model]
    settings = {**settings, "gradient_accumulation_steps": 2}
    command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    history = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    noted = [json.loads((folder / f"{notes.name}-{rank}.json").read_text()) for rank in range(processes)]
    written, tables = ([set(names) for names in column] for column in zip(*noted, strict=True))
    return Trained(output, history, done.stderr, written, tables)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    for part, count in (("train", DOCUMENTS), ("dev", 33)):
        rows = [{"text": row.text, "labels": row.labels} for row in load_documents(part)[:count]]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("run", RUNS)
def test_two_processes_share_the_work_and_learn_what_one_learns(data, run):
    alone, shared = (train(data, run, processes) for processes in (1, 2))
    shares = [row["rows_per_process"] for row in shared.history]
    assert [len(row) for row in shares] == [2] * EPOCHS, "two processes"
    assert all(sum(row) == DOCUMENTS and abs(row[0] - row[1]) <= 1 for row in shares), "half of the rows each"
    for name in ("loss", "P@1", "nDCG@5"):
        one, two = ([row[name] for row in each.history] for each in (alone, shared))
        assert two == pytest.approx(one, abs=1e-4 if name == "loss" else 1e-9), name
    assert "rows_per_process" not in alone.history[0]
    if RUNS[run][2] == MANY:
        assert shared.tables == [LABEL_TABLES] * 2, "updated by row"
    assert shared.told.count(f"epoch {EPOCHS}/{EPOCHS}") == 1, "one process reports"
    files = {path.relative_to(shared.folder).as_posix() for path in shared.folder.rglob("*")}
    assert {Path(name).name for name in shared.written[0]} >= {Path(name).name for name in files}
    assert shared.written[1] == set(), "one process writes"
    trained = load_model(shared.folder)
    assert len(trained.rank(["The lamp in our street is dark."], 3)[0]) == 3
    assert not (shared.folder / "checkpoint").exists()
