"""Train a system in a work folder, measure it, write its record, and remove the folder."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import torch
from pydantic import TypeAdapter

from nlpcapsule import __version__
from nlpcapsule.compare.data import UserFolder
from nlpcapsule.compare.record import LOWER_BOUND, save_per_document, save_record
from nlpcapsule.config import Config
from nlpcapsule.data.documents import Question
from nlpcapsule.data.encoded import EncodedDocuments, encode_documents
from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.answer_metrics import answer_metrics, per_question_metrics
from nlpcapsule.evaluation.label_metrics import per_document_metrics
from nlpcapsule.model_folder import MANIFEST, load_model
from nlpcapsule.provenance import hardware, peak_process_memory
from nlpcapsule.scoring.documents import RANKED, LabelRankings
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

LABEL_FIGURES = ("P@1", "P@3", "P@5", "nDCG@5")  # kept per document, for paired tests
ANSWER_FIGURES = ("AP",)

Measured: TypeAlias = tuple[dict[str, Any], np.ndarray]  # the record, and metrics per document
Model = TypeVar("Model", LabelModel, AnswerModel)

_ENCODER_FILES = ("config.json", "tokenizer.json", "*.safetensors")  # read from a transformer's folder


def run_and_record(
    path: Path, commit: str, measure: Callable[[RunFolder, TrainingProgress], Measured]
) -> None:
    """Train and measure a system, and write its record, with metrics per document next to it.

    `measure` trains the system in a work folder, or resumes its training, and measures it.
    """
    work = path.with_suffix(".work")
    resume = (work / MANIFEST).exists() or (work / "checkpoint" / "run.json").exists()
    if not resume:
        rmtree(work, ignore_errors=True)  # of a run that was stopped before its first checkpoint
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with TrainingProgress() as progress:
        record, per_document = measure(RunFolder(work, resume), progress)
    facts = {
        "process memory GiB": round(peak_process_memory() / 2**30, 2),
        **record,  # where another process was measured, its memory
        "gpu memory GiB": round(torch.cuda.max_memory_allocated() / 2**30, 2) if on_gpu else None,
        "hardware": hardware(),
        "nlpcapsule": __version__,
        "commit": commit,
    }
    save_per_document(path, per_document)
    save_record(path, facts)
    rmtree(work, ignore_errors=True)


def trained(folder: RunFolder, fit: Callable[[], Model], can_load: bool = True) -> tuple[Model, float | None]:
    """Return the model of a folder, trained to its end, and the seconds that took.

    The seconds are None if an earlier process trained a part of it. A finished model that cannot be loaded
    (`can_load`) is trained again.
    """
    if folder.finished and can_load:
        return cast(Model, load_model(folder.path)), None
    is_resumed = (folder.checkpoint / "run.json").exists()
    started = time.perf_counter()
    model = fit()
    return model, None if is_resumed else time.perf_counter() - started


def measure_labels(
    model: LabelModel,
    training_seconds: float | None,
    config: Config,
    folder: Path,
    report: EncodedDocuments,
    data: str,
) -> Measured:
    """Measure a label model that was trained in `folder`, started with `config`, on data of a fingerprint.

    Returns the record, and metrics per document (4, documents).
    """
    started = time.perf_counter()
    rankings = model.rank_tokens(report.tokens, RANKED)
    seconds, iterations = time.perf_counter() - started, rankings.iterations
    record = {
        "figures": model.evaluate(report, rankings),
        "milliseconds per document": round(1000 * seconds / len(report), 3),
        "documents by routing iterations": None if iterations is None else np.bincount(iterations).tolist(),
        **_training_facts(model, training_seconds, config, folder, data),
    }
    return record, label_figures(rankings, report)


def measure_answers(
    model: AnswerModel,
    training_seconds: float | None,
    config: Config,
    folder: Path,
    parts: Mapping[str, Sequence[Question]],
    data: str,
) -> Measured:
    """Measure an answer model likewise, on named parts.

    Returns the record, and average precisions (questions,) of the first part.
    """
    figures, precisions, seconds = {}, [], 0.0
    for name, questions in parts.items():
        started = time.perf_counter()
        scores = model.log_odds(questions)
        seconds += time.perf_counter() - started
        marks = [[int(row.label == 1) for row in question.candidates] for question in questions]
        figures[name] = answer_metrics(scores, marks)
        precisions.append(per_question_metrics(scores, marks)["AP"])
    record = {
        "figures": figures,
        "milliseconds per question": round(1000 * seconds / sum(map(len, parts.values())), 3),
        **_training_facts(model, training_seconds, config, folder, data),
    }
    return record, precisions[0]


def label_figures(rankings: LabelRankings, report: EncodedDocuments) -> np.ndarray:
    """Return `LABEL_FIGURES` of each document: (4, documents)."""
    figures = per_document_metrics(rankings.labels, list(report.labels))
    return np.stack([figures[name] for name in LABEL_FIGURES])


def _training_facts(
    model: LabelModel | AnswerModel, seconds: float | None, config: Config, folder: Path, data: str
) -> dict[str, Any]:
    log, network = folder / "metrics.jsonl", model.network
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    epochs = [json.loads(line) for line in lines]
    sizes = (path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "selected on": model.facts.dev or {},
        "epochs": epochs,
        "training seconds": round(max(seconds or 0.0, sum(epoch["seconds"] for epoch in epochs)), 1),
        **({LOWER_BOUND: True} if seconds is None else {}),  # only its epochs were timed
        "parameters": None if network is None else sum(weights.numel() for weights in network.parameters()),
        "model MiB": round(sum(sizes) / 2**20, 2),
        "config": json.loads(config.model_dump_json()),
        "data": data,
    }


@dataclass(frozen=True)
class SystemRun:
    """One system of a comparison: the user's files, its configuration, and the record to write."""

    source: UserFolder
    config: Config
    record: Path
    commit: str = ""


RUN_JSON = TypeAdapter(SystemRun)  # a run as an argument of a child process


def run_system(run: SystemRun) -> None:
    """Train a system and write its record; a stopped training is resumed."""

    def measure(folder: RunFolder, progress: TrainingProgress) -> Measured:
        config = run.config
        train, select, report = run.source.parts()
        if run.source.kind == "answers":
            asked = prepare_answers(train, select, config)
            ranker = trained(folder, lambda: fit_answers(asked, config, folder, progress))
            return measure_answers(*ranker, config, folder.path, {"report": report}, asked.fingerprint())
        data = prepare_labels(train, select, config)
        encoded = encode_documents(report, data.tokenizer, data.labels, config.text.max_tokens)
        tagger = trained(folder, lambda: fit_labels(data, config, folder, progress))
        return measure_labels(*tagger, config, folder.path, encoded, data.fingerprint())

    run_and_record(run.record, run.commit, measure)


def run_name(config: Config) -> str:
    """Return a name that changes with the settings and with the contents of the files they name.

    A hub transformer is identified by its name. Missing files are ignored here; their readers report them.
    """
    settings = config.model_dump_json(exclude={"training": {"checkpoint_epochs"}})  # changes no result
    digest = hashlib.sha256(settings.encode())
    for path in _named_files(config):
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())  # reads a chunk at a time
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    return f"{config.model.name}-{digest.hexdigest()[:8]}-seed{config.training.seed}"


def _named_files(config: Config) -> Iterator[Path]:
    for name in (config.text.vectors, config.text.tokenizer, config.text.label_names):
        if name and Path(name).is_file():
            yield Path(name)
    if config.transformer is not None:
        for pattern in _ENCODER_FILES:
            yield from (path for path in sorted(Path(config.transformer).glob(pattern)) if path.is_file())
