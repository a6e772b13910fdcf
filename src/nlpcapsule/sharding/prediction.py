"""Predict in shards, or go on with a prediction that was interrupted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from nlpcapsule.data.documents import Document, Question
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import DataError, ModelFolderError
from nlpcapsule.model_folder.manifest import model_place
from nlpcapsule.sharding.engines import ENGINES
from nlpcapsule.sharding.shards import find_shards, split_rows
from nlpcapsule.strict_json import read_json, read_text


def predict_in_shards(
    model: Path,
    source: str,
    output: Path,
    reading: ReadOptions,
    report: ReadReport,
    options: Sequence[str],
    *,
    engine: str,
    shards: int,
    chunk: int,
    say: Callable[[str], None],
) -> None:
    """Rank the rows of a file in shards and write the results that one process would write.

    Args:
        model: The model folder.
        source: The file or folder of rows.
        output: The file to write; shards are kept next to it until they are joined.
        reading: How to read the rows.
        report: Receives the bad rows.
        options: Options of `nlpcapsule predict` for the workers.
        engine: A key of `ENGINES`.
        shards: The number of shards, at most.
        chunk: Rows that `nlpcapsule predict` ranks at a time.
        say: Receives lines about the progress.
    """
    place = model_place(model)  # the same version for all workers, also when the prediction goes on
    task = _task(place)
    identity = _identity(place, source, reading, options)
    found = find_shards(output, identity)
    if found is None:
        read: Callable[..., Iterable[Any]] = read_documents if task == "labels" else read_questions
        rows: Iterable[Document | Question] = read(source, reading, report)
        found = split_rows(rows, shards, chunk, output, identity)
    else:
        say(f"{found.count - len(found.unfinished)} of {found.count} shards are done; going on")
    ENGINES[engine](found, str(place.absolute()), options, say)
    found.join(output)


def _task(model: Path) -> str:
    """Return the task of a model, without the time that loading it takes."""
    try:
        return read_json(model / "config.json")["task"]
    except (DataError, KeyError, TypeError):
        raise ModelFolderError(f"{model} holds no model: expected a folder that `train` wrote") from None


def _identity(model: Path, source: str, reading: ReadOptions, options: Sequence[str]) -> dict[str, Any]:
    """Return what the results depend on, to recognise a prediction that goes on."""
    files = sorted(path for path in [Path(source), *Path(source).rglob("*")] if path.is_file())
    stats = [(str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    checksums = read_text(model / "manifest.json")
    return {
        "input": hashlib.sha256(repr(stats).encode()).hexdigest(),
        "model": hashlib.sha256(checksums.encode()).hexdigest(),
        "reading": repr(reading),
        "options": list(options),
    }
