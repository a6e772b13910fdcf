"""Store people's decisions about labels in an append-only SQLite file."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.strict_json import parse_json

_APPLICATION_ID = 0x4E4C5043  # "NLPC": marks the file as a feedback store
_SCHEMA_VERSION = 1
_BUSY_SECONDS = 30  # wait for other processes that are writing
_CHUNK = 500  # rows read at a time
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")  # half of a surrogate pair, which UTF-8 cannot encode
_SCHEMA = """
CREATE TABLE IF NOT EXISTS feedback (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    document TEXT NOT NULL,
    person TEXT NOT NULL,
    text TEXT NOT NULL,
    accepted TEXT NOT NULL,
    rejected TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS feedback_document ON feedback (document);
CREATE INDEX IF NOT EXISTS feedback_person ON feedback (person);
"""


class FeedbackStore:
    """An append-only store of accepted and rejected labels.

    Rows are added and exported, never changed; only `erase` removes rows. A row is on the disk when `add`
    returns, so that a killed process loses nothing that it has acknowledged. Several threads may share a
    store, and several processes may open the same file.

    Args:
        path: The SQLite file; created if there is none.
        must_exist: Reject a missing file.

    Raises:
        DataError: If the file is not a feedback store.

    Example:
        >>> import tempfile
        >>> with FeedbackStore(Path(tempfile.mkdtemp(), "feedback.sqlite")) as store:
        ...     store.add("letter-1", "ada", "The lamp is dark.", ["street-light-out"], [])
        ...     [row["labels"] for row in store.export()]
        1
        [['street-light-out']]
    """

    def __init__(self, path: str | Path, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not self.path.is_file():
            raise DataError("there is no such feedback store", self.path, hint="check the path")
        self._lock = threading.RLock()
        with self._errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        """Set durability and create the table in an empty file."""
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")  # a commit returns after the log is on the disk
        run("PRAGMA secure_delete = ON")  # erased rows are overwritten
        with self._transaction():
            (mark,) = run("PRAGMA application_id").fetchone()
            (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
            if mark != _APPLICATION_ID and tables:
                raise DataError("is a database, but no feedback store", self.path, hint="name another file")
            (version,) = run("PRAGMA user_version").fetchone()
            if version > _SCHEMA_VERSION:
                raise DataError(
                    f"is a feedback store of format {version}; this version reads up to {_SCHEMA_VERSION}",
                    self.path,
                    hint="upgrade nlpcapsule",
                )
            for statement in _SCHEMA.split(";"):
                run(statement)
            run(f"PRAGMA application_id = {_APPLICATION_ID}")
            run(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def add(
        self, document_id: str, person: str, text: str, accepted: Sequence[str], rejected: Sequence[str]
    ) -> int:
        """Add one person's decision about one document.

        Args:
            document_id: The document's identifier.
            person: Who decided; may be empty.
            text: The document's text, from which `learn` learns.
            accepted: Labels that the document has, proposed or added.
            rejected: Labels that the document does not have.

        Returns:
            The row's number, once the row is on the disk.

        Raises:
            DataError: If a label is both accepted and rejected, or the document has no identifier.
            NlpCapsuleError: If the row cannot be written.
        """
        if not document_id:
            raise DataError("the document has no identifier, by which its feedback could be erased")
        both = sorted(set(accepted) & set(rejected))
        if both:
            raise DataError(f"the label {both[0]!r:.80} is both accepted and rejected")
        row = (
            datetime.now(UTC).isoformat(timespec="seconds"),
            _storable(document_id),
            _storable(person),
            _storable(text),
            _labels_to_json(accepted),
            _labels_to_json(rejected),
        )
        with self._errors(), self._lock:
            added = self._connection.execute(
                "INSERT INTO feedback (time, document, person, text, accepted, rejected)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
        assert added.lastrowid is not None
        return added.lastrowid

    def export(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the rows in the order they were added, as the JSON Lines that `learn` reads.

        Args:
            after: Yield only rows with a greater number.
        """
        while True:
            with self._errors(), self._lock:
                rows = self._connection.execute(
                    "SELECT id, time, document, person, text, accepted, rejected FROM feedback"
                    " WHERE id > ? ORDER BY id LIMIT ?",
                    (after, _CHUNK),
                ).fetchall()
            for number, *texts in rows:
                if not all(isinstance(each, str) for each in texts):
                    raise self._damaged(number)
                time, document, person, text, accepted, rejected = texts
                yield {
                    "id": document,
                    "text": text,
                    "labels": self._labels(accepted, number),
                    "rejected": self._labels(rejected, number),
                    "person": person,
                    "time": time,
                    "row": number,
                }
            if not rows:
                return
            after = rows[-1][0]

    def _labels(self, text: str, number: int) -> list[str]:
        try:
            labels = parse_json(text)
        except DataError:
            labels = None
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise self._damaged(number)
        return labels

    def _damaged(self, number: int) -> DataError:
        return DataError(f"row {number} is damaged", self.path, hint="restore the file from a copy")

    def erase(self, document: str | None = None, person: str | None = None) -> int:
        """Remove the rows of a document, of a person, or of a person about a document.

        The rows' bytes are overwritten in the database and in its log, not only unlinked.

        Returns:
            The number of removed rows.

        Raises:
            DataError: If neither is given.
            NlpCapsuleError: If another process keeps reading the log, so that it cannot be overwritten.
        """
        wanted = {"document": document, "person": person}
        wanted = {column: _storable(value) for column, value in wanted.items() if value is not None}
        if not wanted:
            raise DataError("name the document or the person whose feedback is to be erased", self.path)
        where = " AND ".join(f"{column} = ?" for column in wanted)
        with self._errors(), self._lock:
            removed = self._connection.execute(
                f"DELETE FROM feedback WHERE {where}", tuple(wanted.values())
            ).rowcount
            self._connection.execute("VACUUM")  # also rewrites pages that held parts of the rows
            (is_busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise NlpCapsuleError(
                f"{self.path}: {removed} rows are removed, but another process is reading the log, which "
                "still holds their bytes; run the same command again"
            )
        return removed

    def counts(self) -> dict[str, int]:
        """Return the numbers of rows, documents, people, and accepted and rejected labels."""
        with self._errors(), self._lock:
            row = self._connection.execute(
                "SELECT count(*), count(DISTINCT document), count(DISTINCT person),"
                " coalesce(sum(json_array_length(accepted)), 0),"
                " coalesce(sum(json_array_length(rejected)), 0) FROM feedback"
            ).fetchone()
        return dict(zip(("rows", "documents", "people", "accepted", "rejected"), row, strict=True))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> FeedbackStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Reword errors of SQLite and the file system."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise NlpCapsuleError(f"{self.path}: the feedback store cannot be used: {error}") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter for a message of SQLite
            raise DataError(f"is not a feedback store ({error})", self.path, hint="check the path") from None
        except OSError as error:
            raise NlpCapsuleError(f"{self.path}: cannot be made: {error.strerror or error}") from None


def _storable(text: str) -> str:
    return _HALF_A_PAIR.sub("\N{REPLACEMENT CHARACTER}", text)


def _labels_to_json(labels: Sequence[str]) -> str:
    return json.dumps(list(dict.fromkeys(map(_storable, labels))), ensure_ascii=False)
