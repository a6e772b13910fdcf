"""Run one cell of a table: train, select and report one system on one data set with one seed."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.answer_data import answer_parts
from benchmarks.cell import Cell, CellRecord, cell_path
from benchmarks.encoded_parts import EncodedParts
from benchmarks.label_data import IN_PIECES, MINILM, label_parts
from benchmarks.named_labels import named_folder
from benchmarks.pecos import PECOS, run_peer
from benchmarks.run_answers import run_answers
from benchmarks.run_labels import SharedParts, run_labels, with_names_of
from benchmarks.shared_nominator import shared_nominator
from benchmarks.stored_evidence import StoredEvidence, evidence_path
from nlpcapsule.compare.measuring import Measured, run_and_record
from nlpcapsule.config import Config
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def run_cell(cell: Cell, data: Path | None, cells: Path, commit: str) -> CellRecord:
    """Train a system and write its record; a stopped training is resumed.

    Args:
        cell: What to run.
        data: The folder of real data.
        cells: Folder for the record; metrics per document are written next to it, for paired tests.
        commit: The commit of the code.
    """

    def measure(folder: RunFolder, progress: TrainingProgress) -> Measured:
        if cell.kind == "answers":
            return run_answers(cell, answer_parts(cell.data, data), folder, progress)
        cache = cells.parent.parent / "data"
        if cell.model == PECOS:
            return run_peer(cell, label_parts(cell.data, data, cache))
        name = f"{cell.data}{IN_PIECES}" if cell.config.transformer is not None else cell.data
        parts = label_parts(name, data, cache)
        local = cell if data is None else _with_local_files(cell, data, cache / name)
        stored = None if data is None else data / cell.data
        shared = _shared_parts(cell, stored, cells / "nominators")
        record, per_document = run_labels(local, parts, folder, progress, shared)
        return record | {"cell": asdict(cell)}, per_document  # without this machine's paths

    path = cell_path(cell, cells)
    run_and_record(path, commit, measure)
    return CellRecord.load(path)


def _with_local_files(cell: Cell, data: Path, made: Path) -> Cell:
    """Return the cell with the label names and the transformer of the data folder, if used."""
    local = cell
    if cell.config.text.label_names is not None:
        local = with_names_of(cell, named_folder(cell.data, data, made))
    if cell.config.transformer is not None and (data / MINILM).is_dir():
        others = {key: value for key, value in local.settings.items() if key != "encoder"}
        local = replace(local, settings={**others, "encoder": str(data / MINILM)})
    return local


def _shared_parts(cell: Cell, stored: Path | None, nominators: Path) -> SharedParts:
    """Return the shared parts of cells: stored lexical features and trained nominators."""

    def lexical(parts: EncodedParts, config: Config) -> StoredEvidence | None:
        if stored is None:
            return None
        is_named = config.text.label_names is not None
        assert config.lexical is not None
        path = evidence_path(stored, config.lexical, cell.fraction, is_named)
        return StoredEvidence.load(path, parts) if path.exists() else None

    return SharedParts(
        lexical, lambda data, config, progress: shared_nominator(data, config, nominators, progress)
    )
