"""Lexical systems go through training, model folder, ranking and evaluation like networks."""

import json

import numpy as np
import pytest
from tiny_runs import some_documents

from nlpcapsule.config import Config
from nlpcapsule.errors import ModelFolderError, NlpCapsuleError
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

# A setting that keeps each system small, and the library it stands on.
SYSTEMS = {
    "one-vs-rest": ({}, "sklearn"),
    "omikuji": ({"trees": 1}, "omikuji"),
    "fast-xml": ({"trees": 2}, "numba"),
    "pd-sparse": ({"model.epochs": 3}, "numba"),
    "fasttext": ({"model.epochs": 5, "size": 16}, "fasttext"),
}
every_system = pytest.mark.parametrize("name", list(SYSTEMS))


def fit(name, folder, resume=False):
    settings, library = SYSTEMS[name]
    pytest.importorskip(library)
    config = Config.build("labels", name, overrides=settings)
    data = prepare_labels(some_documents(80), some_documents(16, "dev"), config)
    return fit_labels(data, config, RunFolder(folder, resume), TrainingProgress(quiet=True))


@every_system
def test_a_fitted_system_is_saved_opened_and_ranks_the_same(name, tmp_path):
    model = fit(name, tmp_path / "model")
    opened = load_model(tmp_path / "model")
    texts = [document.text for document in some_documents(6, "dev")]
    assert opened.rank(texts, top_k=3) == model.rank(texts, top_k=3)
    assert opened.facts == model.facts
    assert not (tmp_path / "model" / "checkpoint").exists()
    assert all(0 <= row.score <= 1 for ranked in opened.rank(texts) for row in ranked)


@every_system
def test_dev_figures_and_threshold_are_those_of_the_opened_model(name, tmp_path):
    model = fit(name, tmp_path / "model")
    opened = load_model(tmp_path / "model")
    config = opened.config
    dev = prepare_labels(some_documents(80), some_documents(16, "dev"), config).dev
    assert opened.evaluate(dev) == pytest.approx(model.facts.dev, nan_ok=True)
    assert 0 <= model.facts.threshold <= 1


@every_system
def test_every_file_of_the_system_is_vouched_for(name, tmp_path):
    fit(name, tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())["sha256"]
    written = sorted((tmp_path / "model" / "lexical").rglob("*"))
    files = [path.relative_to(tmp_path / "model").as_posix() for path in written if path.is_file()]
    assert files
    assert set(files) == {file for file in manifest if file.startswith("lexical/")}
    damaged = tmp_path / "model" / files[0]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"!")
    with pytest.raises(ModelFolderError, match="not as it was written"):
        load_model(tmp_path / "model")


def test_saving_over_another_system_leaves_none_of_its_files(tmp_path):
    model = fit("one-vs-rest", tmp_path / "model")
    left_over = tmp_path / "model" / "lexical" / "tree" / "left-over"
    left_over.parent.mkdir()
    left_over.write_text("of another system")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    manifest["sha256"]["lexical/tree/left-over"] = "0"
    (tmp_path / "model" / "manifest.json").write_text(json.dumps(manifest))
    save_model(model, tmp_path / "model")
    assert not left_over.parent.exists()
    load_model(tmp_path / "model")


def test_a_stopped_training_goes_on_where_it_was(tmp_path, monkeypatch):
    whole = fit("one-vs-rest", tmp_path / "whole")

    class StoppedError(Exception):
        pass

    def stop_soon(self, done, total):
        if done == total // 2:
            raise StoppedError

    with monkeypatch.context() as patched:
        patched.setattr(TrainingProgress, "parts", stop_soon)
        with pytest.raises(StoppedError):
            fit("one-vs-rest", tmp_path / "model")
    kept = len(list((tmp_path / "model" / "checkpoint" / "lexical").rglob("*.safetensors")))
    assert kept > 0
    resumed = fit("one-vs-rest", tmp_path / "model", resume=True)
    assert np.array_equal(resumed.scorer.ranker.bias, whole.scorer.ranker.bias)
    assert (resumed.scorer.ranker.weights != whole.scorer.ranker.weights).nnz == 0


def test_a_lexical_system_has_no_routing_to_inspect(tmp_path):
    from nlpcapsule.report.routing import inspect_routing

    model = fit("one-vs-rest", tmp_path / "model")
    with pytest.raises(NlpCapsuleError, match="no routing to inspect"):
        inspect_routing(model, some_documents(3))
