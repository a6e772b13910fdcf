"""Split rows into shard files with a manifest, and join the workers' results.

The folder OUTPUT.shards holds `manifest.json` and, for each shard, its rows and, once these are ranked, its
results. Results appear whole or not at all, so a shard is done if they exist: a run that was killed goes on
where it stopped, and no row is lost or doubled.

Chunks of rows are dealt to the shards in turn. One process ranks as many rows at a time, so the batches are
the same, and with them the results to the last digit.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import IO, Any

from nlpcapsule.atomic_files import atomic_text, write_text
from nlpcapsule.data.documents import Document, Question
from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.strict_json import read_json

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Shards:
    """The shards of one prediction."""

    folder: Path
    count: int
    chunk: int  # rows that are dealt to a shard at a time

    def rows(self, number: int) -> Path:
        """Return the file of a shard's rows."""
        return self.folder / f"rows-{number:05}.jsonl"

    def results(self, number: int) -> Path:
        """Return the file of a shard's results, which exists once the shard is done."""
        return self.folder / f"results-{number:05}.jsonl"

    @property
    def unfinished(self) -> list[int]:
        """The numbers of the shards without results."""
        return [number for number in range(self.count) if not self.results(number).exists()]

    def join(self, output: Path) -> None:
        """Write all results in the order of the rows, and remove the shards."""
        with ExitStack() as stack:
            joined = stack.enter_context(atomic_text(output))
            files = [stack.enter_context(_reading(self.results(number))) for number in range(self.count)]
            # The first shard without a chunk ends the turn: those after it have none either.
            for file in cycle(files):
                chunk = list(islice(file, self.chunk))
                if not chunk:
                    break
                joined.writelines(chunk)
        shutil.rmtree(self.folder, ignore_errors=True)


def shard_folder(output: Path) -> Path:
    """Return the folder of an output's shards."""
    return output.with_name(f"{output.name}.shards")


def find_shards(output: Path, identity: dict[str, Any]) -> Shards | None:
    """Return the shards that an earlier run of the same prediction left; None if there are none.

    Args:
        output: The file that results are joined into.
        identity: What the results depend on: input, model and options.

    Raises:
        NlpCapsuleError: If they belong to another prediction.
    """
    folder = shard_folder(output)
    if not (folder / _MANIFEST).exists():
        shutil.rmtree(folder, ignore_errors=True)  # it was killed while the rows were split
        return None
    try:
        manifest = read_json(folder / _MANIFEST)
        earlier, count, chunk = manifest["identity"], int(manifest["shards"]), int(manifest["chunk"])
    except (DataError, ValueError, KeyError, TypeError):
        raise NlpCapsuleError(f"{folder / _MANIFEST} is damaged; remove {folder} and start again") from None
    if earlier != identity:
        changed = ", ".join(sorted(key for key in identity if earlier.get(key) != identity[key]))
        raise NlpCapsuleError(
            f"{folder} holds an unfinished prediction with other settings ({changed}); give the same command "
            "again to finish it, or remove the folder"
        )
    return Shards(folder, count, chunk)


def split_rows(
    rows: Iterable[Document | Question], wanted: int, chunk: int, output: Path, identity: dict[str, Any]
) -> Shards:
    """Write rows into at most `wanted` files, and then the manifest."""
    folder = shard_folder(output)
    shards, dealt = Shards(folder, wanted, chunk), 0
    remaining = iter(rows)
    with ExitStack() as stack:
        files = []
        while part := list(islice(remaining, chunk)):
            if dealt < wanted:
                files.append(stack.enter_context(atomic_text(shards.rows(dealt))))
            files[dealt % wanted].writelines(map(_line, part))
            dealt += 1
    shards = replace(shards, count=len(files))
    record = {"identity": identity, "shards": shards.count, "chunk": chunk}
    write_text(folder / _MANIFEST, json.dumps(record, indent=2) + "\n")
    return shards


def _line(row: Document | Question) -> str:
    """Return a row of JSON Lines that reads as the same document or question."""
    if isinstance(row, Document):
        content: dict[str, Any] = {"text": row.text}
    else:
        content = {"question": row.text, "candidates": [{"text": answer.text} for answer in row.candidates]}
    return json.dumps(content if row.id is None else {**content, "id": row.id}) + "\n"


def _reading(path: Path) -> IO[str]:
    return path.open(encoding="utf-8", newline="\n")
