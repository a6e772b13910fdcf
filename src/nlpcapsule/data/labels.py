"""Label names, their ids, and their numbers of training documents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.errors import DataError


class LabelVocabulary:
    """The labels of the training part, most frequent first (ties by name).

    If a thesaurus is given, its labels without training documents follow, in its order.
    """

    def __init__(
        self, names: Sequence[str], counts: Sequence[int], titles: Sequence[str] | None = None
    ) -> None:
        self.names = list(names)  # by id
        self.counts = np.asarray(counts, dtype=np.int64)  # (n,) training documents per label
        self.titles = None if titles is None else list(titles)  # names in the thesaurus
        self._ids = {name: index for index, name in enumerate(self.names)}

    @classmethod
    def from_labels(cls, labels: Iterable[Sequence[str]]) -> LabelVocabulary:
        """Collect the vocabulary from the label lists of the training documents."""
        counter = Counter(name for row in labels for name in set(row))
        if not counter:
            raise DataError("no document has a label, so there is nothing to learn")
        ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
        return cls([name for name, _ in ordered], [count for _, count in ordered])

    def with_names(self, thesaurus: Thesaurus) -> LabelVocabulary:
        """Return the labels with titles, followed by those that are only named."""
        names = [*self.names, *(label for label in thesaurus if label not in self._ids)]
        counts = [*self.counts.tolist(), *[0] * (len(names) - len(self))]
        return LabelVocabulary(names, counts, [thesaurus[label].name for label in names])

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def encode(self, labels: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return the ids of label lists; unknown names get new ids from `len(self)` upwards."""
        unseen: dict[str, int] = {}
        return [
            [
                self._ids[name] if name in self._ids else unseen.setdefault(name, len(self) + len(unseen))
                for name in row
            ]
            for row in labels
        ]

    def to_json(self) -> str:
        """Return the text of labels.json."""
        rows: list[dict[str, str | int]] = [
            {"label": name, "documents": int(count)}
            for name, count in zip(self.names, self.counts, strict=True)
        ]
        for row, title in zip(rows, self.titles or (), strict=False):
            row["name"] = title
        return json.dumps(rows, ensure_ascii=False, indent=0) + "\n"

    @classmethod
    def from_json(cls, text: str) -> LabelVocabulary:
        """Parse labels.json."""
        rows = json.loads(text)
        titles = [row["name"] for row in rows if "name" in row]
        return cls([row["label"] for row in rows], [row["documents"] for row in rows], titles or None)
