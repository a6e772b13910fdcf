"""Group rows into chunks: ranking many at a time is faster, and a stream may pause or never end."""

import queue
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

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
    arrived: queue.Queue[Row | _End] = queue.Queue(maxsize=size)

    def read() -> None:
        error: BaseException | None = None
        try:
            for row in rows:
                arrived.put(row)
        except BaseException as problem:  # raised again where the rows are used
            error = problem
        arrived.put(_End(error))

    threading.Thread(target=read, daemon=True, name="read-rows").start()
    while True:
        chunk: list[Row] = []
        item = arrived.get()
        while not isinstance(item, _End):
            chunk.append(item)
            if len(chunk) == size:
                break
            try:
                item = arrived.get_nowait()
            except queue.Empty:
                break
        if chunk:
            yield chunk
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            return
