"""One cell of a table: one system, one data set, one seed, trained, selected and reported."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeAlias

import numpy as np
import torch

from nlpcapsule import __version__
from nlpcapsule.atomic_files import atomic_path, write_text
from nlpcapsule.config import Config
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.evaluation.answer_metrics import answer_metrics, per_question_metrics
from nlpcapsule.evaluation.label_metrics import per_document_metrics
from nlpcapsule.experiments.answer_data import AnswerParts, answer_parts
from nlpcapsule.experiments.encoded_folder import EncodedParts
from nlpcapsule.experiments.label_data import IN_PIECES, MINILM, label_parts
from nlpcapsule.experiments.memory import peak_process_memory
from nlpcapsule.experiments.named_labels import NAMES_FILE, named_folder, with_label_names
from nlpcapsule.experiments.pecos import needed_python, run_pecos
from nlpcapsule.experiments.pecos_settings import PECOS, PecosSettings
from nlpcapsule.experiments.plan import Cell
from nlpcapsule.experiments.provenance import hardware
from nlpcapsule.experiments.shared_nominator import shared_nominator
from nlpcapsule.experiments.stored_evidence import StoredEvidence, evidence_path
from nlpcapsule.experiments.table import Record
from nlpcapsule.experiments.training_time import LOWER_BOUND, timed_stretch, training_time
from nlpcapsule.model_folder import MANIFEST, load_model
from nlpcapsule.scoring.documents import RANKED, LabelRankings
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.preparation import tuned_threshold
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

_PATHS = (("text", "vectors"), ("text", "tokenizer"), ("text", "label_names"), ("model", "encoder"))
LABEL_FIGURES = ("P@1", "P@3", "P@5", "nDCG@5")  # kept per document, for paired tests
_FRACTION_SEED = 2019

Measured: TypeAlias = tuple[Record, np.ndarray]  # what is said of a system, and its figures per document


def finished_cell(cell: Cell, cells: Path) -> Record | None:
    """The record of a cell that has been run."""
    path = cell_path(cell, cells)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def cell_path(cell: Cell, cells: Path) -> Path:
    """Where a cell's record is or goes; figures per document lie beside it."""
    return cells / f"{cell.name}.json"


def run_cell(cell: Cell, data: Path | None, cells: Path, commit: str, pecos: str | None = None) -> Record:
    """Trains a system and writes its figures; a training that was stopped goes on.

    Args:
        cell: What to run.
        data: The folder of real data.
        cells: Where the record goes; figures per document go beside it, for paired tests.
        commit: The commit the code is of.
        pecos: The Python that has libpecos, where the system is PECOS.
    """

    def measure(folder: RunFolder, progress: TrainingProgress) -> Measured:
        if cell.kind == "answers":
            return run_answers(cell, answer_parts(cell.data, data), folder, progress)
        cache = cells.parent.parent / "data"
        if cell.model == PECOS:
            return run_peer(cell, label_parts(cell.data, data, cache), pecos)
        name = f"{cell.data}{IN_PIECES}" if cell.config.transformer is not None else cell.data
        parts = label_parts(name, data, cache)
        nominators = cells / "nominators"
        if data is None:
            return run_labels(cell, parts, folder, progress, nominators=nominators)
        named = cell
        if cell.config.text.label_names is not None:
            named = with_names_of(cell, named_folder(cell.data, data, cache / name))
        return run_labels(named, parts, folder, progress, data / cell.data, nominators)

    return run_and_record(cell, cells, commit, measure)


def save_per_document(path: Path, figures: np.ndarray) -> None:
    """Writes figures per document beside a cell's record; few values occur, so they pack well."""
    with atomic_path(path.with_suffix(".npz")) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, figures=figures)


def load_per_document(path: Path) -> np.ndarray:
    """Reads what `save_per_document` wrote: (figures, documents)."""
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
        return np.atleast_2d(file["figures"])


def run_and_record(
    cell: Cell, cells: Path, commit: str, measure: Callable[[RunFolder, TrainingProgress], Measured]
) -> Record:
    """Has a system measured in a folder of its own, which is there until it is, and writes what came out.

    Args:
        cell: What is run.
        cells: As in `run_cell`.
        commit: As in `run_cell`.
        measure: Trains the system, or goes on training it, and measures it.
    """
    path = cell_path(cell, cells)
    work = cells / f"{cell.name}.work"
    resume = (work / MANIFEST).exists() or (work / "checkpoint" / "run.json").exists()
    if not resume:
        rmtree(work, ignore_errors=True)  # of a run that was stopped before its first checkpoint
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with TrainingProgress() as progress:
        record, each = measure(RunFolder(work, resume), progress)
    record = {
        "cell": asdict(cell),
        "gpu memory GiB": _gpu_memory(),
        "process memory GiB": _process_memory(),
        **record,
        "hardware": hardware(),
        "nlpcapsule": __version__,
        "commit": commit,
    }
    save_per_document(path, each)
    write_text(path, json.dumps(record, indent=1) + "\n")
    rmtree(work, ignore_errors=True)
    return record


def run_labels(
    cell: Cell,
    parts: EncodedParts,
    folder: RunFolder,
    progress: TrainingProgress,
    stored: Path | None = None,
    nominators: Path | None = None,
) -> Measured:
    """Measures a label system.

    Args:
        cell: The system.
        parts: Its data.
        folder: Where it is trained.
        progress: Told what happens.
        stored: A folder that may hold evidence found before.
        nominators: Where cells share the Kim-CNN that nominates candidates; None: each trains its own.

    Returns:
        The record, and figures (4, documents).
    """
    config = cell.config if stored is None else _with_encoder(cell.config, stored.parent / MINILM)
    thesaurus = None
    if config.text.label_names is not None:
        parts, thesaurus = with_label_names(parts, Path(str(config.text.label_names)).parent)
    cut = parts.cut(config.text.max_tokens)
    data, report = training_data(cut, cell.fraction, thesaurus), cut.report
    words = None
    if stored is not None and config.inference.lexical != "none":
        path = evidence_path(stored, config.inference.lexical, cell.fraction, thesaurus is not None)
        words = StoredEvidence.load(path, cut) if path.exists() else None
    # Evidence that was stored is not kept with a model, which cannot be opened without it.
    if folder.finished and words is None:
        model = load_model(folder.path)
    else:
        nominator = None if nominators is None else shared_nominator(data, config, nominators, progress)
        with timed_stretch(folder.path, goes_on=_is_begun(folder)):
            model = fit_labels(data, config, folder, progress, words, nominator)
    assert isinstance(model, LabelModel)
    started = time.perf_counter()
    rankings = model.rank_tokens(report.tokens, RANKED)
    ranking_seconds = time.perf_counter() - started
    iterations = None if rankings.iterations is None else np.bincount(rankings.iterations).tolist()
    record = {
        "figures": model.evaluate(report, rankings),
        # Trained once, measured twice: what the words bring is the difference.
        "network alone": _network_alone(model, cut.select, report),
        "selected on": model.facts.dev,
        "epochs": _history(folder.path),
        **_training_seconds(folder.path),
        "milliseconds per document": round(1000 * ranking_seconds / len(report), 3),
        "parameters": _parameters(model),
        "model MiB": _folder_size(folder.path),
        "documents by routing iterations": iterations,
        "config": _portable(config),
        "data": parts.fingerprint(),
    }
    return record, _per_document(rankings, report)


def _network_alone(
    model: LabelModel, select: EncodedDocuments, report: EncodedDocuments
) -> dict[str, float] | None:
    """Figures of a joined model's network, whose scores need a decision threshold of their own."""
    if not isinstance(model.scorer, HybridScorer):
        return None
    alone = replace(model, scorer=model.scorer.network_only)
    threshold = tuned_threshold(model.config, alone.rank_tokens(select.tokens, RANKED), select)
    alone = replace(alone, facts=replace(model.facts, threshold=threshold))
    return {**alone.evaluate(report), "threshold": threshold}


def run_peer(cell: Cell, parts: EncodedParts, python: str | None) -> Measured:
    """PECOS's record, and figures (4, documents); `python` is the one that has libpecos."""
    train = training_data(parts, cell.fraction)
    parts = replace(parts, labels=train.labels, train=train.train)
    settings = PecosSettings.model_validate(cell.settings)
    record, rankings, report = run_pecos(parts, settings, cell.seed, needed_python(python))
    return record, _per_document(rankings, report)


def _per_document(rankings: LabelRankings, report: EncodedDocuments) -> np.ndarray:
    """(4, documents)."""
    figures = per_document_metrics(rankings.labels, list(report.labels))
    return np.stack([figures[name] for name in LABEL_FIGURES])


def training_data(
    parts: EncodedParts, fraction: float = 1.0, thesaurus: Thesaurus | None = None
) -> PreparedLabels:
    """A seeded part of the training documents, those to select on, and what labels are called.

    Words and labels are numbered as in the whole training part; a label may be left without a document.
    """
    train = parts.train
    if fraction < 1:
        order = np.random.default_rng(_FRACTION_SEED).permutation(len(train))
        train = train.take(np.sort(order[: round(fraction * len(train))]))
    counts = np.bincount(train.labels.values, minlength=len(parts.labels))
    labels = LabelVocabulary(parts.labels.names, counts.tolist(), parts.labels.titles)
    return PreparedLabels(parts.tokenizer, labels, train, parts.select, parts.vectors, thesaurus=thesaurus)


def run_answers(cell: Cell, parts: AnswerParts, folder: RunFolder, progress: TrainingProgress) -> Measured:
    """The record, and average precisions (questions,) of the first part that is reported on."""
    config = _with_files(cell.config, parts)
    if folder.finished:
        model = load_model(folder.path)
    else:
        with timed_stretch(folder.path, goes_on=_is_begun(folder)):
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
    record = {
        "figures": figures,
        "selected on": model.facts.dev,
        "epochs": _history(folder.path),
        **_training_seconds(folder.path),
        "milliseconds per question": round(
            1000 * ranking_seconds / sum(len(part) for part in parts.report.values()), 3
        ),
        "parameters": _parameters(model),
        "model MiB": _folder_size(folder.path),
        "config": _portable(config),
        "data": parts.fingerprint(),
    }
    return record, precisions[0]


def _with_files(config: Config, parts: AnswerParts) -> Config:
    """The configuration with the data folder's word vectors, or its transformer, where they are used."""
    if config.transformer is not None:
        return config if parts.encoder is None else _with_encoder(config, parts.encoder)
    if config.model.embedding_size and parts.vectors is not None:
        text = config.text.model_copy(update={"vectors": str(parts.vectors)})
        return config.model_copy(update={"text": text})
    return config


def _with_encoder(config: Config, encoder: Path) -> Config:
    """The configuration with the transformer that lies beside the data, where there is and it uses one."""
    if config.transformer is None or not encoder.is_dir():
        return config
    model = config.model.model_copy(update={"encoder": str(encoder)})
    return config.model_copy(update={"model": model})


def with_names_of(cell: Cell, folder: Path) -> Cell:
    """The cell with the label names that lie in a folder."""
    return replace(cell, settings={**cell.settings, "text.label_names": str(folder / NAMES_FILE)})


def _history(folder: Path) -> list[Any]:
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def _is_begun(folder: RunFolder) -> bool:
    """Whether a training was stopped here that will go on."""
    return (folder.checkpoint / "run.json").exists()


def _training_seconds(folder: Path) -> dict[str, Any]:
    """The seconds of all stretches; of one that was killed, those of its epochs are known at least."""
    known = training_time(folder)
    seconds = max(known.seconds, sum(epoch["seconds"] for epoch in _history(folder)))
    return {"training seconds": round(seconds, 1)} | ({LOWER_BOUND: True} if known.killed else {})


def _portable(config: Config) -> dict[str, Any]:
    """The configuration without this machine's own paths."""
    settings = json.loads(config.model_dump_json())
    for section, key in _PATHS:
        if settings[section].get(key):
            settings[section][key] = Path(settings[section][key]).name
    return settings


def _parameters(model: LabelModel | AnswerModel) -> int | None:
    """Numbers a network learns; a lexical system has no such count."""
    return None if model.network is None else sum(weights.numel() for weights in model.network.parameters())


def _folder_size(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20, 2)


def _gpu_memory() -> float | None:
    if not torch.cuda.is_available():
        return None
    return round(torch.cuda.max_memory_allocated() / 2**30, 2)


def _process_memory() -> float:
    """The most memory the process has held: its own where cells have processes of their own."""
    return round(peak_process_memory() / 2**30, 2)
