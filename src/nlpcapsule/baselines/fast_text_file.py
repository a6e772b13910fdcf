"""Check fastText's file before the library reads it: the library does not validate sizes.

All numbers are little-endian, one after another:

    magic, version                                                  2 int32
    arguments: dim, …, loss, model, bucket, minn, maxn, …, t        12 int32, 1 float64
    dictionary: entries, words, labels, tokens, pruned              3 int32, 2 int64
        each entry: its text, a zero byte, its count, its type      int64, int8 (0 word, 1 label)
    quantised                                                       1 byte, 0
    word vectors: rows, columns, numbers                            2 int64, float32
    quantised                                                       1 byte, 0
    label vectors: rows, columns, numbers                           2 int64, float32
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from nlpcapsule.errors import ModelFolderError

_MAGIC, _VERSION = 793712314, 12
_SUPERVISED = 3
_LOSSES = {"softmax": 3, "ova": 4}
_ARGUMENTS = struct.Struct("<12id")
_DICTIONARY = struct.Struct("<iiiqq")
_MATRIX = struct.Struct("<qq")
_COUNT_AND_TYPE = 9  # bytes after an entry's text


def check_fasttext_file(path: Path, size: int, loss: str, prefix: str) -> list[int]:
    """Reject a file that the library could not read, or that was trained with other settings.

    Args:
        path: The file.
        size: Size of a vector.
        loss: "softmax" or "ova".
        prefix: The prefix of a label's text, before its id.

    Returns:
        The ids of the known labels, in the file's order.

    Raises:
        ModelFolderError: If it is rejected.
    """
    try:
        return _checked(path.read_bytes(), size, loss, prefix)
    except (struct.error, ValueError, IndexError) as error:
        raise ModelFolderError(f"{path} is damaged or belongs to another model: {error}") from None
    except OSError as error:
        raise ModelFolderError(f"{path} cannot be read: {error.strerror or error}") from None


def _checked(content: bytes, size: int, loss: str, prefix: str) -> list[int]:
    if struct.unpack_from("<ii", content) != (_MAGIC, _VERSION):
        raise ValueError("it is no file of fastText 0.9")
    place = 8
    arguments = _ARGUMENTS.unpack_from(content, place)
    dim, _, _, _, _, ngrams, loss_number, model, bucket, shortest, longest, _, _ = arguments
    if (dim, ngrams, loss_number, model, bucket) != (size, 1, _LOSSES[loss], _SUPERVISED, 0):
        raise ValueError("it was trained with other settings")
    if shortest or longest:
        raise ValueError("it looks at parts of words")
    place += _ARGUMENTS.size
    entries, words, labels, _, pruned = _DICTIONARY.unpack_from(content, place)
    place += _DICTIONARY.size
    if min(words, labels) < 1 or entries != words + labels or pruned != -1:
        raise ValueError(f"{entries} entries are not {words} words and {labels} labels")
    texts = []
    for number in range(entries):
        end = content.index(b"\0", place)
        kind = content[end + _COUNT_AND_TYPE]
        if kind != (0 if number < words else 1):
            raise ValueError("words and labels are mixed up")
        texts.append(content[place:end])
        place = end + 1 + _COUNT_AND_TYPE
    if len(set(texts)) < len(texts):
        raise ValueError("a word or a label is there twice")
    for rows in (words, labels):
        place = _check_matrix(content, place, rows, size)
    if place != len(content):
        raise ValueError("it does not end where it should")
    return [_label_id(text, prefix) for text in texts[words:]]


def _check_matrix(content: bytes, place: int, rows: int, columns: int) -> int:
    """Check a matrix that is not quantised, and return its end."""
    if content[place] != 0:
        raise ValueError("its vectors are quantised")
    place += 1
    if _MATRIX.unpack_from(content, place) != (rows, columns):
        raise ValueError(f"it has no {rows} vectors of {columns} numbers")
    place += _MATRIX.size
    numbers = np.frombuffer(content, dtype="<f4", count=rows * columns, offset=place)
    if not np.isfinite(numbers).all():
        raise ValueError("a number is infinite or NaN")
    return place + numbers.nbytes


def _label_id(text: bytes, prefix: str) -> int:
    digits = text.decode("ascii").removeprefix(prefix)
    if not (digits.isdigit() and text.decode("ascii") == f"{prefix}{int(digits)}"):
        raise ValueError(f"a label is called {text[:40]!r}")
    return int(digits)
