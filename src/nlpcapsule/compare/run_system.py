"""Train and measure one system of a comparison in the calling process."""

from __future__ import annotations

from pathlib import Path

from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.encoded_parts import EncodedParts
from nlpcapsule.compare.measuring import Measured, run_and_record
from nlpcapsule.compare.pecos_settings import PECOS
from nlpcapsule.compare.prepared import load_questions
from nlpcapsule.compare.run_answers import run_answers
from nlpcapsule.compare.run_labels import run_labels, with_names_of
from nlpcapsule.compare.run_peer import run_peer
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def run_system(cell: Cell, data: Path, cells: Path, commit: str, python: str | None = None) -> None:
    """Train a system and write its record; a stopped training is resumed.

    Args:
        cell: The system.
        data: The folder that holds the prepared data set under `cell.data`.
        cells: Folder for the record and the metrics per document.
        commit: The commit of the code.
        python: The Python that has libpecos.
    """
    prepared = data / cell.data

    def measure(folder: RunFolder, progress: TrainingProgress) -> Measured:
        if cell.kind == "answers":
            return run_answers(cell, load_questions(prepared), folder, progress)
        parts = EncodedParts.load(prepared)
        if cell.model == PECOS:
            return run_peer(cell, parts, python)
        is_named = cell.config.text.label_names is not None
        return run_labels(with_names_of(cell, prepared) if is_named else cell, parts, folder, progress)

    run_and_record(cell, cells, commit, measure)
