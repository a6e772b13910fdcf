"""An exported network in parts scores as it does in one, and as dense products say."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from exported_networks import LABELS, VOCABULARY, exported_kind
from scipy.sparse import csr_matrix

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.convolution import ConvolutionEncoder
from nlpcapsule.errors import DataError, ModelFolderError
from nlpcapsule.export import exportable, onnx_scorer, sparse_network
from nlpcapsule.export.exportable import RectifiedEncoder, exportable_encoder
from nlpcapsule.export.onnx_file import GRAPH, write_onnx
from nlpcapsule.export.onnx_scorer import OnnxScorer, WholeNetwork
from nlpcapsule.export.session import Session
from nlpcapsule.export.sparse_network import (
    CAPSULES_FILE,
    ENCODER_FILE,
    LABELS_FILE,
    PARTS,
    POOLING_FILE,
    TABLE_FILE,
    DenseStates,
    SparseNetwork,
    SparseStates,
    rectified,
)
from nlpcapsule.export.table_sums import TableSums
from nlpcapsule.lexical.arrays import load_arrays, save_arrays
from nlpcapsule.model_folder import manifest
from nlpcapsule.networks.label_query import LabelQueryNetwork
from nlpcapsule.scoring.background import in_background
from nlpcapsule.scoring.scorer import ReadsFirst

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

LONG = 90  # tokens
ABOVE_ZERO = 0.06  # share of the states, as after training


KINDS: dict[str, dict[str, Any]] = {  # settings of networks
    "float32": {},
    "int8": {},
    "convolution without tables": {},
    "label names": {"text.label_names": "names.json"},
    "no whole document": {"document_size": 0},
    "windows of equal width": {"windows": (3, 3)},
    "a window of 300 words": {"windows": (1, 300)},
    "a window of 300 words, int8": {"windows": (1, 300)},
    "all labels": {},
}
FAST = {"float32", "int8", "convolution without tables", "label names", "a window of 300 words, int8"}


@pytest.fixture(
    scope="module", params=[k if k in FAST else pytest.param(k, marks=pytest.mark.slow) for k in KINDS]
)
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, LabelQueryNetwork, Path]:
    """The kind, the network in torch, and the folder of its export."""
    kind, folder = request.param, tmp_path_factory.mktemp("parts")
    network = sparse(exported_kind("convolution kde", **KINDS[kind]))
    with pytest.MonkeyPatch.context() as patch:
        if kind == "convolution without tables":
            patch.setattr(exportable, "table_bytes", lambda encoder: 2**40)
        write_onnx(network, folder, int8=kind.endswith("int8"), candidates=kind != "all labels")
    return kind, network, folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folder")
    write_onnx(sparse(exported_kind("convolution kde")), place)
    return place


def sparse(network: LabelQueryNetwork) -> LabelQueryNetwork:
    """Lower the biases until few states are above zero, as training does."""
    encoder = network.document.encoder
    assert isinstance(encoder, ConvolutionEncoder)
    with torch.no_grad():
        for convolution in encoder.convolutions:
            convolution.bias += 10  # so that no state is cut
        every = torch.arange(1, VOCABULARY).repeat(3)[None]  # (1, l)
        states = encoder(every)[0]  # (1, l, H)
        for convolution, own in zip(encoder.convolutions, states.chunk(len(encoder.windows), 2), strict=True):
            convolution.bias -= own.flatten().quantile(1 - ABOVE_ZERO)
    return network


def whole_network(folder: Path) -> WholeNetwork:
    return WholeNetwork(Session.open(folder / GRAPH, {"tokens"}, {"candidates"}))


def documents() -> Ragged:
    generator = torch.Generator().manual_seed(5)
    lengths = (1, 2, 14, LONG - 1, LONG)
    rows = [torch.randint(1, VOCABULARY, (length,), generator=generator).numpy() for length in lengths]
    return Ragged.from_rows(rows)


def candidates(count: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, LABELS, (count, 4))


@pytest.mark.parametrize("limit", [None, 0.0, 1.0], ids=["as it is", "arrays", "sparse matrices"])
def test_parts_score_as_the_network_in_one_and_in_torch(
    exported: tuple[str, LabelQueryNetwork, Path], limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, network, folder = exported
    if limit is not None:
        monkeypatch.setattr(sparse_network, "_SPARSE", limit)
    parts, tokens = OnnxScorer.load(folder / GRAPH, LABELS), documents()
    assert isinstance(parts.exported, SparseNetwork)
    assert isinstance(parts.exported.encode, TableSums) == (kind != "convolution without tables")
    states = [parts.exported._states(row) for row in tokens]
    assert {isinstance(each, SparseStates) for each in states[3:]} == {limit != 0}
    whole, chosen = OnnxScorer(whole_network(folder), LABELS), candidates(len(tokens))
    found = parts.score(tokens, chosen).log_odds
    with torch.no_grad():
        rows = zip(tokens, chosen, strict=True)
        expected = [network(torch.tensor(row)[None], torch.tensor(own)[None]).logits[0] for row, own in rows]
    # In 8 bits the whole network also rounds what it pools.
    near = 0.02 if kind.endswith("int8") else 1e-4
    np.testing.assert_allclose(found, torch.stack(expected).numpy(), atol=near, rtol=0)
    np.testing.assert_allclose(found, whole.score(tokens, chosen).log_odds, atol=near, rtol=0)
    every, expected = (each.score(tokens).log_odds for each in (parts, whole))
    np.testing.assert_allclose(every, expected, atol=near, rtol=0)


def test_states_are_pooled_as_plain_products_pool_them(
    exported: tuple[str, LabelQueryNetwork, Path],
) -> None:
    kind, network, folder = exported
    parts, pooled = OnnxScorer.load(folder / GRAPH, LABELS).exported, []
    assert isinstance(parts, SparseNetwork)

    class Noted(Session):
        def run(self, output: str, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
            pooled.append(inputs["pooled"][0])
            return super().run(output, inputs)

    parts = replace(parts, capsules=Noted(parts.capsules.runtime, parts.capsules.shapes))
    encoder = exportable_encoder(network.document.encoder, int8=kind.endswith("int8"))
    assert isinstance(encoder, RectifiedEncoder)
    query = network.document.compress_query
    assert query is not None
    for row in documents():
        parts.read(row)
        with torch.no_grad():
            states = encoder.states(encoder.sums(torch.tensor(row)[None]))[0]  # (l, H)
            expected = (states @ query.T).softmax(dim=0).T @ states  # (m, H)
        np.testing.assert_allclose(pooled.pop(), expected.numpy(), rtol=1e-4, atol=1e-6)


def test_documents_that_were_read_first_have_the_same_scores(
    exported: tuple[str, LabelQueryNetwork, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, folder = exported
    parts, tokens = OnnxScorer.load(folder / GRAPH, LABELS), documents()
    chosen = candidates(len(tokens))
    assert isinstance(parts, ReadsFirst)
    for threads in (1, 2):
        monkeypatch.setattr(onnx_scorer, "thread_count", lambda threads=threads: threads)
        found = parts.score_read(parts.read(tokens), chosen)
        np.testing.assert_array_equal(found.log_odds, parts.score(tokens, chosen).log_odds)
        np.testing.assert_array_equal(found.labels, chosen)


def test_a_whole_network_can_read_first(folder: Path) -> None:
    whole, tokens, chosen = OnnxScorer(whole_network(folder), LABELS), documents(), candidates(5)
    found = whole.score_read(whole.read(tokens), chosen).log_odds
    np.testing.assert_array_equal(found, whole.score(tokens, chosen).log_odds)


def test_a_failure_in_a_thread_is_one_message(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, unknown = OnnxScorer.load(folder / GRAPH, LABELS), np.full(5, VOCABULARY + 1)
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 2)
    for compute in (parts.read, parts.score):
        with pytest.raises(ModelFolderError, match=r"a token is outside the table .* 40 words"):
            compute(Ragged.from_rows([np.ones(3, np.int64), unknown]))


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()], ids=["error", "Ctrl-C"])
def test_after_a_failure_no_other_document_is_begun(
    error: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, begun = OnnxScorer.load(folder / GRAPH, LABELS), []
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 2)

    def read(network: SparseNetwork, tokens: np.ndarray) -> None:
        begun.append(tokens)
        if len(begun) == 1:
            raise error
        time.sleep(0.1)  # long enough for the failure to be noticed

    monkeypatch.setattr(SparseNetwork, "read", read)
    with pytest.raises(type(error)):
        parts.read(documents().take([0] * 50))
    assert len(begun) < 10


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (MemoryError("Unable to allocate 1 TiB"), MemoryError, "1 TiB"),
        (RuntimeError("a bad index"), ModelFolderError, "the exported network failed: a bad index"),
    ],
    ids=["memory", "another"],
)
def test_a_lack_of_memory_is_no_damaged_model(
    error: Exception, expected: type[Exception], message: str
) -> None:
    class Failing:
        def run(self, outputs: list[str], inputs: Mapping[str, np.ndarray]) -> None:
            raise error

    whole = OnnxScorer(WholeNetwork(Session(Failing(), {"tokens": [1, "length"]})), LABELS)
    with pytest.raises(expected, match=message):
        whole.score(documents())


def test_a_request_while_the_interpreter_ends_is_answered_without_threads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = OnnxScorer.load(folder / GRAPH, LABELS)
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 2)
    expected = parts.score(documents()).log_odds

    def refuse(pool: ThreadPoolExecutor, *given: Any) -> NoReturn:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    np.testing.assert_array_equal(parts.score(documents()).log_odds, expected)


def test_a_request_does_not_wait_for_the_documents_of_another_caller(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, many = OnnxScorer.load(folder / GRAPH, LABELS), documents().take([0] * 6)
    read = SparseNetwork.read
    reading, answered = threading.Semaphore(0), threading.Event()
    was_answered: list[bool] = []  # before each of the many was read

    def wait(network: SparseNetwork, tokens: np.ndarray) -> Any:
        reading.release()
        was_answered.append(answered.wait(10))
        return read(network, tokens)

    monkeypatch.setattr(SparseNetwork, "read", wait)
    monkeypatch.setattr(onnx_scorer, "thread_count", lambda: 2)
    other = threading.Thread(target=parts.score, args=(many,))
    other.start()
    assert all(reading.acquire(timeout=10) for _ in range(2))  # so two threads are busy
    assert in_background(len, "four").result(10) == 4
    answered.set()
    other.join()
    assert was_answered == [True] * 6


@pytest.mark.parametrize(("kept", "is_sparse"), [(0.0, True), (0.08, True), (0.5, False)])
def test_states_are_what_a_relu_leaves(kept: float, is_sparse: bool) -> None:
    generator = np.random.default_rng(3)
    sums = generator.integers(1, 90, (70, 50)).astype(np.int16)
    sums[generator.random(sums.shape) > kept] *= -1
    scale = generator.random(50, dtype=np.float32)
    expected = np.maximum(0, sums) * scale  # (l, H)
    found = rectified(sums, scale)
    assert isinstance(found, SparseStates if is_sparse else DenseStates)
    np.testing.assert_array_equal(found.largest(), expected.max(axis=0))
    left, right = (generator.random((size, 2), dtype=np.float32) for size in (50, 70))
    np.testing.assert_allclose(found.product(left), expected @ left, rtol=1e-5)
    np.testing.assert_allclose(found.transposed_product(right), expected.T @ right, rtol=1e-5)


@pytest.mark.parametrize("length", [2, 70], ids=["many above zero", "few above zero"])
def test_sums_that_are_no_numbers_are_not_zeros(length: int) -> None:
    sums = np.zeros((length, 50), np.float32)
    sums[1] = np.nan
    found, ones = rectified(sums, np.ones(50, np.float32)), np.ones((50, 2), np.float32)
    assert isinstance(found, DenseStates if length == 2 else SparseStates)
    assert np.isnan(found.product(ones)[1]).all()
    assert np.isnan(found.transposed_product(np.ones((length, 2), np.float32))).all()
    with np.errstate(invalid="ignore"):
        assert np.isnan(found.largest()).all()


@pytest.mark.filterwarnings("error")  # a command would print them
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_sums_that_are_no_numbers_reach_the_result_without_a_warning(folder: Path, number: float) -> None:
    parts = OnnxScorer.load(folder / GRAPH, LABELS).exported
    assert isinstance(parts, SparseNetwork)
    sums = np.zeros((LONG, 24), np.float32)
    sums[7] = number
    read = replace(parts, encode=lambda tokens: sums).read(np.ones(LONG, np.int64))
    assert not np.isfinite(read["largest"]).any()


@pytest.mark.parametrize("name", [CAPSULES_FILE, LABELS_FILE, TABLE_FILE])
def test_a_missing_part_is_named(folder: Path, tmp_path: Path, name: str) -> None:
    copied = copy_without(folder, tmp_path, name)
    with pytest.raises(ModelFolderError, match=name.replace(".", r"\.")):
        OnnxScorer.load(copied, LABELS)


def test_without_parts_the_whole_network_scores(folder: Path, tmp_path: Path) -> None:
    copied = copy_without(folder, tmp_path, POOLING_FILE)
    assert isinstance(OnnxScorer.load(copied, LABELS).exported, WholeNetwork)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (
            POOLING_FILE,
            {"query": np.zeros((3, 4), np.float32)},
            "pooling.*query has 3 rows.*export the model",
        ),
        (POOLING_FILE, {"query": np.zeros((24, 4))}, "query: expected 2"),
        (POOLING_FILE, {"query": csr_matrix(np.ones((24, 4), np.float32))}, "query: expected 2"),
        (POOLING_FILE, {"query": np.full((24, 4), np.nan, np.float32)}, "query holds a number"),
        (
            POOLING_FILE,
            {"query": np.zeros((24, 3), np.float32)},
            r"query has the shape \(24, 3\): capsules.onnx needs \(24, 4\)",
        ),
        (POOLING_FILE, {"scale": np.ones((24, 1), np.float32)}, "scale: expected 1"),
        (POOLING_FILE, {"scale": np.full(24, -1, np.float32)}, "scale holds a number that is not between 0"),
        (POOLING_FILE, {"more": np.zeros(1, np.float32)}, "expected query and scale"),
        (TABLE_FILE, {"padding_id": np.array([-1])}, "padding_id"),
        (TABLE_FILE, {"padding_id": np.array([VOCABULARY])}, "padding_id"),
        (TABLE_FILE, {"padding_id": np.array([0.5])}, "padding_id"),
        (TABLE_FILE, {"widths": np.array([1, 2, 0])}, "widths"),
        (TABLE_FILE, {"widths": np.array([1025])}, "widths"),
        (TABLE_FILE, {"widths": np.ones(65, np.int64)}, "widths: expected a list"),
        (TABLE_FILE, {"widths": np.array([[1, 2, 3]])}, "widths: expected a list"),
        (TABLE_FILE, {"widths": np.array([], np.int64)}, "widths: expected a list"),
        (TABLE_FILE, {"widths": np.array([1, 2, 4])}, "expected 7 rows"),
        (TABLE_FILE, {"table": np.zeros(240, np.float32)}, "expected 6 rows"),
        (TABLE_FILE, {"table": np.zeros((239, 8), np.float32)}, "expected 6 rows"),
        (TABLE_FILE, {"table": csr_matrix(np.ones((240, 8), np.float32))}, "expected 6 rows"),
        (TABLE_FILE, {"table": np.zeros((240, 7), np.float32)}, "the table has 21 sums, and scale 24"),
        (TABLE_FILE, {"table": np.zeros((0, 8), np.float32)}, "expected 6 rows"),
        (TABLE_FILE, {"table": np.zeros((240, 8), np.int16)}, "of int16: expected 6 rows"),
        (TABLE_FILE, {"more": np.zeros(1, np.float32)}, "expected padding_id, table and widths"),
    ],
)
def test_a_damaged_file_of_arrays_is_refused(
    folder: Path, tmp_path: Path, file: str, change: dict[str, np.ndarray], message: str
) -> None:
    copied = copy_without(folder, tmp_path, "nothing")
    arrays: dict[str, Any] = {**load_arrays(folder / file), **change}
    save_arrays(copied.with_name(file), **arrays)
    with pytest.raises(ModelFolderError, match=message):
        OnnxScorer.load(copied, LABELS)


class Crafted:
    """A graph that returns the same, whatever it is given."""

    def __init__(self, output: np.ndarray) -> None:
        self.output = output

    def run(self, outputs: list[str], inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return [self.output]


@pytest.mark.parametrize("takes", [["tokens", "candidates"], ["tokens"]])
@pytest.mark.parametrize(
    "logits",
    [
        *(np.zeros(shape, np.float32) for shape in ((), (3,), (1, 3), (1, 5), (2, 4), (1, 4, 1))),
        *(np.zeros((1, 4), kind) for kind in (bool, np.int64, np.complex64, np.str_)),
    ],
    ids=lambda logits: f"{logits.dtype}{logits.shape}",
)
def test_logits_of_another_shape_or_type_are_refused(logits: np.ndarray, takes: list[str]) -> None:
    session = Session(Crafted(logits), {name: [1, "length"] for name in takes})
    scorer = OnnxScorer(WholeNetwork(session), 4)
    for candidates in (None, np.array([[0, 1, 2, 3]] * 5)):
        with pytest.raises(ModelFolderError, match=r"gives .* logits of the shape .*; export the"):
            scorer.score(documents(), candidates)


@pytest.mark.parametrize("takes", [["tokens", "candidates"], ["tokens"]])
@pytest.mark.parametrize("number", [np.inf, -np.inf])
def test_infinite_logits_are_refused(number: float, takes: list[str]) -> None:
    session = Session(
        Crafted(np.array([[0, number, 0, 0]], np.float32)), {name: [1, "length"] for name in takes}
    )
    with pytest.raises(ModelFolderError, match="gives infinite logits; export the model again"):
        OnnxScorer(WholeNetwork(session), 4).score(documents(), np.array([[0, 1, 2, 3]] * 5))


@pytest.mark.parametrize("shape", [(), (LONG, 24), (0, LONG, 24), (2, LONG, 24)])
def test_sums_for_fewer_or_more_documents_are_refused(shape: tuple[int, ...]) -> None:
    encode = onnx_scorer._encoder(Session(Crafted(np.ones(shape, np.float32)), {"tokens": [1, "length"]}))
    with pytest.raises(ModelFolderError, match="gives sums of the shape"):
        encode(np.ones(LONG, np.int64))


@pytest.mark.parametrize("shape", [(LONG, 3), (LONG, 5), (7, 4), (LONG,), (2, LONG, 4)])
def test_sums_of_another_shape_never_reach_compiled_code(shape: tuple[int, ...]) -> None:
    arrays = np.zeros((4, 1), np.float32), np.ones(4, np.float32)
    session = Session(None, {"pooled": [1, 1, 4]})
    crafted = SparseNetwork(lambda tokens: np.ones(shape, np.float32), session, session, *arrays)
    with pytest.raises(ModelFolderError, match="float32 sums of the shape"):
        crafted.read(np.ones(LONG, np.int64))
    for kind in (bool, np.uint8, np.str_):
        other = replace(crafted, encode=lambda tokens, kind=kind: np.ones((LONG, 4), kind))
        with pytest.raises(ModelFolderError, match=r"(bool|uint8|<U1) sums of"):
            other.read(np.ones(LONG, np.int64))


def test_more_states_than_integers_count_never_reach_compiled_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, tokens = OnnxScorer.load(folder / GRAPH, LABELS).exported, np.ones(LONG, np.int64)
    parts.read(tokens)
    monkeypatch.setattr(sparse_network, "_MOST_STATES", LONG * 24)
    with pytest.raises(DataError, match=f"of {LONG} tokens is too long"):
        parts.read(tokens)


def test_a_table_has_rows_for_all_words(folder: Path) -> None:
    parts = OnnxScorer.load(folder / GRAPH, LABELS)
    parts.check(VOCABULARY)
    with pytest.raises(
        ModelFolderError, match=r"table\.safetensors has 40 words, and the tokenizer 41; export"
    ):
        parts.check(VOCABULARY + 1)


def test_a_part_needs_its_inputs(folder: Path, tmp_path: Path) -> None:
    copied = copy_without(folder, tmp_path, LABELS_FILE)
    copied.with_name(LABELS_FILE).write_bytes(copied.read_bytes())  # takes no capsules
    with pytest.raises(ModelFolderError, match=r"inputs \['candidates', 'tokens'\]: expected capsules and"):
        OnnxScorer.load(copied, LABELS)


def test_an_export_leaves_no_part_of_an_earlier_one(folder: Path, tmp_path: Path) -> None:
    copy_without(folder, tmp_path, "nothing")
    (tmp_path / ENCODER_FILE).write_text("earlier")
    names = write_onnx(exported_kind("convolution adaptive-kde uncondensed"), tmp_path)
    assert not set(PARTS).intersection(names)
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())


def test_a_model_folder_may_hold_all_parts() -> None:
    assert set(PARTS) == set(manifest._PARTS)


def test_a_table_is_stored_once(exported: tuple[str, LabelQueryNetwork, Path]) -> None:
    kind, _, folder = exported
    if kind == "convolution without tables":
        assert not (folder / TABLE_FILE).exists()
        return
    table = load_arrays(folder / TABLE_FILE)["table"].tobytes()
    assert [path.name for path in folder.iterdir() if table in path.read_bytes()] == [TABLE_FILE]


def test_files_can_be_read_by_those_who_read_other_new_files(
    exported: tuple[str, LabelQueryNetwork, Path], tmp_path: Path
) -> None:
    (tmp_path / "new").touch()
    modes = {path.name: path.stat().st_mode for path in exported[2].iterdir()}
    assert set(modes.values()) == {(tmp_path / "new").stat().st_mode}, modes


def copy_without(folder: Path, target: Path, left_out: str) -> Path:
    """Copy an export but for one file, and return the path of its graph."""
    for path in folder.iterdir():
        if path.name != left_out:
            (target / path.name).write_bytes(path.read_bytes())
    return target / GRAPH
