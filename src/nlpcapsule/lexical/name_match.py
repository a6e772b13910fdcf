"""Match a document's words with label names, for labels with few or no examples.

    match_j = max over its names f:   Σ_{w in f and in the document} idf_w / √(Σ_{w in f} idf_w)

A name whose words all occur in the document scores √(Σ idf), so long names of rare words score higher than a
single common word. idf_w = log((1 + N) / (1 + df_w)) is computed on the training documents. Plurals and
singulars count as one word. An unknown word of a name matches nothing but counts in the denominator.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.data.word_frequency import inverse_document_frequency
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.arrays import check_array, check_range, load_arrays, save_arrays
from nlpcapsule.lexical.bag_of_words import LEAD_TOKENS, word_counts
from nlpcapsule.lexical.whole_words import WholeWords

_MATCHES_AT_A_TIME = 2**23  # matches computed at once, which bounds memory
_SHORTEST = 4  # minimum length of a plural


@dataclass(frozen=True, eq=False)
class NameMatch:
    """The labels' names, ready for matching."""

    file: ClassVar[str] = "name-match.safetensors"

    folded: np.ndarray  # (V,) int64, the folded word of each word; -1 for tokens that are not words
    forms: sparse.csr_matrix  # (F, W) float32: weights of the folded words of all names, label by label
    offsets: np.ndarray  # (n,) int64, where each label's forms begin; every label has at least one
    examples: np.ndarray  # (n,) bool, whether a label has training documents

    @classmethod
    def fit(
        cls,
        names: Sequence[Ragged],
        examples: np.ndarray,
        documents: Ragged,
        vocabulary: Sequence[str],
        ignored: tuple[int, ...] = (),
    ) -> Self:
        """Compute the weights of the words in names.

        `names` has, for each label, its name and alternatives as rows of word ids; `examples` (n,) tells
        whether it has training documents, and `ignored` are ids of tokens that are not words.
        """
        folded = fold_words(vocabulary)
        folded[list(ignored)] = -1
        size = int(folded.max(initial=-1)) + 1
        idf = inverse_document_frequency(_folded(documents, folded), size)
        forms = Ragged.from_rows(form for label in names for form in label)
        known = _folded(forms, folded)
        weights = _present(known, size)  # (F, W)
        weights.data *= idf[weights.indices]
        unknown = (forms.lengths - known.lengths) * np.log1p(len(documents))  # (F,) what those would weigh
        total = np.asarray(weights.sum(axis=1)).ravel() + unknown
        scale = np.divide(1, np.sqrt(total), out=np.zeros(len(total)), where=total > 0)
        scaled = sparse.csr_matrix(sparse.diags(scale) @ weights, dtype=np.float32)
        offsets = np.cumsum([0, *map(len, names)], dtype=np.int64)[:-1]
        return cls(folded, scaled, offsets, np.asarray(examples, dtype=bool))

    def __call__(self, tokens: Ragged, candidates: np.ndarray) -> np.ndarray:
        """Return how well candidates' names match the document and its lead: (N, C, 2)."""
        found = np.empty((*candidates.shape, 2))
        for part, words in enumerate((tokens, tokens.cut(LEAD_TOKENS))):
            for rows, matches in self._matches(words):
                found[rows, :, part] = np.take_along_axis(matches, candidates[rows], axis=1)
        return found

    def nominate(self, tokens: Ragged, count: int) -> np.ndarray:
        """Return the labels without examples whose names match best (N, count); ties are broken by label."""
        without = np.flatnonzero(~self.examples)
        best = np.empty((len(tokens), min(count, len(without))), dtype=np.int64)
        for rows, matches in self._matches(tokens):
            best[rows] = without[top_columns(matches[:, without], count)]
        return best

    @cached_property
    def with_examples(self) -> np.ndarray:
        """Ids of the labels that have training documents."""
        return np.flatnonzero(self.examples)

    @cached_property
    def _forms_by_word(self) -> sparse.csr_matrix:
        """(W, F)."""
        return self.forms.T.tocsr()

    def _matches(self, tokens: Ragged) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices of documents and how well all names match them (chunk, n)."""
        present = _present(_folded(tokens, self.folded), self.forms.shape[1])  # (N, W)
        chunk = max(1, _MATCHES_AT_A_TIME // max(1, self.forms.shape[0]))
        for start in range(0, len(tokens), chunk):
            rows = slice(start, start + chunk)
            by_form = (present[rows] @ self._forms_by_word).toarray()  # (chunk, F)
            yield rows, np.maximum.reduceat(by_form, self.offsets, axis=1)

    def save(self, folder: Path) -> None:
        """Write one file."""
        save_arrays(folder / self.file, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the output of `save`."""
        arrays = load_arrays(folder / cls.file)
        return cls(arrays["folded"], arrays["forms"], arrays["offsets"], arrays["examples"])

    def check(self, vocabulary_size: int, counts: np.ndarray) -> None:
        """Raise `ModelFolderError` if the names do not fit the labels, which have `counts` (n,) documents."""
        form_count, words = self.forms.shape
        check_array(self.folded, "folded", (vocabulary_size,), "i")
        check_range(self.folded, "folded", -1, words - 1)
        check_array(self.forms, "forms", (form_count, words))
        check_array(self.offsets, "offsets", (len(counts),), "i")
        check_range(self.offsets, "offsets", 0, form_count - 1)
        if self.offsets[0] != 0 or (np.diff(self.offsets) < 1).any():
            raise ModelFolderError("offsets of names do not ascend from 0")
        check_array(self.examples, "examples", (len(counts),), "b")
        if not np.array_equal(self.examples, counts > 0):
            raise ModelFolderError("the labels with examples are not those that labels.json counts")


def fold_words(vocabulary: Sequence[str]) -> np.ndarray:
    """Return (V,) int64: the same number for a word and its plural.

    Example:
        >>> fold_words(["import", "duty", "imports", "duties"]).tolist()
        [0, 1, 0, 1]
    """
    numbers: dict[str, int] = {}
    folded = [numbers.setdefault(_singular(word), len(numbers)) for word in vocabulary]
    return np.array(folded, dtype=np.int64)


def word_texts(whole_words: WholeWords, tokens: Ragged, vocabulary: Sequence[str]) -> list[str]:
    """Return the spelling of the words that `whole_words` learned from these tokens, by word id."""
    words = whole_words(tokens).values
    first = np.zeros(len(words), dtype=bool)
    first[np.unique(words, return_index=True)[1]] = True
    texts = [""] * whole_words.size
    for word, text in zip(words[first], whole_words.pieces.texts(tokens, first, vocabulary), strict=True):
        texts[word] = text
    return texts


def _singular(word: str) -> str:
    if len(word) < _SHORTEST or not word.endswith("s") or word.endswith("ss"):
        return word
    return word[:-3] + "y" if word.endswith("ies") and len(word) > _SHORTEST + 1 else word[:-1]


def _folded(tokens: Ragged, folded: np.ndarray) -> Ragged:
    """Return rows of folded words, without tokens that are not words."""
    words = folded[tokens.values]
    ends = np.concatenate([[0], np.cumsum(words >= 0)])
    return Ragged(words[words >= 0], ends[tokens.offsets])


def _present(words: Ragged, size: int) -> sparse.csr_matrix:
    """Return (N, W) float64: 1 where a word occurs in a row."""
    counts = word_counts(words, size)
    counts.data[:] = 1
    return counts
