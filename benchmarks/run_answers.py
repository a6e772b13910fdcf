"""Train and measure an answer ranker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.answer_data import AnswerParts
from benchmarks.cell import Cell, CellRecord
from nlpcapsule.compare.measuring import Measured, measure_answers, trained
from nlpcapsule.config import Config
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def run_answers(cell: Cell, parts: AnswerParts, folder: RunFolder, progress: TrainingProgress) -> Measured:
    """Train and measure an answer ranker.

    Args:
        cell: The system.
        parts: Its data.
        folder: The folder it is trained in.
        progress: Receives progress.

    Returns:
        The record, and average precisions (questions,) of the first reported part.
    """
    config = with_files(cell.config, parts)
    data = prepare_answers(parts.train, parts.select, config)
    fingerprint = parts.fingerprint()
    model, facts = trained(folder, config, fingerprint, lambda: fit_answers(data, config, folder, progress))
    record, precisions = measure_answers(model, parts.report)
    return CellRecord.of(cell, record | facts).to_json(), precisions


def with_files(config: Config, parts: AnswerParts) -> Config:
    """Return the configuration with the data folder's word vectors, or its transformer, if used."""
    if config.transformer is not None:
        return config if parts.encoder is None else with_encoder(config, parts.encoder)
    if config.network.word_vector_size and parts.vectors is not None:
        text = config.text.model_copy(update={"vectors": str(parts.vectors)})
        return config.model_copy(update={"text": text})
    return config


def with_encoder(config: Config, encoder: Path) -> Config:
    """Return the configuration with a transformer's folder, if it uses one and the folder exists."""
    if config.transformer is None or not encoder.is_dir():
        return config
    network: Any = config.network
    own = network.encoder.model_copy(update={"path": str(encoder)})
    return config.with_network(network.model_copy(update={"encoder": own}))
