"""Seeded damage to text files: bytes, and pieces of text that mean something to a reader."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from byte_faults import damaged as damaged_bytes
from outcomes import assert_refused_or_works

SECONDS = 20  # after which a trial counts as hung

PIECES = [
    *(
        b"",
        b" ",
        b"\t",
        b"\t\t\t",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\0",
        b"\xff",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ),
    *(b'"', b'""', b"'", b",", b";", b":", b"{", b"}", b"[", b"]", b"<", b">", b"\\", b"\\ud83d", b"\\u0000"),
    *(b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"2", b"9" * 25, b"9" * 5_000),
    *(b"[" * 2_000, b'{"a":' * 2_000, b'"text"', b'"labels"', b'"label": 2', b'"question"', b"qid", b"text"),
    *(
        b"<REUTERS",
        b"</REUTERS>",
        b"<D></D>",
        b".I",
        b".I x",
        b".W",
        b"<QApairs",
        b"</QApairs>",
        b"<question>",
    ),
    *("é".encode("latin-1"), "\u2028".encode(), "\ufeff".encode(), "🐈".encode(), b"\x1f\x8b", b"\x1b[31m"),
]
TOKEN = re.compile(rb"\w+|\W")


class Hung(BaseException):
    """A trial took too long. No `Exception`, so that nothing catches it and goes on."""


def damaged(content: bytes, generator: random.Random) -> tuple[bytes, str]:
    """Return damaged text and how it was damaged: single bytes, or tokens replaced, removed, moved."""
    if generator.random() < 0.3:
        return damaged_bytes(content, generator)
    tokens = TOKEN.findall(content)
    told = []
    for _ in range(generator.choice([1, 1, 1, 2, 5])):
        place = generator.randrange(len(tokens))
        kind = generator.choice(["replace", "replace", "insert", "remove", "swap", "repeat"])
        piece = generator.choice(PIECES)
        if kind == "replace":
            tokens[place] = piece
        elif kind == "insert":
            tokens.insert(place, piece)
        elif kind == "remove" and len(tokens) > 1:
            del tokens[place]
        elif kind == "repeat":
            tokens.insert(place, tokens[place])
        else:
            other = generator.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        told.append(f"{kind} token {place} ({piece[:20]!r})")
    return b"".join(tokens), ", ".join(told)


def check(run: Callable[[], Any], what: str) -> None:
    """Fail unless something is refused in words or works, in time."""
    with time_limit(what):
        assert_refused_or_works(run, what)


@contextmanager
def time_limit(what: str) -> Iterator[None]:
    def give_up(number: int, frame: object) -> None:
        raise Hung(f"{what}: no end after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
