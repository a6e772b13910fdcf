"""The labels of a model: their ids, names and numbers of training documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.errors import DataError


class LabelVocabulary:
    """The labels of the training part, most frequent first (ties by id).

    If a thesaurus is given, its labels without training documents follow, in its order. Networks number the
    labels in this order.
    """

    def __init__(self, ids: Sequence[str], counts: Sequence[int], names: Sequence[str] | None = None) -> None:
        self.ids = list(ids)  # as in the data
        self.counts = np.asarray(counts, dtype=np.int64)  # (n,) training documents per label
        self.names = None if names is None else list(names)  # in the thesaurus; None without one
        self._numbers = {id: number for number, id in enumerate(self.ids)}

    @classmethod
    def from_counts(cls, counter: Mapping[str, int]) -> LabelVocabulary:
        """Create the vocabulary from the number of training documents of each label."""
        if not counter:
            raise DataError("no document has a label, so there is nothing to learn")
        ids = sorted(counter, key=lambda id: (-counter[id], id))
        return cls(ids, [counter[id] for id in ids])

    def with_names(self, thesaurus: Thesaurus) -> LabelVocabulary:
        """Return the labels with names, followed by those that are only named."""
        ids = [*self.ids, *(id for id in thesaurus if id not in self)]
        counts = [*self.counts.tolist(), *[0] * (len(ids) - len(self))]
        return LabelVocabulary(ids, counts, [thesaurus[id].name for id in ids])

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: str) -> bool:
        return id in self._numbers

    def numbers(self, row: Sequence[str], unseen: dict[str, int]) -> list[int]:
        """Return the numbers of labels; `unseen` gets those of unknown ones, from `len(self)` upwards."""
        return [
            self._numbers[id] if id in self else unseen.setdefault(id, len(self) + len(unseen)) for id in row
        ]

    def to_json(self) -> str:
        """Return the text of labels.json."""
        rows: list[dict[str, str | int]] = [
            {"label": id, "documents": int(count)} for id, count in zip(self.ids, self.counts, strict=True)
        ]
        for row, name in zip(rows, self.names or (), strict=False):
            row["name"] = name
        return json.dumps(rows, ensure_ascii=False, indent=0) + "\n"

    @classmethod
    def from_json(cls, text: str) -> LabelVocabulary:
        """Parse labels.json."""
        rows = json.loads(text)
        names = [row["name"] for row in rows if "name" in row]
        return cls([row["label"] for row in rows], [row["documents"] for row in rows], names or None)
