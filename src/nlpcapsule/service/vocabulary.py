"""Search the labels of a model, and their hierarchy where a file gives it."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.errors import DataError
from nlpcapsule.service.schemas import VocabularyLabel, VocabularyResponse
from nlpcapsule.strict_json import parse_json, read_text

_BROADER_KEYS = ("broader", "parents")
_NAME_KEYS = ("name", "title", "label")


@dataclass(frozen=True)
class Hierarchy:
    """Broader labels, and names of labels that the model does not know.

    Attributes:
        broader: Label → labels one level above.
        narrower: Label → labels one level below.
        names: Names that the file gives.
    """

    broader: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    narrower: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Hierarchy:
        """Read {"label": {"name": "…", "broader": ["…"]}, …}; EuroVoc's key "parents" is read as well.

        Raises:
            DataError: If the file is not such an object.
        """
        rows = parse_json(_text(path), str(path))
        if not isinstance(rows, dict):
            raise DataError('expected an object: {"label": {"name": "…", "broader": ["…"]}}', path)
        broader, names = {}, {}
        narrower: dict[str, list[str]] = {}
        for label, row in rows.items():
            broader[label] = above = _broader(label, row, path)
            for parent in above:
                narrower.setdefault(parent, []).append(label)
            name = next((row[key] for key in _NAME_KEYS if isinstance(row.get(key), str)), None)
            if name is not None:
                names[label] = name
        return cls(broader, {label: tuple(below) for label, below in narrower.items()}, names)


def _text(path: Path) -> str:
    if path.suffix != ".gz":
        return read_text(path)
    try:
        return gzip.decompress(path.read_bytes()).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read ({error})", path) from None


def _broader(label: str, row: Any, path: Path) -> tuple[str, ...]:
    found: Any = (
        next((row[key] for key in _BROADER_KEYS if key in row), []) if isinstance(row, dict) else None
    )
    if not isinstance(found, list) or not all(isinstance(parent, str) for parent in found):
        raise DataError(
            f"{label!r:.80} has no list of broader labels", path, hint='write {"name": "…", "broader": ["…"]}'
        )
    return tuple(found)


class VocabularySearch:
    """A search by the ids and names of labels.

    Args:
        labels: The model's labels.
        hierarchy: Their hierarchy, and further labels that the model does not know.
    """

    def __init__(self, labels: LabelVocabulary, hierarchy: Hierarchy) -> None:
        self.hierarchy = hierarchy
        titles: Sequence[str | None] = labels.names or [None] * len(labels)
        self._labels = {
            label: self._entry(label, title, int(count), True)
            for label, title, count in zip(labels.ids, titles, labels.counts, strict=True)
        }
        for label in hierarchy.broader:
            if label not in self._labels:
                self._labels[label] = self._entry(label, None, 0, False)
        self._keys = {
            label: f"{label}\n{entry.name or ''}".casefold() for label, entry in self._labels.items()
        }

    def __contains__(self, label: str) -> bool:
        return label in self._labels

    def search(self, query: str, limit: int) -> VocabularyResponse:
        """Return labels whose id or name contains all words of a query, the most similar first."""
        words = query.casefold().split()
        found = [label for label, key in self._keys.items() if all(word in key for word in words)]
        whole = query.casefold().strip()

        def rank(label: str) -> tuple[bool, bool, int]:
            forms = self._keys[label].split("\n")
            begins = any(form.startswith(whole) for form in forms)
            return whole not in forms, not begins, -self._labels[label].documents

        return self._response(sorted(found, key=rank), limit)

    def labels(self, wanted: list[str]) -> VocabularyResponse:
        """Return the labels with these ids; unknown ids are left out."""
        return self._response([label for label in wanted if label in self._labels], len(wanted))

    def _response(self, found: list[str], limit: int) -> VocabularyResponse:
        shown = [self._labels[label] for label in found[:limit]]
        around = {other for entry in shown for other in (*entry.broader, *entry.narrower)}
        names = {label: self._name(label) for label in sorted(around)}
        return VocabularyResponse(total=len(found), labels=shown, names=names)

    def _name(self, label: str) -> str:
        entry = self._labels.get(label)
        return (entry.name if entry else self.hierarchy.names.get(label)) or label

    def _entry(self, label: str, title: str | None, documents: int, known: bool) -> VocabularyLabel:
        return VocabularyLabel(
            label=label,
            name=title or self.hierarchy.names.get(label),
            documents=documents,
            known=known,
            broader=list(self.hierarchy.broader.get(label, ())),
            narrower=list(self.hierarchy.narrower.get(label, ())),
        )
