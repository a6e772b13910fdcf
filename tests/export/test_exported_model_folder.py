"""`nlpcapsule export`, and prediction with what it adds to a model folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nlpcapsule import CapsuleClassifier
from nlpcapsule.errors import ConfigError, ModelFolderError
from nlpcapsule.export import onnx_scorer
from nlpcapsule.export.export_model import export_model
from nlpcapsule.export.onnx_scorer import OnnxScorer
from nlpcapsule.export.prediction import load_for_prediction
from nlpcapsule.learning.versions import write_version
from nlpcapsule.lexical.arrays import load_arrays, save_arrays
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.model_folder import add_files, load_model, save_model
from nlpcapsule.model_folder.manifest import ONNX, checked_files
from nlpcapsule.sample import load_documents
from nlpcapsule.scoring import hybrid_scorer
from saved_models import edit, seal
from tests.cli.run_command import assert_refused, run_command

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

TINY = {"embedding_size": 8, "filters": 8, "capsule_size": 8, "condensed": 4, "max_tokens": 30}
HYBRID = TINY | {"document_size": 8, "candidates": 12, "lexical": "one-vs-rest"}
DOCUMENTS = load_documents("train")[:60]
TEXTS = [document.text for document in DOCUMENTS]
HEAVY = ("torch", "sklearn", "numba", "scipy.stats", "joblib", "transformers", "accelerate", "matplotlib")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "model"
    classifier = CapsuleClassifier(epochs=1, settings=HYBRID)
    classifier.fit(TEXTS, [document.labels for document in DOCUMENTS]).save(folder)
    return folder


@pytest.fixture(scope="module")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "model"
    shutil.copytree(trained, folder)
    export_model(folder)
    return folder


@pytest.fixture
def copied(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "model"))


def test_an_exported_model_ranks_as_in_torch(trained: Path, exported: Path) -> None:
    in_torch, model = load_model(trained), load_for_prediction(exported)
    assert isinstance(model.scorer.scorer, OnnxScorer)
    found, expected = (each.rank_tokens(each.encode(TEXTS), 5) for each in (model, in_torch))
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-4)
    assert model.threshold == in_torch.threshold


def test_a_request_has_the_same_result_with_more_threads(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, begin = load_for_prediction(exported), hybrid_scorer.in_background
    here, elsewhere = threading.get_ident(), []

    def noted(compute: Any, *given: Any) -> Any:
        return begin(lambda: elsewhere.append(threading.get_ident()) or compute(*given))

    monkeypatch.setattr(hybrid_scorer, "in_background", noted)
    ranked = {}
    for threads in (1, 2):
        for module in (onnx_scorer, hybrid_scorer):
            monkeypatch.setattr(module, "thread_count", lambda threads=threads: threads)
        ranked[threads] = [model.rank([text]) for text in TEXTS[:10]]
        assert len(elsewhere) == 20 * (threads - 1)  # nominations and other features
    assert here not in elsewhere
    assert ranked[1] == ranked[2]
    model.rank(TEXTS[:2])  # both threads have a document to read
    model.rank([])
    assert len(elsewhere) == 20
    for module in (onnx_scorer, hybrid_scorer):
        monkeypatch.setattr(module, "thread_count", lambda: 3)
    assert model.rank(TEXTS[:2]) == [each[0] for each in ranked[1][:2]]
    assert len(elsewhere) == 22


@pytest.mark.parametrize("step", ["top", "shares"])
def test_a_failure_in_the_background_ends_a_request(
    exported: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_for_prediction(exported)
    monkeypatch.setattr(hybrid_scorer, "thread_count", lambda: 2)

    def fail(*given: Any) -> None:
        raise MemoryError("none is left")

    monkeypatch.setattr(FittedEvidence, step, fail)
    with pytest.raises(MemoryError, match="none is left"):
        model.rank(TEXTS[:1])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_table_with_a_number_that_is_not_finite_is_refused(copied: Path, number: float) -> None:
    file = copied / ONNX / "table.safetensors"
    arrays = load_arrays(file)
    arrays["table"] = np.array(arrays["table"])
    arrays["table"][3, 2] = number
    save_arrays(file, **arrays)
    seal(copied, f"{ONNX}/table.safetensors")
    with pytest.raises(ModelFolderError, match=r"table\.safetensors: table holds a number .*; export"):
        load_for_prediction(copied)


def test_a_model_without_an_export_is_loaded_with_torch(trained: Path) -> None:
    assert load_for_prediction(trained).network is not None


def test_without_the_runtime_torch_is_used_and_the_user_told(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nlpcapsule.export import prediction

    monkeypatch.setattr(prediction, "has_runtime", lambda: False)
    said: list[str] = []
    assert load_for_prediction(exported, said.append).network is not None
    assert "nlpcapsule[onnx]" in said[0]


def test_an_exported_model_still_loads_in_torch(exported: Path) -> None:
    assert load_model(exported).network is not None


def test_a_damaged_or_missing_export_is_refused(copied: Path) -> None:
    graph = copied / ONNX / "network.onnx"
    damaged = bytearray(graph.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    graph.write_bytes(damaged)
    with pytest.raises(ModelFolderError, match="not as it was written"):
        load_for_prediction(copied)
    graph.unlink()
    with pytest.raises(ModelFolderError, match="missing"):
        load_for_prediction(copied)


def test_saving_a_model_again_removes_its_export(copied: Path) -> None:
    save_model(load_model(copied), copied)
    assert not (copied / ONNX).exists()
    assert load_for_prediction(copied).network is not None


def test_added_files_replace_earlier_ones_and_a_failure_changes_nothing(copied: Path) -> None:
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}

    def fail(place: Path) -> None:
        (place / "half").write_text("half")
        raise OSError("disk full")

    with pytest.raises(ModelFolderError, match="disk full"):
        add_files(copied, ONNX, fail)
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before
    weights = "network.onnx.data"
    add_files(copied, ONNX, lambda place: (place / weights).write_text("other"))
    assert {path.name for path in (copied / ONNX).iterdir()} == {weights}
    assert f"{ONNX}/network.onnx" not in checked_files(copied).names
    assert load_for_prediction(copied).network is not None


def test_lexical_models_have_nothing_to_export(tmp_path: Path) -> None:
    classifier = CapsuleClassifier(model="one-vs-rest")
    classifier.fit(TEXTS, [document.labels for document in DOCUMENTS]).save(tmp_path / "model")
    with pytest.raises(ConfigError, match="no network"):
        export_model(tmp_path / "model")


def test_predict_imports_none_of_the_heavy_packages(exported: Path, tmp_path: Path) -> None:
    source = tmp_path / "texts.jsonl"
    source.write_text(json.dumps({"text": TEXTS[0]}) + "\n", encoding="utf-8")
    program = f"""
import sys
sys.argv = ["nlpcapsule", "predict", {str(exported)!r}, {str(source)!r}, "--quiet"]
from nlpcapsule.cli.app import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    row, imported = done.stdout.splitlines()
    assert json.loads(row)["labels"]
    assert imported == "[]"


def test_an_export_is_added_to_the_version_that_is_loaded(trained: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trained, tmp_path / "model"))
    write_version(load_model(folder), folder)
    export_model(folder)
    assert not (folder / ONNX).exists()
    assert isinstance(load_for_prediction(folder).scorer.scorer, OnnxScorer)


def test_explanations_of_an_exported_model_show_capsules(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.jsonl").write_text(json.dumps({"text": TEXTS[0]}) + "\n", encoding="utf-8")
    done = run_command("predict", copied, tmp_path / "letter.jsonl", "--explain", "--top-k", 1, "--quiet")
    assert done.code == 0, done.err
    assert json.loads(done.out)["explanation"]["labels"][0]["capsules"]


def test_an_inspection_inside_the_folder_does_not_spoil_the_model(trained: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trained, tmp_path / "model"))
    (tmp_path / "letters.jsonl").write_text(
        "".join(json.dumps({"text": row.text, "labels": row.labels}) + "\n" for row in DOCUMENTS[:4]),
        encoding="utf-8",
    )
    done = run_command("inspect", folder, tmp_path / "letters.jsonl")
    assert done.code == 0, done.err
    assert (folder / "inspection").is_dir()
    load_model(folder)


@pytest.mark.parametrize("name", ["evil.bin", "lexical/evil.bin", "onnx/evil.so", "nominator.safetensors"])
def test_a_listed_file_that_an_exported_model_does_not_read_is_refused(copied: Path, name: str) -> None:
    (copied / name).write_bytes(b"x")
    seal(copied, name)
    for load in (load_for_prediction, load_model):
        with pytest.raises(ModelFolderError):
            load(copied)


def test_an_exported_answer_model_is_refused(copied: Path) -> None:
    edit(copied, "config.json", lambda config: config.update(task="answers"))
    with pytest.raises(ModelFolderError, match="only label models"):
        load_for_prediction(copied)


def test_an_exported_network_that_fails_later_is_one_message(copied: Path, tmp_path: Path) -> None:
    """A graph that knows the tokens that are tried when it is loaded, and no others."""
    onnx = pytest.importorskip("onnx")
    node, kind = onnx.helper.make_node, onnx.TensorProto
    table = onnx.numpy_helper.from_array(np.zeros((40, 1), np.float32), "table")
    nodes = [
        node("Gather", ["table", "tokens"], ["rows"]),
        node("ReduceSum", ["rows"], ["sum"], keepdims=0),
        node("Cast", ["candidates"], ["numbers"], to=kind.FLOAT),
        node("Add", ["numbers", "sum"], ["logits"]),
    ]
    inputs = [
        onnx.helper.make_tensor_value_info(name, kind.INT64, [1, None]) for name in ("tokens", "candidates")
    ]
    outputs = [onnx.helper.make_tensor_value_info("logits", kind.FLOAT, None)]
    graph = onnx.helper.make_graph(nodes, "graph", inputs, outputs, initializer=[table])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    add_files(copied, ONNX, lambda place: onnx.save(model, place / "network.onnx"))
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS), encoding="utf-8")
    assert_refused(run_command("predict", copied, texts), "the exported network failed: .*out of data bounds")
