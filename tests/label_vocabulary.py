"""The vocabulary of label lists, as training collects it."""

from collections import Counter
from collections.abc import Iterable, Sequence

from nlpcapsule.data.labels import LabelVocabulary


def vocabulary_of(labels: Iterable[Sequence[str]]) -> LabelVocabulary:
    return LabelVocabulary.from_counts(Counter(label for row in labels for label in set(row)))
