"""fastText with its library: the mean of a document's word vectors, and a linear layer."""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field
from scipy.special import logsumexp

from nlpcapsule.atomic_files import atomic_path, atomic_text
from nlpcapsule.baselines.fast_text_file import check_fasttext_file
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import MissingExtraError, ModelFolderError, NlpCapsuleError
from nlpcapsule.lexical.arrays import check_array, check_range, load_arrays, save_arrays, single_integer
from nlpcapsule.lexical.ranker import Fitting, LexicalRanker, LexicalSettings, top_of_parts
from nlpcapsule.registry import System, register


class FastTextSettings(LexicalSettings):
    """`fasttext`: the mean of word vectors and a linear layer (Joulin et al. 2017), by its own library."""

    name: Literal["fasttext"] = "fasttext"
    size: int = Field(50, ge=1, description="word vector size")
    epochs: int = Field(40, ge=1, description="passes over the training part")
    learning_rate: float = Field(0.5, gt=0, description="initial learning rate")
    loss: Literal["softmax", "ova"] = Field(
        "ova", description="softmax: one of many; ova: each label separately"
    )


_PREFIX = "__label__"
_LINE_END = "</s>"  # a word in every document, as in the library: even an empty one has a vector
_MODEL_FILE, _ARRAYS_FILE = "fasttext.bin", "fasttext.safetensors"
_NEAREST_TO_CERTAIN = -1e-12  # maximum log-probability: the log-odds of certainty are infinite


@dataclass(frozen=True, eq=False)
class FastText(LexicalRanker):
    """Word vectors and label vectors. For the library, a word is its token id, which needs no escaping.

    Attributes:
        settings: What it was trained with.
        model: The library's model.
        label_count: n.
        ignored: (I,) ids of tokens that are not words.
    """

    settings: FastTextSettings
    model: Any
    label_count: int
    ignored: np.ndarray

    @classmethod
    def fit(cls, settings: FastTextSettings, documents: EncodedDocuments, fitting: Fitting) -> Self:
        """Train with one thread, since several would overwrite each other's steps in random order."""
        fasttext = _library()
        ignored = np.array(fitting.ignored, dtype=np.int64)
        fitting.advance(0, 1)
        with tempfile.TemporaryDirectory() as folder:
            texts, vectors = Path(folder) / "train.txt", Path(folder) / "start.vec"
            _write_training_file(texts, documents, fitting.label_count, ignored)
            _write_first_vectors(vectors, documents.tokens, ignored, settings.size, fitting.seed)
            try:
                model = fasttext.train_supervised(
                    input=str(texts),
                    pretrainedVectors=str(vectors),
                    dim=settings.size,
                    epoch=settings.epochs,
                    lr=settings.learning_rate,
                    loss=settings.loss,
                    label=_PREFIX,
                    seed=fitting.seed,
                    thread=1,
                    verbose=0,
                )
            except RuntimeError as error:
                raise NlpCapsuleError(
                    f"training fastText failed: {error} At the learning rate "
                    f"{settings.learning_rate:g} it may have diverged; set a smaller model.learning_rate"
                ) from None
        fitting.advance(1, 1)
        return cls(settings, model, fitting.label_count, ignored)

    @cached_property
    def _label_vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Label ids (m,) in the library's order, and the vectors (m, size) of these known labels."""
        ids = [int(name.removeprefix(_PREFIX)) for name in self.model.get_labels()]
        return np.array(ids, dtype=np.int64), self.model.get_output_matrix()

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels of documents and their log-odds."""
        return top_of_parts(map(self._log_odds, tokens), top_k)

    def _log_odds(self, document: np.ndarray) -> np.ndarray:
        """Return the log-odds (1, n). The library's `predict` would round probabilities and create ties."""
        ids, vectors = self._label_vectors
        mean = self.model.get_sentence_vector(_text(document, self.ignored))  # (size,)
        scores = (vectors @ mean).astype(np.float64)  # (m,)
        if self.settings.loss == "softmax":
            log_probability = np.minimum(scores - logsumexp(scores), _NEAREST_TO_CERTAIN)
            scores = log_probability - np.log(-np.expm1(log_probability))
        filled = np.full((1, self.label_count), scores.min() - 1)  # labels without examples come last
        filled[0, ids] = scores
        return filled

    def save(self, folder: Path) -> None:
        """Write the library's file and a small additional one."""
        with atomic_path(folder / _MODEL_FILE) as temporary:
            self.model.save_model(str(temporary))
            if not _is_whole(temporary, self.settings):  # the library does not detect a full disk
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save_arrays(folder / _ARRAYS_FILE, label_count=np.array([self.label_count]), ignored=self.ignored)

    @property
    def files(self) -> set[str]:
        """The names of its files."""
        return {_MODEL_FILE, _ARRAYS_FILE}

    @classmethod
    def load(cls, settings: FastTextSettings, folder: Path) -> Self:
        """Read what `save` wrote."""
        fasttext = _library()
        arrays = load_arrays(folder / _ARRAYS_FILE)
        label_count = single_integer(arrays.get("label_count"), "label_count")
        ids = check_fasttext_file(folder / _MODEL_FILE, settings.size, settings.loss, _PREFIX)
        check_range(np.array(ids), "labels of fastText", 0, label_count - 1)
        try:
            model = fasttext.load_model(str(folder / _MODEL_FILE))
        except (ValueError, RuntimeError) as error:
            raise ModelFolderError(f"{folder / _MODEL_FILE}: {error}") from None
        return cls(settings, model, label_count, arrays["ignored"])

    def check(self, vocabulary_size: int, label_count: int) -> None:
        """Check that the model fits the labels."""
        if self.label_count != label_count:
            raise ModelFolderError(f"fastText was trained on {self.label_count} labels, not {label_count}")
        check_array(self.ignored, "ignored", self.ignored.shape[:1], "i")
        check_range(self.ignored, "ignored", 0, vocabulary_size - 1)


def _is_whole(path: Path, settings: FastTextSettings) -> bool:
    try:
        check_fasttext_file(path, settings.size, settings.loss, _PREFIX)
    except ModelFolderError:
        return False
    return True


def _library() -> ModuleType:
    try:
        import fasttext
    except ImportError:
        raise MissingExtraError("fasttext", "fasttext") from None
    return fasttext


def _text(document: np.ndarray, ignored: np.ndarray) -> str:
    return " ".join(map(str, document[~np.isin(document, ignored)].tolist()))


def _write_training_file(
    path: Path, documents: EncodedDocuments, label_count: int, ignored: np.ndarray
) -> None:
    """Write a line per document: "__label__17 __label__4 305 12 9"; unlabelled ones are skipped."""
    with atomic_text(path) as file:
        for tokens, labels in zip(documents.tokens, documents.labels, strict=True):
            names = " ".join(f"{_PREFIX}{label}" for label in labels[labels < label_count].tolist())
            file.write(f"{names} {_text(tokens, ignored)}\n")


def _write_first_vectors(path: Path, tokens: Ragged, ignored: np.ndarray, size: int, seed: int) -> None:
    """Write the initial vectors, drawn uniformly from ±1/size, as the library intends.

    With one thread, fasttext 0.9.3 draws a tenth of the values and leaves the rest uninitialised.
    """
    words = [*map(str, np.setdiff1d(tokens.values, ignored).tolist()), _LINE_END]
    vectors = np.random.default_rng(seed).uniform(-1 / size, 1 / size, (len(words), size))
    with atomic_text(path) as file:
        file.write(f"{len(words)} {size}\n")
        for word, vector in zip(words, vectors, strict=True):
            file.write(f"{word} {' '.join(f'{number:.6g}' for number in vector)}\n")


register(
    System(
        "fasttext",
        FastTextSettings,
        lexical=FastText,
        defaults={"labels": {"text": {"max_tokens": 1000}}},
        extra="fasttext",
    )
)
