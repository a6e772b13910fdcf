"""An exported network in parts scores as it does in one, and as plain products of arrays say."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from exported_networks import LABELS, VOCABULARY, exported_kind

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.export import exportable, onnx_scorer, sparse_network
from nlpcapsule.export.onnx_file import GRAPH, write_onnx
from nlpcapsule.export.onnx_scorer import OnnxScorer, WholeNetwork
from nlpcapsule.export.sparse_network import (
    CAPSULES_FILE,
    ENCODER_FILE,
    LABELS_FILE,
    POOLING_FILE,
    SparseNetwork,
    States,
)
from nlpcapsule.lexical.arrays import load_arrays, save_arrays
from nlpcapsule.networks.label_query import LabelQueryNetwork

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

LONG = 90  # tokens, which two threads encode


KINDS: dict[str, dict[str, Any]] = {  # settings of networks
    "float32": {},
    "int8": {},
    "convolution without tables": {},
    "label names": {"text.label_names": "names.json"},
    "no whole document": {"document_size": 0},
    "windows of equal width": {"windows": (3, 3)},
    "all labels": {},
}
SLOW = {"no whole document", "windows of equal width", "all labels"}


@pytest.fixture(
    scope="module", params=[pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in KINDS]
)
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, LabelQueryNetwork, Path]:
    """The kind, the network in torch, and the folder of its export."""
    kind, folder = request.param, tmp_path_factory.mktemp("parts")
    network = exported_kind("convolution kde", **KINDS[kind])
    with pytest.MonkeyPatch.context() as patch:
        if kind == "convolution without tables":
            patch.setattr(exportable, "table_bytes", lambda encoder: 2**40)
        write_onnx(network, folder, int8=kind == "int8", candidates=kind != "all labels")
    return kind, network, folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folder")
    write_onnx(exported_kind("convolution kde"), place)
    return place


def documents() -> Ragged:
    generator = torch.Generator().manual_seed(5)
    lengths = (1, 2, 14, LONG - 1, LONG)
    rows = [torch.randint(1, VOCABULARY, (length,), generator=generator).numpy() for length in lengths]
    return Ragged.from_rows(rows)


def candidates(count: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, LABELS, (count, 4))


def test_parts_score_as_the_network_in_one_and_in_torch(
    exported: tuple[str, LabelQueryNetwork, Path],
) -> None:
    kind, network, folder = exported
    parts, tokens = OnnxScorer.load(folder / GRAPH, LABELS), documents()
    assert isinstance(parts.exported, SparseNetwork)
    assert bool(parts.exported._windows) == (kind != "convolution without tables")
    session = onnx_scorer._session(folder / GRAPH, {"tokens", "candidates"})
    whole, chosen = OnnxScorer(WholeNetwork(session), LABELS), candidates(len(tokens))
    found = parts.score(tokens, chosen).log_odds
    with torch.no_grad():
        rows = zip(tokens, chosen, strict=True)
        expected = [network(torch.tensor(row)[None], torch.tensor(own)[None]).logits[0] for row, own in rows]
    # In 8 bits the whole network also rounds what it pools.
    near = 0.1 if kind == "int8" else 1e-4
    np.testing.assert_allclose(found, torch.stack(expected).numpy(), atol=near, rtol=0)
    np.testing.assert_allclose(found, whole.score(tokens, chosen).log_odds, atol=near, rtol=0)
    every, of_whole = (each.score(tokens).log_odds for each in (parts, whole))
    np.testing.assert_allclose(every, of_whole, atol=near, rtol=0)


@pytest.mark.parametrize("limit", [0.0, 1.0], ids=["arrays", "sparse matrices"])
def test_sparse_matrices_and_arrays_give_the_same_scores(
    folder: Path, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = documents()
    chosen = candidates(len(tokens))
    expected = OnnxScorer.load(folder / GRAPH, LABELS).score(tokens, chosen).log_odds
    monkeypatch.setattr(sparse_network, "_SPARSE", limit)
    found = OnnxScorer.load(folder / GRAPH, LABELS).score(tokens, chosen).log_odds
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


def test_a_document_read_ahead_in_threads_has_the_same_scores(
    exported: tuple[str, LabelQueryNetwork, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, _, folder = exported
    parts, tokens = OnnxScorer.load(folder / GRAPH, LABELS), documents()
    chosen, halves = candidates(len(tokens)), []
    encode = SparseNetwork._states

    def counted(network: SparseNetwork, of: np.ndarray, start: int, end: int) -> States:
        halves.append((start, end))
        return encode(network, of, start, end)

    monkeypatch.setattr(SparseNetwork, "_states", counted)
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 2)
    for row in range(len(tokens)):
        one, halves[:] = tokens.take([row]), []
        begin = parts.read_ahead(one)
        assert begin is not None
        found = begin(chosen[row : row + 1])()
        is_long = len(tokens[row]) >= sparse_network._LONG
        assert len(halves) == (2 if is_long and kind != "convolution without tables" else 1)
        expected = parts.score(one, chosen[row : row + 1])
        np.testing.assert_allclose(found.log_odds, expected.log_odds, atol=1e-5, rtol=0)


def test_nothing_is_read_ahead_without_a_thread_to_spare(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = OnnxScorer.load(folder / GRAPH, LABELS)
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 1)
    assert parts.read_ahead(documents().take([0])) is None
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 2)
    assert parts.read_ahead(documents().take([0, 1])) is None
    assert parts.read_ahead(documents().take([])) is None


def test_a_whole_network_can_be_read_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = onnx_scorer._session(folder / GRAPH, {"tokens", "candidates"})
    whole, tokens, chosen = OnnxScorer(WholeNetwork(session), LABELS), documents().take([2]), candidates(1)
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 2)
    begin = whole.read_ahead(tokens)
    assert begin is not None
    np.testing.assert_array_equal(begin(chosen)().log_odds, whole.score(tokens, chosen).log_odds)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, tokens = OnnxScorer.load(folder / GRAPH, LABELS), documents()
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 2)
    parts.score(tokens)  # starts the parent's threads
    child = multiprocessing.get_context("fork").Process(target=parts.score, args=(tokens,))
    child.start()
    child.join(60)
    if child.is_alive():
        child.kill()
    assert child.exitcode == 0


def test_a_failure_in_a_thread_is_one_message(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = OnnxScorer.load(folder / GRAPH, LABELS)
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 2)
    begin = parts.read_ahead(Ragged.from_rows([np.full(5, VOCABULARY + 1)]))
    assert begin is not None
    with pytest.raises(ModelFolderError, match="the exported network failed"):
        begin(candidates(1))()
    with pytest.raises(ModelFolderError, match="the exported network failed"):  # in the caller's thread
        parts.read_ahead(Ragged.from_rows([np.full(LONG, VOCABULARY + 1)]))


@pytest.mark.parametrize("kept", [0.0, 0.1, 1.0])
def test_states_are_what_a_relu_leaves(kept: float) -> None:
    generator = np.random.default_rng(3)
    sums = generator.integers(-90, 90, (7, 5)).astype(np.int16)
    sums[generator.random(sums.shape) > kept] = -1
    scale = generator.random(5, dtype=np.float32)
    expected = np.maximum(0, sums) * scale  # (l, H)
    found = States.joined([States.rectified(sums[:3], scale), States.rectified(sums[3:], scale)])
    np.testing.assert_array_equal(States.rectified(sums, scale).limits, found.limits)
    np.testing.assert_array_equal(found.largest(), expected.max(axis=0))
    left, right = (generator.random((size, 2), dtype=np.float32) for size in (5, 7))
    np.testing.assert_allclose(found.product(left), expected @ left, rtol=1e-5)
    np.testing.assert_allclose(found.transposed_product(right), expected.T @ right, rtol=1e-5)


@pytest.mark.parametrize("name", [CAPSULES_FILE, LABELS_FILE, POOLING_FILE])
def test_a_missing_part_is_named(folder: Path, tmp_path: Path, name: str) -> None:
    copied = copy_without(folder, tmp_path, name)
    with pytest.raises(ModelFolderError, match=name.replace(".", r"\.")):
        OnnxScorer.load(copied, LABELS)


def test_without_parts_the_whole_network_scores(folder: Path, tmp_path: Path) -> None:
    copied = copy_without(folder, tmp_path, ENCODER_FILE)
    assert isinstance(OnnxScorer.load(copied, LABELS).exported, WholeNetwork)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": np.zeros((3, 4), np.float32)}, "query has the shape"),
        ({"padding_id": np.array([-1])}, "padding_id"),
        ({"more": np.zeros(1, np.float32)}, "expected query, scale and padding_id"),
    ],
)
def test_a_damaged_file_of_queries_is_refused(
    folder: Path, tmp_path: Path, change: dict[str, np.ndarray], message: str
) -> None:
    copied = copy_without(folder, tmp_path, "nothing")
    arrays: dict[str, Any] = {**load_arrays(folder / POOLING_FILE), **change}
    save_arrays(copied.with_name(POOLING_FILE), **arrays)
    with pytest.raises(ModelFolderError, match=message):
        OnnxScorer.load(copied, LABELS)


def crafted(places: Sequence[str], sums: Callable[[int], np.ndarray]) -> SparseNetwork:
    """A network whose encoder has these inputs, and returns these sums of a part with l tokens."""
    encoder = SimpleNamespace(
        get_inputs=lambda: [SimpleNamespace(name=name) for name in places],
        run=lambda names, inputs: [sums(next(iter(inputs.values())).shape[-1])],
    )
    return SparseNetwork(encoder, None, None, np.zeros((4, 1), np.float32), np.ones(4, np.float32), 0)


@pytest.mark.parametrize("width", ["5000", "x", "-3", "", "03"])
def test_other_widths_of_windows_are_refused(width: str) -> None:
    with pytest.raises(ModelFolderError, match=r"encoder\.onnx takes"):
        crafted(["places_3", f"places_{width}"], lambda length: np.ones((1, length, 4), np.float32))


@pytest.mark.parametrize("shape", [(1, -1, 3), (1, -1, 5), (1, 7, 4), (1, -1), (2, -1, 4)])
def test_sums_of_another_shape_never_reach_compiled_code(shape: tuple[int, ...]) -> None:
    def sums(length: int) -> np.ndarray:
        return np.ones([length if size < 0 else size for size in shape], np.float32)

    with pytest.raises(ModelFolderError, match="sums of the shape"):
        crafted(["places_3"], sums).read(np.ones(LONG, np.int64))


def copy_without(folder: Path, target: Path, left_out: str) -> Path:
    """Copy an export but for one file, and return the path of its graph."""
    for path in folder.iterdir():
        if path.name != left_out:
            (target / path.name).write_bytes(path.read_bytes())
    return target / GRAPH
