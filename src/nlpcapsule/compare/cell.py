"""One system of a comparison, trained and measured in the process that calls this."""

from __future__ import annotations

from pathlib import Path

from nlpcapsule.compare.prepared import load_questions
from nlpcapsule.experiments.cell import (
    Measured,
    run_and_record,
    run_answers,
    run_labels,
    run_peer,
    with_names_of,
)
from nlpcapsule.experiments.encoded_folder import EncodedParts
from nlpcapsule.experiments.pecos_settings import PECOS
from nlpcapsule.experiments.plan import Cell
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def run_system(cell: Cell, data: Path, cells: Path, commit: str, python: str | None = None) -> None:
    """Trains a system and writes its record; a training that was stopped goes on.

    Args:
        cell: The system.
        data: The folder that holds the prepared data set under `cell.data`.
        cells: Where the record and the figures per document go.
        commit: The commit the code is of.
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
