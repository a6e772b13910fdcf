"""Label names and their ids, with how many training documents have each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.errors import DataError


class LabelVocabulary:
    """The labels training saw, most frequent first (ties by name), so the order depends on the data alone.

    Behind them, where a thesaurus is given, the labels it names and training never saw, in its order.

    Attributes:
        names: Label names by id.
        counts: (n,) int64, training documents per label.
        titles: What a thesaurus calls them, or None where there is none.
    """

    def __init__(
        self, names: Sequence[str], counts: Sequence[int], titles: Sequence[str] | None = None
    ) -> None:
        self.names = list(names)
        self.counts = np.asarray(counts, dtype=np.int64)
        self.titles = None if titles is None else list(titles)
        self._ids = {name: index for index, name in enumerate(self.names)}

    @classmethod
    def from_labels(cls, labels: Iterable[Sequence[str]]) -> LabelVocabulary:
        """Collects the vocabulary from the label lists of the training documents."""
        counter: Counter[str] = Counter()
        for row in labels:
            counter.update(set(row))
        if not counter:
            raise DataError("no document has a label, so there is nothing to learn")
        ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
        return cls([name for name, _ in ordered], [count for _, count in ordered])

    def with_names(self, thesaurus: Thesaurus) -> LabelVocabulary:
        """The same labels with titles, and those without an example that are named alone."""
        names = [*self.names, *(label for label in thesaurus if label not in self._ids)]
        counts = [*self.counts.tolist(), *[0] * (len(names) - len(self))]
        return LabelVocabulary(names, counts, [thesaurus[label].name for label in names])

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def encode(self, labels: Sequence[Sequence[str]]) -> list[list[int]]:
        """Ids of label lists; a name training never saw gets an id of its own from `len(self)` upwards."""
        unseen: dict[str, int] = {}
        return [
            [
                self._ids[name] if name in self._ids else unseen.setdefault(name, len(self) + len(unseen))
                for name in row
            ]
            for row in labels
        ]

    def to_json(self) -> str:
        """The text of labels.json."""
        rows: list[dict[str, str | int]] = [
            {"label": name, "documents": int(count)}
            for name, count in zip(self.names, self.counts, strict=True)
        ]
        for row, title in zip(rows, self.titles or (), strict=False):
            row["name"] = title
        return json.dumps(rows, ensure_ascii=False, indent=0) + "\n"

    @classmethod
    def from_json(cls, text: str) -> LabelVocabulary:
        """Reads labels.json."""
        rows = json.loads(text)
        titles = [row["name"] for row in rows if "name" in row]
        return cls([row["label"] for row in rows], [row["documents"] for row in rows], titles or None)
