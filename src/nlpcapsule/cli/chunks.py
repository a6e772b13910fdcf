"""Group rows into chunks: ranking many at a time is faster, and a stream may pause or never end."""

import queue
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

Row = TypeVar("Row")
_END = object()  # after the last row


def full_chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Yield `size` rows at a time, and the rest at the end."""
    remaining = iter(rows)
    while chunk := list(islice(remaining, size)):
        yield chunk


def arriving_chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Yield the rows that have arrived, at most `size` at a time; wait only if there are none.

    Another thread reads ahead by at most `size` rows.
    """
    arrived: queue.Queue[Any] = queue.Queue(maxsize=size)
    errors: list[BaseException] = []  # that ended the reading, raised again where the rows are used

    def read() -> None:
        try:
            for row in rows:
                arrived.put(row)
        except BaseException as error:
            errors.append(error)
        arrived.put(_END)

    threading.Thread(target=read, daemon=True, name="read-rows").start()
    has_ended = False
    while not has_ended:
        chunk = [arrived.get()]
        while len(chunk) < size and not arrived.empty():
            chunk.append(arrived.get())
        has_ended = chunk[-1] is _END
        if kept := chunk[:-1] if has_ended else chunk:
            yield kept
    if errors:
        raise errors[0]
