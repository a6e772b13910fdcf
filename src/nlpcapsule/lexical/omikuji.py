"""Parabel and Bonsai with the omikuji library: trees of label clusters, a linear model per node."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from scipy import sparse

from nlpcapsule.atomic_files import atomic_text
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ModelFolderError, NlpCapsuleError, import_extra
from nlpcapsule.lexical.arrays import load_arrays, save_arrays, single_integer
from nlpcapsule.lexical.bag_of_words import LEAD_TOKENS_HELP, BagOfWords
from nlpcapsule.lexical.many_labels.omikuji_beam import KEEPS_BEAM, top_of_trees
from nlpcapsule.lexical.omikuji_tree import SETTINGS_FILE, TREE_FILE, check_tree, rewrite_tree
from nlpcapsule.lexical.ranker import Fitting, LexicalRanker, LexicalSettings, label_matrix
from nlpcapsule.registry import System, register


class OmikujiSettings(LexicalSettings):
    """`omikuji`: trees of label clusters with a linear model per node (Parabel, Bonsai), on tf-idf."""

    balanced: ClassVar[bool] = True  # children hold equal numbers of labels

    name: Literal["omikuji"] = "omikuji"
    trees: int = Field(3, ge=1, description="trees whose scores are averaged")
    clusters: int = Field(2, ge=2, description="children of a node: 2 is Parabel, 100 is Bonsai")
    largest_leaf: int = Field(100, ge=2, description="nodes with fewer labels are not split")
    beam: int = Field(
        10,
        ge=1,
        description="nodes kept per level, and labels per leaf, when ranking; "
        f"doubled where more than {KEEPS_BEAM} labels are asked for and not reached",
    )
    lead_tokens: int = Field(0, ge=0, description=LEAD_TOKENS_HELP)

    @model_validator(mode="after")
    def _enough_labels_to_split(self) -> Self:
        if self.largest_leaf < self.clusters:  # the library would abort the whole process
            raise ValueError(
                f"`largest_leaf` must be at least `clusters` ({self.clusters}). "
                f"Got {self.largest_leaf} instead."
            )
        return self


_FILE, _TREE = "omikuji.safetensors", "omikuji-tree-{}"


@dataclass(frozen=True, eq=False)
class OmikujiTrees(LexicalRanker):
    """An ensemble of trees whose scores are averaged.

    The library clusters at random without a seed, so two trainings differ slightly, and a resumed training
    keeps its finished trees. A trained model always ranks the same, also after saving and loading: each tree
    is a separate model, because the library sums the trees of one model in directory order.
    """

    settings: OmikujiSettings  # what it was trained with
    bag: BagOfWords  # turns tokens into features
    label_count: int  # n
    trees: list[Any]  # the library's models

    @classmethod
    def fit(cls, settings: OmikujiSettings, documents: EncodedDocuments, fitting: Fitting) -> Self:
        """Train one tree after another, reusing those in the checkpoint folder."""
        omikuji = import_extra("omikuji", "omikuji")
        bag = BagOfWords.fit(documents.tokens, len(fitting.words), fitting.ignored, settings.lead_tokens)
        parameters = omikuji.Model.default_hyper_param()
        parameters.n_trees = 1
        parameters.cluster_k, parameters.cluster_balanced = settings.clusters, settings.balanced
        parameters.min_branch_size = settings.largest_leaf
        kept = fitting.checkpoint / f"omikuji-{fitting.fingerprint(settings, documents)}"
        paths = [kept / f"tree-{number}.safetensors" for number in range(settings.trees)]
        trees = [_kept(path, bag.width, fitting.label_count) for path in paths]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "train.txt"
            if None in trees:
                targets = label_matrix(documents.labels, fitting.label_count)  # (N, n)
                _write_training_file(file, bag.rows(documents.tokens), targets)
            for number, path in enumerate(paths):
                fitting.advance(number, settings.trees)
                if trees[number] is None:
                    with _silenced("training omikuji's trees"):
                        tree = omikuji.Model.train_on_data(str(file), parameters)
                    trees[number] = _keep(tree, path, bag.width, fitting.label_count)
        fitting.advance(settings.trees, settings.trees)
        return cls(settings, bag, fitting.label_count, trees)

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels of documents and the log-odds of their scores."""
        rows = self.bag.rows(tokens)
        return top_of_trees(self.trees, rows, self.settings.beam, self.label_count, top_k)

    def save(self, folder: Path) -> None:
        """Write the word weights and one folder per tree, in the library's format (JSON and CBOR)."""
        save_arrays(folder / _FILE, **self.bag.to_arrays(), label_count=np.array([self.label_count]))
        for number, tree in enumerate(self.trees):
            path = folder / _TREE.format(number)
            shutil.rmtree(path, ignore_errors=True)  # the library reads every tree it finds there
            _write(tree, path)

    @property
    def files(self) -> set[str]:
        """The names of its files; `check_tree` accepts no others in a tree's folder."""
        trees = [Path(_TREE.format(number)) for number in range(len(self.trees))]
        return {_FILE, *((tree / name).as_posix() for tree in trees for name in (SETTINGS_FILE, TREE_FILE))}

    @classmethod
    def load(cls, settings: OmikujiSettings, folder: Path) -> Self:
        """Read the output of `save`."""
        import_extra("omikuji", "omikuji")  # before looking for files
        arrays = load_arrays(folder / _FILE)
        bag = BagOfWords.from_arrays(arrays)
        label_count = single_integer(arrays.get("label_count"), "label_count")
        folders = [folder / _TREE.format(number) for number in range(settings.trees)]
        return cls(settings, bag, label_count, [_read(path, bag.width, label_count) for path in folders])

    def check(self, vocabulary_size: int, label_count: int) -> None:
        """Check that the trees fit the features and labels."""
        self.bag.check(vocabulary_size)
        if self.label_count != label_count:
            raise ModelFolderError(f"the trees are for {self.label_count} labels, not {label_count}")


def _write(tree: Any, path: Path) -> None:
    with _silenced(f"writing {path}"):
        tree.save(str(path))
    rewrite_tree(path)


def _read(path: Path, width: int, label_count: int) -> Any:
    check_tree(path, width, label_count)
    with _silenced(f"reading {path}"):
        return import_extra("omikuji", "omikuji").Model.load(str(path))


def _keep(tree: Any, path: Path, width: int, label_count: int) -> Any:
    """Save a tree for a resumed training and return it; one that another process saved first is returned."""
    with tempfile.TemporaryDirectory() as folder:
        _write(tree, Path(folder) / "tree")
        files = [Path(folder) / "tree" / name for name in (SETTINGS_FILE, TREE_FILE)]
        settings, content = (np.frombuffer(file.read_bytes(), dtype=np.uint8) for file in files)
    if not path.exists():
        save_arrays(path, settings=settings, tree=content)
    return _kept(path, width, label_count)


def _kept(path: Path, width: int, label_count: int) -> Any | None:
    """Return a tree that an earlier run saved; None if it is missing or damaged."""
    try:
        arrays = load_arrays(path, needs_checksum=True)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / SETTINGS_FILE).write_bytes(arrays["settings"].tobytes())
            (Path(folder) / TREE_FILE).write_bytes(arrays["tree"].tobytes())
            return _read(Path(folder), width, label_count)
    except ModelFolderError:
        path.unlink(missing_ok=True)
        return None


def _write_training_file(path: Path, features: sparse.csr_matrix, targets: sparse.csr_matrix) -> None:
    """Write documents in omikuji's format: sizes, then lines of "label,label word:weight word:weight".

    Documents without a known word or without a label are skipped; the library rejects the former.
    """
    kept = np.flatnonzero((np.diff(features.indptr) > 0) & (np.diff(targets.indptr) > 0))
    with atomic_text(path) as file:
        file.write(f"{len(kept)} {features.shape[1]} {targets.shape[1]}\n")
        for row in kept:
            words = slice(features.indptr[row], features.indptr[row + 1])
            labels = targets.indices[targets.indptr[row] : targets.indptr[row + 1]]
            pairs = zip(features.indices[words].tolist(), features.data[words].tolist(), strict=True)
            line = " ".join(f"{word}:{weight:.7g}" for word, weight in pairs)
            file.write(f"{','.join(map(str, labels.tolist()))} {line}\n")


@contextmanager
def _silenced(doing: str) -> Iterator[None]:
    """Hide the library's log and progress bars, which bypass Python's streams; name the cause if it fails."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {stream: os.dup(stream) for stream in (1, 2)}
    with tempfile.TemporaryFile() as log:
        try:
            for stream in kept:
                os.dup2(log.fileno(), stream)
            yield
        except RuntimeError as error:
            log.seek(0)
            printed = log.read().decode(errors="replace").split("\n")
            last = next((line for line in reversed(printed) if line.strip()), "")
            raise NlpCapsuleError(f"{doing} failed: {error} ({last[-200:].strip()})") from None
        finally:
            for stream, copy in kept.items():
                os.dup2(copy, stream)
                os.close(copy)


register(
    System(
        "omikuji",
        OmikujiSettings,
        lexical=OmikujiTrees,
        defaults={"labels": {"text": {"max_tokens": 1000}}},
        extra="omikuji",
    )
)
