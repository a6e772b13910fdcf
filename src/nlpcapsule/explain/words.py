"""Find the words of a text in its tokens, and leave them out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import TokensInText

# Scripts that put no space between words: each token is a word, although tokens touch.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@dataclass(frozen=True)
class Word:
    """A word and all its mentions in a text.

    Attributes:
        text: The word, as it is first written.
        positions: Indices of its tokens.
        spans: First character and the one after the last of each mention.
    """

    text: str
    positions: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


def find_words(text: str, tokens: TokensInText) -> list[Word]:
    """Return the different words of a text, in the order of their first mention.

    Pieces of a word are joined. Upper and lower case are one word; punctuation is none.
    """
    mentions: dict[str, list[list[int]]] = {}
    for mention in _mentions(text, tokens.offsets):
        start, end = tokens.offsets[mention[0], 0], tokens.offsets[mention[-1], 1]
        key = unicodedata.normalize("NFKC", text[start:end]).casefold()
        if any(character.isalnum() for character in key):
            mentions.setdefault(key, []).append(mention)
    return [_word(text, found, tokens.offsets) for found in mentions.values()]


def without(tokens: np.ndarray, words: Iterable[Word], fill: int) -> np.ndarray:
    """Return tokens (T,) without all mentions of words; `fill` alone where nothing is left."""
    gone = [position for word in words for position in word.positions]
    left = np.delete(tokens, gone)
    return left if len(left) else np.array([fill], dtype=tokens.dtype)


def each_left_out(tokens: np.ndarray, words: Iterable[Word], fill: int) -> Ragged:
    """Return the tokens, followed by a row without each word."""
    return Ragged.from_rows([tokens, *(without(tokens, [word], fill) for word in words)])


def _mentions(text: str, offsets: np.ndarray) -> list[list[int]]:
    """Return the tokens of each mention of a word."""
    found: list[list[int]] = []
    for index, (start, end) in enumerate(offsets.tolist()):
        if end <= start:  # a special token
            continue
        before = found[-1][-1] if found else None
        if before is not None and offsets[before, 1] == start and _joins(text[start - 1], text[start]):
            found[-1].append(index)
        else:
            found.append([index])
    return found


def _joins(left: str, right: str) -> bool:
    """Return whether two touching characters belong to one word."""
    return all(
        character.isalnum() and not unicodedata.name(character, "").startswith(_UNSPACED)
        for character in (left, right)
    )


def _word(text: str, mentions: list[list[int]], offsets: np.ndarray) -> Word:
    spans = tuple((int(offsets[mention[0], 0]), int(offsets[mention[-1], 1])) for mention in mentions)
    start, end = spans[0]
    return Word(text[start:end], tuple(index for mention in mentions for index in mention), spans)
