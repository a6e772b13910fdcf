"""Join word pieces to whole words, for systems that count words.

A pretrained transformer reads pieces: "re", "##gula", "##tion". A linear model works better on the words that
they form. Words are identified by 64-bit hashes, so no word is stored.

Where "##" marks the inside of words, a word always has the same pieces and ids. Where a mark represents the
space before a word ("Ġregulation", "▁regulation"), a word has different pieces after a space than at the
start of a text, and a comma attaches to the word before it. There the text itself is decoded.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain, compress
from typing import Any, Self

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import DataError, ModelFolderError
from nlpcapsule.lexical.arrays import check_array, text_to_array
from nlpcapsule.strict_json import parse_json

UNKNOWN = 0  # the id of words that are too rare in training
_FEWEST = 2  # occurrences of a word in training
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, with well-mixed bits
_INSIDE, _BYTES, _SPACE = "##", "Ġ", "▁"  # marks: WordPiece's, byte-level BPE's, SentencePiece's
_SPECIAL = re.compile(r"<\W*\w[^<>]*>|\[\w+\]")  # <s>, </s>, <|endoftext|>, [CLS]
_ONE_BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a byte of a character that SentencePiece does not know
_WHOLE = "\x1c"  # precedes a special token; texts have a space in its place


@dataclass(frozen=True, eq=False)
class JoinedPieces:
    """Words as runs of piece ids."""

    continues: np.ndarray  # (V,) bool, whether a piece continues the word before it

    def hashes(self, tokens: Ragged) -> tuple[np.ndarray, np.ndarray]:
        """Return the hashes of all words, row by row, and the rows' offsets."""
        if not len(tokens.values):
            return np.zeros(0, dtype=np.uint64), np.zeros_like(tokens.offsets)
        begins = self._begins(tokens)
        starts = np.flatnonzero(begins)
        word_of = np.cumsum(begins) - 1
        place = (np.arange(len(word_of)) - starts[word_of]).astype(np.uint64)  # of a piece in its word
        pieces = (tokens.values.astype(np.uint64) + np.uint64(1)) * _FACTOR
        mixed = (pieces ^ (pieces >> np.uint64(29))) * (np.uint64(2) * place + np.uint64(1)) * _FACTOR
        hashes = np.add.reduceat(mixed ^ (mixed >> np.uint64(32)), starts)
        return hashes, np.concatenate([[0], np.cumsum(begins)])[tokens.offsets]

    def texts(self, tokens: Ragged, chosen: np.ndarray, vocabulary: Sequence[str]) -> Iterator[str]:
        """Yield the spelling of the words selected by a mask (words,)."""
        ends = np.append(np.flatnonzero(self._begins(tokens)), len(tokens.values))
        for place in np.flatnonzero(chosen):
            pieces = (vocabulary[piece] for piece in tokens.values[ends[place] : ends[place + 1]])
            yield "".join(piece.removeprefix(_INSIDE).strip(_BYTES + _SPACE) for piece in pieces)

    def _begins(self, tokens: Ragged) -> np.ndarray:
        """Return (pieces,) bool, whether a piece is the first of a word."""
        begins = ~self.continues[tokens.values]
        begins[tokens.offsets[:-1][tokens.lengths > 0]] = True  # the first piece of a row always is
        return begins


@dataclass(frozen=True, eq=False)
class SpelledPieces:
    """Words as runs of letters and digits, or of other characters, in the text that pieces spell.

    A special token is a separate word.
    """

    vocabulary: Sequence[str]  # the pieces
    mark: str  # the mark of a space: "Ġ", where every character of a piece is a byte of UTF-8, or "▁"

    def hashes(self, tokens: Ragged) -> tuple[np.ndarray, np.ndarray]:
        """Return the hashes of all words, row by row, and the rows' offsets."""
        rows = [np.array([_hash(word) for word in self.words(row)], dtype=np.uint64) for row in tokens]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return np.concatenate([np.zeros(0, dtype=np.uint64), *rows]), offsets

    def words(self, row: np.ndarray) -> list[str]:
        """Return the words of one row of pieces, which may share a character's bytes."""
        text = b"".join([self._spelling[piece] for piece in row.tolist()])
        return _word_pattern().findall(text.decode("utf-8", errors="replace"))

    def texts(self, tokens: Ragged, chosen: np.ndarray, vocabulary: Sequence[str]) -> Iterator[str]:
        """Return the spelling of the words selected by a mask (words,)."""
        words = compress(chain.from_iterable(map(self.words, tokens)), chosen)
        return (word.removeprefix(_WHOLE) for word in words)

    @cached_property
    def _spelling(self) -> list[bytes]:
        """Each piece in UTF-8, with its mark replaced by a space."""
        return [self._spelled(piece) for piece in self.vocabulary]

    def _spelled(self, piece: str) -> bytes:
        if self.mark == _SPACE and (byte := _ONE_BYTE.fullmatch(piece)):
            return bytes.fromhex(byte[1])
        if _SPECIAL.fullmatch(piece):
            return f" {_WHOLE}{piece} ".encode()
        if self.mark == _BYTES and all(character in _byte_alphabet() for character in piece):
            read = bytes(_byte_alphabet()[character] for character in piece)
        else:
            read = piece.replace(self.mark, " ").encode()
        return read.replace(_WHOLE.encode(), b" ")


@dataclass(frozen=True, eq=False)
class WholeWords:
    """Map piece ids to word ids."""

    pieces: JoinedPieces | SpelledPieces
    hashes: np.ndarray  # (W,) uint64, sorted; the word hashes[k] has the id k + 1

    @classmethod
    def fit(cls, tokens: Ragged, vocabulary: list[str]) -> Self | None:
        """Learn the words of the training part; return None if tokens are already words."""
        mark = _mark(vocabulary)
        if mark is None:
            return None
        pieces: JoinedPieces | SpelledPieces = SpelledPieces(vocabulary, mark)
        if mark == _INSIDE:
            pieces = JoinedPieces(np.array([piece.startswith(_INSIDE) for piece in vocabulary]))
        hashes, counts = np.unique(pieces.hashes(tokens)[0], return_counts=True)
        return cls(pieces, hashes[counts >= _FEWEST])

    @property
    def size(self) -> int:
        """Number of words, including the unknown word."""
        return len(self.hashes) + 1

    def __call__(self, tokens: Ragged) -> Ragged:
        """Map rows of piece ids to rows of word ids."""
        words, offsets = self.pieces.hashes(tokens)
        places = np.searchsorted(self.hashes, words).clip(max=max(len(self.hashes) - 1, 0))
        known = self.hashes[places] == words if len(self.hashes) else np.zeros(len(words), dtype=bool)
        return Ragged(np.where(known, places + 1, UNKNOWN), offsets)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays to save with the model."""
        if isinstance(self.pieces, JoinedPieces):
            return {"continues": self.pieces.continues, "hashes": self.hashes}
        pieces = json.dumps([self.pieces.mark, *self.pieces.vocabulary], ensure_ascii=False)
        return {"pieces": text_to_array(pieces), "hashes": self.hashes}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Create it from the output of `to_arrays`."""
        if "continues" in arrays:
            return cls(JoinedPieces(arrays["continues"]), arrays["hashes"])
        try:
            mark, *vocabulary = parse_json(arrays["pieces"].tobytes().decode("utf-8"))
        except (DataError, ValueError, TypeError) as error:
            raise ModelFolderError(f"the word pieces cannot be read: {error}") from None
        return cls(SpelledPieces(vocabulary, mark), arrays["hashes"])

    def check(self, vocabulary: Sequence[str]) -> None:
        """Raise `ModelFolderError` if the pieces are not those of the tokenizer."""
        if isinstance(self.pieces, JoinedPieces):
            check_array(self.pieces.continues, "continues", (len(vocabulary),), "b")
        elif self.pieces.mark not in (_BYTES, _SPACE) or self.pieces.vocabulary != list(vocabulary):
            raise ModelFolderError("the word pieces are not those of the tokenizer")
        check_array(self.hashes, "hashes", self.hashes.shape[:1], "u")
        if self.hashes.dtype != np.uint64 or (self.hashes[1:] <= self.hashes[:-1]).any():
            raise ModelFolderError("the words' hashes do not ascend")


def _mark(vocabulary: Sequence[str]) -> str | None:
    """Return the mark that most pieces begin with; a few do by chance ("####" is a RoBERTa piece)."""
    counts = {
        mark: sum(piece.startswith(mark) and piece != mark for piece in vocabulary)
        for mark in (_INSIDE, _BYTES, _SPACE)
    }
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else None


@lru_cache(maxsize=2**17)
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


@cache
def _byte_alphabet() -> dict[str, int]:
    """Return byte-level BPE's alphabet: visible Latin-1 characters keep their bytes, others follow U+0100."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return a pattern: a special token, letters and digits with combining accents, or other characters."""
    # `re` has no class for accents and vowel signs; a set within two bytes is fast to look up.
    accents = "".join(c for c in map(chr, range(2**16)) if unicodedata.category(c).startswith("M"))
    return re.compile(rf"{_WHOLE}\S+|[^\W_]+(?:[{accents}]+[^\W_]*)*|(?:[^\w\s]|_)+")
