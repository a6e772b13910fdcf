"""Group rows into chunks: ranking many at a time is faster, and a stream may pause or never end."""

import queue
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

Row = TypeVar("Row")


class _End(NamedTuple):
    """The end of the rows, with the error that ended the reading, if any."""

    error: BaseException | None


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

    def read() -> None:
        try:
            for row in rows:
                arrived.put(row)
            arrived.put(_End(None))
        except BaseException as error:  # raised again where the rows are used
            arrived.put(_End(error))

    threading.Thread(target=read, daemon=True, name="read-rows").start()
    while True:
        chunk = [arrived.get()]
        while len(chunk) < size and not arrived.empty():
            chunk.append(arrived.get())
        end = chunk.pop() if isinstance(chunk[-1], _End) else None
        if chunk:
            yield chunk
        if end is not None:
            if end.error is not None:
                raise end.error
            return
