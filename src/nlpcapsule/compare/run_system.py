"""Train and measure one system of a comparison in the calling process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from nlpcapsule.compare.data import UserFolder
from nlpcapsule.compare.measuring import Measured, measure_answers, measure_labels, run_and_record, trained
from nlpcapsule.config import Config
from nlpcapsule.data.encoded import encode_documents
from nlpcapsule.errors import DataError
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

_ENCODER_FILES = ("config.json", "tokenizer.json", "*.safetensors")  # read from a transformer's folder


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
    measure = _measure_labels if run.source.kind == "labels" else _measure_answers
    run_and_record(run.record, run.commit, lambda folder, progress: measure(run, folder, progress))


def _measure_labels(run: SystemRun, folder: RunFolder, progress: TrainingProgress) -> Measured:
    config = run.config
    train, select, report = run.source.documents()
    data = prepare_labels(train, select, config)
    encoded = encode_documents(report, data.tokenizer, data.labels, config.text.max_tokens)
    model = trained(folder, lambda: fit_labels(data, config, folder, progress))
    return measure_labels(model, config, folder.path, encoded, data.fingerprint())


def _measure_answers(run: SystemRun, folder: RunFolder, progress: TrainingProgress) -> Measured:
    config = run.config
    train, select, report = run.source.questions()
    data = prepare_answers(train, select, config)
    model = trained(folder, lambda: fit_answers(data, config, folder, progress))
    return measure_answers(model, config, folder.path, {"report": report}, data.fingerprint())


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
