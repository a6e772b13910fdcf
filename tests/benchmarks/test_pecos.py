"""PECOS is run by another Python over files; a stand-in for libpecos shows what goes in and comes out."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from benchmarks import pecos
from benchmarks.cell import Cell
from benchmarks.encoded_parts import EncodedParts
from benchmarks.pecos import PECOS_PYTHON, PecosSettings, pecos_python, rankings_of, run_pecos, run_peer
from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import encode_documents
from nlpcapsule.errors import ConfigError, NlpCapsuleError
from nlpcapsule.training.prepared_labels import prepare_labels

# What our script uses of libpecos: labels are scored by the training documents that share words.
STAND_IN = {
    "pecos/__init__.py": "",
    "pecos/xmc/__init__.py": """
class LabelEmbeddingFactory:
    @staticmethod
    def create(labels, features, method):
        assert method == "pifa"
        return labels.T @ features

class Indexer:
    @staticmethod
    def gen(embeddings, indexer_type, nr_splits, max_leaf_size, seed):
        return (nr_splits, max_leaf_size, seed)
""",
    "pecos/xmc/xlinear/__init__.py": "",
    "pecos/xmc/xlinear/model.py": """
import json
from pathlib import Path
from typing import Any

class XLinearModel:
    @classmethod
    def train(cls, features, labels, C, Cp, Cn, threshold):
        model = cls()
        model.told = [*C, Cp, Cn, threshold]
        model.weights = features.T @ labels
        return model

    def predict(self, features, only_topk, beam_size):
        if beam_size == 99:
            raise RuntimeError("the beam is too wide")
        scores = (features @ self.weights).tocsr()
        scores.data /= max(scores.data.max(), 1)
        return scores

    def save(self, folder):
        (Path(folder) / "model.json").write_text(json.dumps(self.told))
""",
}


def stand_in_python(folder: Path) -> Path:
    """A Python that finds the stand-in for libpecos."""
    for name, code in STAND_IN.items():
        path = folder / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder / "packages"}" exec "{sys.executable}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return python


@pytest.fixture(scope="module")
def parts() -> EncodedParts:
    """Documents whose label is told by one word."""
    words = ("fish", "milk", "lamp", "road")
    rows = [Document(f"the {words[n % 4]} is here {words[n % 4]} again", (words[n % 4],)) for n in range(76)]
    data = prepare_labels(rows[:48], rows[48:60], Config.build(overrides={"max_tokens": 30}))
    report = encode_documents(rows[60:], data.tokenizer, data.labels, 30)
    assert data.dev is not None
    return EncodedParts("mine", data.tokenizer, data.labels, data.train, data.dev, report, None)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(stand_in_python(tmp_path_factory.mktemp("pecos")))


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9]), min_size=5, max_size=5), min_size=1, max_size=6)
)
def test_scores_are_ranked_row_by_row(rows: list[list[float]]) -> None:
    found = rankings_of(sparse.csr_matrix(np.array(rows)))
    for row, labels, scores in zip(rows, found.labels.tolist(), found.scores.tolist(), strict=True):
        expected = sorted((-score, label) for label, score in enumerate(row) if score)
        width = len(expected)
        assert labels == [label for _, label in expected] + [-1] * (len(labels) - width)
        assert scores[:width] == pytest.approx([-score for score, _ in expected])


def test_a_cell_of_it_is_measured_like_others(
    parts: EncodedParts, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PECOS_PYTHON, python)
    cell = Cell("labels", "letters", "PECOS", "pecos", {"beam": 20}, seed=1, fraction=0.5)
    record, per_document = run_peer(cell, parts)
    assert per_document.shape == (4, 16)
    assert record["figures"]["P@1"] == per_document[0].mean() == 1
    assert record["selected on"]["documents"] == 12
    assert record["config"]["beam"] == 20
    assert record["training seconds"] < 60


def test_only_the_first_words_are_read_and_features_are_ours(
    parts: EncodedParts, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}
    monkeypatch.setattr(pecos, "_run_script", lambda folder, _: seen.update(_matrices(folder)) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_pecos(parts, PecosSettings(max_tokens=2), 1, python)
    assert seen["features-train.npz"].shape == (48, parts.tokenizer.size)
    assert np.diff(seen["features-train.npz"].indptr).max() <= 2
    lengths = np.sqrt(seen["features-train.npz"].multiply(seen["features-train.npz"]).sum(axis=1))
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)
    np.testing.assert_array_equal(seen["labels-train.npz"].sum(axis=0).A1, parts.labels.counts)


def _matrices(folder: Path) -> dict[str, sparse.csr_matrix]:
    return {path.name: sparse.load_npz(path) for path in folder.glob("*.npz")}


def test_what_it_says_when_it_fails_is_passed_on(parts: EncodedParts, python: str) -> None:
    with pytest.raises(NlpCapsuleError, match="exit code 1: RuntimeError: the beam is too wide"):
        run_pecos(parts, PecosSettings(beam=99), 1, python)


def test_the_script_stands_by_itself() -> None:
    code = Path(pecos.__file__).with_name("pecos_script.py").read_text(encoding="utf-8")
    assert "nlpcapsule" not in code
    assert "pickle" not in code


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("/no/python", r"/no/python: there is no such program; to make one: .*libpecos==1\.2\.8"),
        (sys.executable, r"cannot import libpecos \(ModuleNotFoundError"),
        (None, "NLPCAPSULE_PECOS_PYTHON is not set"),
    ],
)
def test_a_python_is_checked_before_it_is_used(
    given: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PECOS_PYTHON, raising=False)
    if given is not None:
        monkeypatch.setenv(PECOS_PYTHON, given)
    with pytest.raises(ConfigError, match=message):
        pecos_python()


@pytest.mark.skipif(PECOS_PYTHON not in os.environ, reason=f"{PECOS_PYTHON} names no Python with libpecos")
def test_the_real_library_learns_it_too(parts: EncodedParts) -> None:
    python = pecos_python()
    first, *_ = run_pecos(parts, PecosSettings(), 1, python)
    assert first.figures["P@1"] == 1
    assert first.process_memory_gib > 0
    asked = subprocess.run([python, "-c", "import nlpcapsule"], capture_output=True, check=False)
    assert asked.returncode, "it has libpecos and nothing of ours"
