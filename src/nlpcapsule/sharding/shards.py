"""Split rows into shard files with a manifest, and join the workers' results.

The folder OUTPUT.shards holds `manifest.json` and, for each shard, its rows and, once these are ranked, its
results. Results appear whole or not at all, so a shard is done if they exist: a run that was killed goes on
where it stopped, and no row is lost or doubled.

Chunks of rows are dealt to the shards in turn. One process ranks as many rows at a time, so the batches are
the same, and with them the results to the last digit.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from nlpcapsule.atomic_files import atomic_path, atomic_text, write_text
from nlpcapsule.data.documents import Document, Question
from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.strict_json import read_json

_MANIFEST = "manifest.json"
_OURS = re.compile(r"\.?rows-\d{5,}\.jsonl.*|\.manifest\.json\..*\.part")


@dataclass(frozen=True)
class Shards:
    """The shards of one prediction."""

    folder: Path
    sizes: tuple[int, ...]  # rows of each shard
    chunk: int  # rows that are dealt to a shard at a time

    @property
    def count(self) -> int:
        """The number of shards."""
        return len(self.sizes)

    def rows(self, number: int) -> Path:
        """Return the file of a shard's rows."""
        return self.folder / f"rows-{number:05}.jsonl"

    def results(self, number: int) -> Path:
        """Return the file of a shard's results, which exists once the shard is done."""
        return self.folder / f"results-{number:05}.jsonl"

    @property
    def unfinished(self) -> list[int]:
        """The numbers of the shards without results."""
        results = map(self.results, range(self.count))
        return [number for number, path in enumerate(results) if path.is_symlink() or not path.is_file()]

    def join(self, output: Path) -> None:
        """Write all results in the order of the rows, and remove the shards.

        Raises:
            NlpCapsuleError: If a shard has not as many results as rows.
        """
        for number, size in enumerate(self.sizes):
            with self.results(number).open("rb") as lines:
                if sum(line.endswith(b"}\n") or size + 1 for line in lines) != size:
                    raise NlpCapsuleError(
                        f"{self.results(number)} is damaged; remove it and give the same command again"
                    )
        with ExitStack() as stack:
            joined = stack.enter_context(stack.enter_context(atomic_path(output)).open("wb"))
            files = [stack.enter_context(self.results(number).open("rb")) for number in range(self.count)]
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
        _clear(folder)
        return None
    try:
        manifest = read_json(folder / _MANIFEST)
    except DataError:
        manifest = None
    match manifest:
        case {"identity": dict(earlier), "rows": list(rows), "chunk": int(chunk)} if all(
            isinstance(number, int) and number > 0 for number in (*rows, chunk)
        ):
            pass
        case _:
            raise NlpCapsuleError(f"{folder / _MANIFEST} is damaged; remove {folder} and start again")
    if earlier != identity:
        changed = ", ".join(sorted(key for key in identity if earlier.get(key) != identity[key]))
        raise NlpCapsuleError(
            f"{folder} holds an unfinished prediction with other settings ({changed}); give the same command "
            "again to finish it, or remove the folder"
        )
    return Shards(folder, tuple(rows), chunk)


def _clear(folder: Path) -> None:
    """Remove what a run that was killed while it split the rows has left; reject a folder of other files."""
    if not folder.exists() and not folder.is_symlink():
        return
    is_ours = not folder.is_symlink() and folder.is_dir()
    if not is_ours or not all(_OURS.fullmatch(path.name) for path in folder.iterdir()):
        raise NlpCapsuleError(f"{folder} holds other files and no shards; choose another --output")
    shutil.rmtree(folder)


def split_rows(
    rows: Iterable[Document | Question], wanted: int, chunk: int, output: Path, identity: dict[str, Any]
) -> Shards:
    """Write rows into at most `wanted` files, and then the manifest."""
    folder = shard_folder(output)
    shards, sizes, dealt = Shards(folder, (), chunk), Counter[int](), 0
    remaining = iter(rows)
    with ExitStack() as stack:
        files = []
        while part := list(islice(remaining, chunk)):
            if dealt < wanted:
                files.append(stack.enter_context(atomic_text(shards.rows(dealt))))
            files[dealt % wanted].writelines(map(_line, part))
            sizes[dealt % wanted] += len(part)
            dealt += 1
    shards = replace(shards, sizes=tuple(sizes[number] for number in range(len(files))))
    record = {"identity": identity, "rows": shards.sizes, "chunk": chunk}
    write_text(folder / _MANIFEST, json.dumps(record, indent=2) + "\n")
    return shards


def _line(row: Document | Question) -> str:
    """Return a row of JSON Lines that reads as the same document or question."""
    if isinstance(row, Document):
        content: dict[str, Any] = {"text": row.text}
    else:
        content = {"question": row.text, "candidates": [{"text": answer.text} for answer in row.candidates]}
    return json.dumps(content if row.id is None else {**content, "id": row.id}) + "\n"
