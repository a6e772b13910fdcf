"""Lexical features of a data set, computed once for machines without lexical systems.

FOLDER/evidence-SYSTEM.safetensors        per part: candidates, their log-odds, neighbours' shares, nearest;
                                          where labels have names (evidence-SYSTEM-names), how well they match
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import numpy as np

from benchmarks.encoded_parts import EncodedParts
from nlpcapsule.config import Config
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ConfigError, DataError
from nlpcapsule.lexical.arrays import load_arrays, save_arrays
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES
from nlpcapsule.training.fit_lexical import fit_evidence
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

PARTS = ("train", "select", "report")
_KNOWN = ("log-odds", "shares", "nearest")


def evidence_path(folder: Path, system: str, fraction: float = 1.0, named: bool = False) -> Path:
    """Return the path of a data set's features, learned from a fraction of it, with or without names."""
    part = "" if fraction == 1.0 else f"-{100 * fraction:.0f}percent"
    return folder / f"evidence-{system}{part}{'-names' if named else ''}.safetensors"


def store_evidence(data: PreparedLabels, parts: EncodedParts, system: str, path: Path) -> None:
    """Fit a lexical system and write its features of all documents.

    Args:
        data: The training data.
        parts: The documents to compute features of.
        system: The lexical system.
        path: The file to write.
    """
    config = Config.build("labels", "hybrid", overrides={"lexical": system})
    with TemporaryDirectory(dir=path.parent, prefix=".") as place, TrainingProgress() as progress:
        words = fit_evidence(data, config, RunFolder(Path(place) / "run"), progress)
    arrays = {}
    for part in PARTS:
        tokens = getattr(parts, part).tokens
        labels, log_odds = words.top(tokens, CANDIDATES)
        arrays[f"{part} labels"] = labels.astype(np.int32)
        if part != "train":  # where only the candidates are needed
            shares, nearest = words.shares(tokens, labels)
            arrays[f"{part} log-odds"] = log_odds.astype(np.float32)
            arrays[f"{part} shares"] = shares.astype(np.float16)
            arrays[f"{part} nearest"] = nearest.astype(np.float32)
            names = words.names(tokens, labels)
            if names is not None:
                arrays[f"{part} names"] = names.astype(np.float16)
    save_arrays(path, **arrays)


class StoredEvidence:
    """Stand-in for `FittedEvidence` that looks up stored features of the data set's documents.

    Args:
        labels: (N, C) each document's candidates.
        log_odds: (N, C) the lexical system's scores; NaN for training documents.
        shares: (N, C) shares of similar documents that have the label, likewise.
        nearest: (N,) the cosine with the nearest training document, likewise.
        rows: The documents' tokens → their row.
        names: (N, C, 2) how well names match, likewise; None where labels have no names.
    """

    def __init__(
        self,
        labels: np.ndarray,
        log_odds: np.ndarray,
        shares: np.ndarray,
        nearest: np.ndarray,
        rows: dict[bytes, int],
        names: np.ndarray | None = None,
    ) -> None:
        self._labels, self._log_odds, self._shares, self._nearest = labels, log_odds, shares, nearest
        self._rows, self._names = rows, names

    @classmethod
    def load(cls, path: Path, parts: EncodedParts) -> Self:
        """Read the output of `store_evidence`.

        Args:
            path: The file.
            parts: The documents in the stored order, truncated to the network's length.
        """
        documents = [getattr(parts, part).tokens for part in PARTS]
        arrays = load_arrays(path, needs_checksum=True)
        labels = np.concatenate([arrays[f"{part} labels"] for part in PARTS]).astype(np.int64)
        if len(labels) != sum(map(len, documents)):
            raise DataError(f"holds evidence on {len(labels)} documents, not on those of this data set", path)
        known = {name: [arrays[f"{part} {name}"] for part in PARTS[1:]] for name in _KNOWN}
        unknown = np.full(arrays["train labels"].shape, np.nan)
        log_odds, shares = (np.concatenate([unknown, *known[name]]) for name in ("log-odds", "shares"))
        nearest = np.concatenate([unknown[:, 0], *known["nearest"]])
        names = None
        if f"{PARTS[-1]} names" in arrays:
            unmatched = np.full((*unknown.shape, 2), np.nan)
            names = np.concatenate([unmatched, *(arrays[f"{part} names"] for part in PARTS[1:])])
        # A text in several parts gets the features of the last one: held out, it has all features.
        rows = {_key(row): place for place, row in enumerate(row for part in documents for row in part)}
        return cls(labels, log_odds, shares, nearest, rows, names)

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the candidates of documents and their log-odds.

        Raises:
            ConfigError: If the requested number of candidates differs from the stored one.
        """
        stored = self._labels.shape[1]  # all labels, if there are fewer than requested
        if top_k not in (CANDIDATES, stored):
            raise ConfigError(
                f"evidence was stored on {stored} candidates for each document, and {top_k} are wanted: set "
                "inference.candidates=0 and take other negatives than hard ones, or remove the file of "
                "evidence, which is then computed again"
            )
        rows = self._find(tokens)
        return self._labels[rows], self._log_odds[rows]

    def shares(self, tokens: Ragged, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the shares of similar documents that have each candidate; candidates are those of `top`."""
        rows = self._find(tokens)
        assert np.array_equal(self._labels[rows], candidates)
        return self._shares[rows], self._nearest[rows]

    def names(self, tokens: Ragged, candidates: np.ndarray) -> np.ndarray | None:
        """Return how well the names of candidates match; candidates are those of `top`."""
        return None if self._names is None else self._names[self._find(tokens)]

    def save(self, folder: Path) -> None:
        """Write nothing: a model that knows only these documents is of no use."""

    def _find(self, tokens: Ragged) -> np.ndarray:
        return np.array([self._rows[_key(row)] for row in tokens], dtype=np.int64)


def _key(row: np.ndarray) -> bytes:
    return np.ascontiguousarray(row, dtype=np.int32).tobytes()
