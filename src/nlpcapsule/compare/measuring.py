"""Train a system in a work folder, measure it, write its record, and remove the folder."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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


def trained(
    folder: RunFolder, config: Config, data: str, fit: Callable[[], Model], can_load: bool = True
) -> tuple[Model, dict[str, Any]]:
    """Return the model of a folder, trained to its end, and the facts of its training, for the record.

    The training began with `config`, on data of the fingerprint `data`. A finished model that cannot be
    loaded (`can_load`) is trained again.
    """
    if folder.finished and can_load:
        model, seconds = cast(Model, load_model(folder.path)), None
    else:
        is_resumed = (folder.checkpoint / "run.json").exists()
        started = time.perf_counter()
        model = fit()
        seconds = None if is_resumed else time.perf_counter() - started
    log, network = folder.path / "metrics.jsonl", model.network
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    epochs = [json.loads(line) for line in lines]
    sizes = (path.stat().st_size for path in folder.path.rglob("*") if path.is_file())
    return model, {
        "selected on": model.facts.dev or {},
        "epochs": epochs,
        "training seconds": round(max(seconds or 0.0, sum(epoch["seconds"] for epoch in epochs)), 1),
        **({LOWER_BOUND: True} if seconds is None else {}),  # only its epochs were timed
        "parameters": None if network is None else sum(weights.numel() for weights in network.parameters()),
        "model MiB": round(sum(sizes) / 2**20, 2),
        "config": json.loads(config.model_dump_json()),
        "data": data,
    }


def measure_labels(model: LabelModel, report: EncodedDocuments) -> Measured:
    """Measure a label model: return the record, and metrics per document (4, documents)."""
    started = time.perf_counter()
    rankings = model.rank_tokens(report.tokens, RANKED)
    seconds, iterations = time.perf_counter() - started, rankings.iterations
    record = {
        "figures": model.evaluate(report, rankings),
        "milliseconds per document": round(1000 * seconds / len(report), 3),
        "documents by routing iterations": None if iterations is None else np.bincount(iterations).tolist(),
    }
    return record, label_figures(rankings, report)


def measure_answers(model: AnswerModel, parts: Mapping[str, Sequence[Question]]) -> Measured:
    """Measure an answer model on named parts.

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
    milliseconds = round(1000 * seconds / sum(map(len, parts.values())), 3)
    return {"figures": figures, "milliseconds per question": milliseconds}, precisions[0]


def label_figures(rankings: LabelRankings, report: EncodedDocuments) -> np.ndarray:
    """Return `LABEL_FIGURES` of each document: (4, documents)."""
    figures = per_document_metrics(rankings.labels, list(report.labels))
    return np.stack([figures[name] for name in LABEL_FIGURES])


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
        record: dict[str, Any]
        if run.source.kind == "labels":
            data = prepare_labels(train, select, config)
            encoded = encode_documents(report, data.tokenizer, data.labels, config.text.max_tokens)
            fit = partial(fit_labels, data, config, folder, progress)
            model, facts = trained(folder, config, data.fingerprint(), fit)
            record, each = measure_labels(model, encoded)
        else:
            asked = prepare_answers(train, select, config)
            fit_asked = partial(fit_answers, asked, config, folder, progress)
            ranker, facts = trained(folder, config, asked.fingerprint(), fit_asked)
            record, each = measure_answers(ranker, {"report": report})
        return record | facts, each

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


def _named_files(config: Config) -> list[Path]:
    text = config.text
    paths = [Path(name) for name in (text.vectors, text.tokenizer, text.label_names) if name]
    if config.transformer is not None:
        folder = Path(config.transformer)
        paths += [path for pattern in _ENCODER_FILES for path in sorted(folder.glob(pattern))]
    return [path for path in paths if path.is_file()]
