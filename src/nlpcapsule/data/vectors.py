"""Pretrained word vectors for a vocabulary, from GloVe or word2vec text files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nlpcapsule.config.checks import LARGEST_SIZE
from nlpcapsule.data.readers.lines import TextFile, is_stream
from nlpcapsule.data.readers.reading import Place, whole_number
from nlpcapsule.errors import DataError, quoted

UNKNOWN_RANGE = 0.25


def load_vectors(
    path: str | Path, vocabulary: Sequence[str], padding_id: int = 0, seed: int = 0
) -> tuple[np.ndarray, int]:
    """Return a row of numbers for each id of a vocabulary (V, v), float32, and how many words were found.

    The rows of other words are drawn from uniform(-0.25, 0.25); that of padding is zero.

    The file is read line by line, plain or gzip-compressed, in GloVe's format (a word and v numbers) or
    word2vec's (the same under a "count dimension" header). Values of words outside the vocabulary are counted
    but not parsed. If a word occurs twice, its first vector is used. A word's random vector depends only on
    its id and the seed, not on the file. An empty string in the vocabulary is an id without a word. A file
    that is damaged, or has none of the words, is a DataError.
    """
    ids = {word: id for id, word in enumerate(vocabulary) if word and id != padding_id}
    matrix: np.ndarray | None = None
    found: set[int] = set()
    for at, word, fields in _read_rows(path):
        if matrix is None:
            size = (len(vocabulary), len(fields))
            matrix = np.random.default_rng(seed).uniform(-UNKNOWN_RANGE, UNKNOWN_RANGE, size)
            matrix = matrix.astype(np.float32)  # (V, v)
            matrix[padding_id] = 0.0
        id = ids.get(word)
        if id is not None and id not in found:
            matrix[id] = _parse_numbers(fields, at)
            found.add(id)
    if matrix is None:
        raise DataError("the file has no vectors", path, hint="expected a word and its numbers on each line")
    if not found:
        problem = f"none of the vocabulary's {len(vocabulary)} words has a vector in this file"
        hint = "check that the file is for the texts' language and that its words are in lower case"
        raise DataError(problem, path, hint=hint)
    return matrix, len(found)


def vector_words(path: str | Path) -> Iterator[str]:
    """Return the words of a vector file, in its order."""
    return (word for _, word, _ in _read_rows(path))


def _read_rows(path: str | Path) -> Iterator[tuple[Place, str, list[str]]]:
    """Yield each row as its place, its word and its v unparsed numbers."""
    promised, dimension, rows = None, None, 0
    if is_stream(path):  # it is read more than once
        raise DataError("is a pipe or a device, expected a file", path, hint="save the vectors to a file")
    with TextFile(path, errors="replace") as file:
        for line in file.sound_lines():
            fields = line.text.rstrip(" \r").split(" ")  # only these: a word may be another kind of space
            if fields == [""]:
                continue
            if line.at.line == 1 and len(fields) == 2:
                header = [whole_number(field) for field in fields]
                if None not in header:
                    promised, dimension = header
                    continue
            if dimension is None:
                dimension = len(fields) - 1
            _check_field_count(fields, dimension, line.at)
            rows += 1
            # GloVe 840B has words with spaces in them (". . ."), so the word is all but the last v fields.
            yield line.at, " ".join(fields[:-dimension]), fields[-dimension:]
    if promised is not None and promised != rows:
        problem = f"the header promises {promised} words and the file has {rows}"
        raise DataError(problem, path, hint="download the file again, or correct the count in its first line")


def _check_field_count(fields: list[str], dimension: int, at: Place) -> None:
    numbers = len(fields) - 1
    if dimension < 1:
        raise at.broken("a word without numbers; expected a word, a space and its vector")
    if dimension > LARGEST_SIZE:
        raise at.broken(f"{dimension:,} numbers after the word, expected at most {LARGEST_SIZE:,}")
    # More fields are a word with spaces, unless the field after the word's first part is a number as well.
    if numbers < dimension or (numbers > dimension and _number(fields[-dimension - 1]) is not None):
        raise at.broken(f"{numbers} numbers after the word, expected {dimension}")


def _parse_numbers(fields: list[str], at: Place) -> np.ndarray:
    numbers = [_number(field) for field in fields]
    if None in numbers:
        raise at.broken(f"{quoted(fields[numbers.index(None)])} is not a number")
    with np.errstate(over="ignore"):
        row = np.array(numbers, dtype=np.float64).astype(np.float32)  # (v,)
    if not np.isfinite(row).all():
        raise at.broken("a number that is not finite (NaN or infinity)")
    return row


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None
