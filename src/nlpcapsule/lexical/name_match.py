"""How far a document's words bear out a label's name, for labels with few examples or none.

    match_j = max over f, its name or another:   Σ_{w in f and in the document} idf_w / √(Σ_{w in f} idf_w)

A name of which all words stand in the document counts √(Σ idf): long names of rare words more than a single
common word. idf_w = log((1 + N) / (1 + df_w)) is of the training documents. Plurals and singulars are one
word. A word of a name that nobody knows stands in no document, but counts in the sum below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from scipy import sparse

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.data.word_frequency import inverse_document_frequency
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.arrays import check_array, check_range, load_arrays, save_arrays
from nlpcapsule.lexical.bag_of_words import LEAD_TOKENS, word_counts
from nlpcapsule.lexical.whole_words import WholeWords

FILE = "name-match.safetensors"
_MATCHES_AT_A_TIME = 2**23  # so that matching takes little memory, however many documents there are
_SHORTEST = 4  # letters of a word that may be a plural


@dataclass(frozen=True, eq=False)
class NameMatch:
    """The labels' names, ready to be looked for.

    Attributes:
        folded: (V,) int64, the folded word of each word; -1 for tokens that are no words.
        forms: (F, W) float32, sparse: weights of the folded words of all names, label by label.
        offsets: (n,) int64, where each label's forms begin; every label has one at least.
        examples: (n,) bool, whether a label has training documents.
    """

    folded: np.ndarray
    forms: sparse.csr_matrix
    offsets: np.ndarray
    examples: np.ndarray

    @classmethod
    def fit(
        cls,
        names: Sequence[Ragged],
        examples: np.ndarray,
        documents: Ragged,
        vocabulary: Sequence[str],
        ignored: tuple[int, ...] = (),
    ) -> Self:
        """Weighs the words of names.

        Args:
            names: For each label, its name and alternatives as rows of word ids.
            examples: (n,) whether a label has training documents.
            documents: The training documents.
            vocabulary: The words.
            ignored: Ids that are no words: padding, the unknown word.
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
        counts = [len(label) for label in names]
        return cls(
            folded,
            sparse.csr_matrix(sparse.diags(scale) @ weights, dtype=np.float32),
            np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64),
            np.asarray(examples, dtype=bool),
        )

    def __call__(self, tokens: Ragged, candidates: np.ndarray) -> np.ndarray:
        """(N, C, 2) how well the names of candidates (N, C) match the document, and how well its opening."""
        found = np.empty((*candidates.shape, 2))
        for part, words in enumerate((tokens, tokens.cut(LEAD_TOKENS))):
            for rows, matches in self._matches(words):
                found[rows, :, part] = np.take_along_axis(matches, candidates[rows], axis=1)
        return found

    def nominate(self, tokens: Ragged, count: int) -> np.ndarray:
        """(N, count) of the labels without examples, those whose names match best; equals go by label."""
        without = self.without_examples
        best = np.empty((len(tokens), min(count, len(without))), dtype=np.int64)
        for rows, matches in self._matches(tokens):
            best[rows] = without[top_columns(matches[:, without], count)]
        return best

    @cached_property
    def with_examples(self) -> np.ndarray:
        """Ids of the labels that have training documents."""
        return np.flatnonzero(self.examples)

    @cached_property
    def without_examples(self) -> np.ndarray:
        """Ids of the labels that have none."""
        return np.flatnonzero(~self.examples)

    @cached_property
    def _forms_by_word(self) -> sparse.csr_matrix:
        """(W, F)."""
        return self.forms.T.tocsr()

    def _matches(self, tokens: Ragged) -> Iterator[tuple[slice, np.ndarray]]:
        """Documents, a few at a time, and how well all names match them (chunk, n)."""
        present = _present(_folded(tokens, self.folded), self.forms.shape[1])  # (N, W)
        chunk = max(1, _MATCHES_AT_A_TIME // max(1, self.forms.shape[0]))
        for start in range(0, len(tokens), chunk):
            rows = slice(start, start + chunk)
            by_form = (present[rows] @ self._forms_by_word).toarray()  # (chunk, F)
            yield rows, np.maximum.reduceat(by_form, self.offsets, axis=1)

    def save(self, folder: Path) -> None:
        """Writes one file."""
        save_arrays(
            folder / FILE,
            folded=self.folded,
            forms=self.forms,
            offsets=self.offsets,
            examples=self.examples,
        )

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote."""
        arrays = load_arrays(folder / FILE)
        return cls(arrays["folded"], arrays["forms"], arrays["offsets"], arrays["examples"])

    def check(self, vocabulary_size: int, counts: np.ndarray) -> None:
        """Refuse names that are not those of the labels; `counts` (n,) are their training documents.

        Raises:
            ModelFolderError: They are not.
        """
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
    """(V,) int64: one number for a word and its plural.

    Example:
        >>> fold_words(["import", "duty", "imports", "duties"]).tolist()
        [0, 1, 0, 1]
    """
    numbers: dict[str, int] = {}
    return np.array(
        [numbers.setdefault(_singular(word), len(numbers)) for word in vocabulary], dtype=np.int64
    )


def word_texts(whole_words: WholeWords, tokens: Ragged, vocabulary: Sequence[str]) -> list[str]:
    """How the words that `whole_words` learned from these tokens are written, by word id."""
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
    """Rows of folded words, without tokens that are none."""
    words = folded[tokens.values]
    ends = np.concatenate([[0], np.cumsum(words >= 0)])
    return Ragged(words[words >= 0], ends[tokens.offsets])


def _present(words: Ragged, size: int) -> sparse.csr_matrix:
    """(N, W) float64: 1 where a word stands in a row."""
    counts = word_counts(words, size)
    counts.data[:] = 1
    return counts
