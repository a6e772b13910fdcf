"""PECOS is run by another Python over files; a stand-in for libpecos shows what goes in and comes out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from compare_runs import stand_in_python, write_letters
from hypothesis import given
from scipy import sparse

from nlpcapsule.compare import pecos
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.data import open_folder
from nlpcapsule.compare.encoded_parts import EncodedParts
from nlpcapsule.compare.pecos import pecos_python, rankings_of, run_pecos
from nlpcapsule.compare.pecos_settings import PECOS_PYTHON, PecosSettings
from nlpcapsule.compare.prepared import prepare
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import ConfigError, NlpCapsuleError


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> EncodedParts:
    folder = tmp_path_factory.mktemp("letters")
    source = open_folder(write_letters(folder / "mine"), ReadOptions())
    cell = Cell("labels", "mine", "pecos", "pecos", {}, seed=1)
    places, _ = prepare(source, [cell], folder / "data")
    return EncodedParts.load(places["pecos"] / "mine")


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


def test_it_learns_what_one_word_tells(parts: EncodedParts, python: str) -> None:
    record, ranked, report = run_pecos(parts, PecosSettings(), 1, python)
    assert record.figures["P@1"] == 1
    assert record.selected_on["documents"] == 12
    assert [row[0] for row in ranked.labels.tolist()] == [row[0] for row in report.labels]
    assert record.model_mib >= 0
    assert record.training_seconds < 60


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


def test_a_python_is_looked_at_before_it_is_used(python: str, tmp_path: Path) -> None:
    assert pecos_python(python) == python
    with pytest.raises(ConfigError, match=r"there is no such program; to make one: .*libpecos==1\.2\.8"):
        pecos_python(str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match=r"cannot import libpecos \(ModuleNotFoundError"):
        pecos_python(sys.executable)
    assert pecos_python(None) is None


@pytest.mark.skipif(PECOS_PYTHON not in os.environ, reason=f"{PECOS_PYTHON} names no Python with libpecos")
def test_the_real_library_learns_it_too(parts: EncodedParts) -> None:
    python = pecos_python(os.environ[PECOS_PYTHON])
    assert python is not None
    first, *_ = run_pecos(parts, PecosSettings(), 1, python)
    assert first.figures["P@1"] == 1
    assert first.process_memory_gib > 0
    asked = subprocess.run([python, "-c", "import nlpcapsule"], capture_output=True, check=False)
    assert asked.returncode, "it has libpecos and nothing of ours"
