"""Train and measure an answer ranker."""

from __future__ import annotations

import time

from nlpcapsule.compare.answer_parts import AnswerParts
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.measuring import (
    Measured,
    epoch_history,
    folder_mib,
    is_resumed,
    parameter_count,
    portable_config,
    training_seconds,
    with_encoder,
)
from nlpcapsule.compare.run_record import Measurement
from nlpcapsule.compare.training_time import timed_stretch
from nlpcapsule.config import Config
from nlpcapsule.evaluation.answer_metrics import answer_metrics, per_question_metrics
from nlpcapsule.model_folder import load_model
from nlpcapsule.scoring.models import AnswerModel
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
        The measurement, and average precisions (questions,) of the first reported part.
    """
    config = with_files(cell.config, parts)
    if folder.finished:
        model = load_model(folder.path)
    else:
        with timed_stretch(folder.path, resumes=is_resumed(folder)):
            model = fit_answers(prepare_answers(parts.train, parts.select, config), config, folder, progress)
    assert isinstance(model, AnswerModel)
    figures, precisions, ranking_seconds = {}, [], 0.0
    for name, questions in parts.report.items():
        started = time.perf_counter()
        scores = model.log_odds(questions)
        ranking_seconds += time.perf_counter() - started
        marks = [[int(row.label == 1) for row in question.candidates] for question in questions]
        figures[name] = answer_metrics(scores, marks)
        precisions.append(per_question_metrics(scores, marks)["AP"])
    questions_ranked = sum(len(part) for part in parts.report.values())
    measurement = Measurement(
        figures=figures,
        selected_on=model.facts.dev or {},
        epochs=epoch_history(folder.path),
        **training_seconds(folder.path),
        milliseconds_per_question=round(1000 * ranking_seconds / questions_ranked, 3),
        parameters=parameter_count(model),
        model_mib=folder_mib(folder.path),
        config=portable_config(config),
        data=parts.fingerprint(),
    )
    return measurement, precisions[0]


def with_files(config: Config, parts: AnswerParts) -> Config:
    """Return the configuration with the data folder's word vectors, or its transformer, if used."""
    if config.transformer is not None:
        return config if parts.encoder is None else with_encoder(config, parts.encoder)
    if config.network.word_vector_size and parts.vectors is not None:
        text = config.text.model_copy(update={"vectors": str(parts.vectors)})
        return config.model_copy(update={"text": text})
    return config
