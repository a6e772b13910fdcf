"""Linear heads go all the way: tokenised, trained, joined with words, saved and opened again."""

import json

import numpy as np
import pytest
from encoder_runs import fitted_labels, planted_documents, right_at_first
from safetensors.torch import load_file
from tiny_transformer import CLS, SEP, SIZE, write_transformer
from toy_task import PowerCutError

from nlpcapsule.baselines.embedding_linear import EmbeddingLinear
from nlpcapsule.config import Config
from nlpcapsule.model_folder import load_model
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.training.label_task import LabelTask

ON_A_TRANSFORMER = ["transformer-linear", "embedding-linear"]
MODELS = ["convolution-linear", *ON_A_TRANSFORMER]
SHARED = {
    "max_tokens": 40,
    "min_count": 1,
    "batch_size": 8,
    "epochs": 1,
    "weight_decay": 0.0,
    "dropout": 0.0,
}
OWN = {
    "convolution-linear": {"embedding_size": 8, "filters": 8},
    "transformer-linear": {"window": 12, "encoder_learning_rate": 5e-3},
    "embedding-linear": {"window": 12},
}
every_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    return write_transformer(tmp_path_factory.mktemp("bert"))


def small_config(model, transformer, **settings):
    encoder = {"encoder": str(transformer)} if model in ON_A_TRANSFORMER else {}
    if "lexical" in settings:
        settings = {"network": model, **settings}
    chosen = {**SHARED, **OWN[model], **encoder, **settings}
    return Config.build("labels", "hybrid" if "lexical" in settings else model, overrides=chosen)


def same_rankings(model, folder, texts):
    opened, tokens = load_model(folder), model.encode(texts)
    before, after = (each.rank_tokens(tokens, 4) for each in (model, opened))
    assert np.array_equal(before.labels, after.labels)
    np.testing.assert_allclose(before.scores, after.scores, atol=1e-6)
    return opened


@every_model
def test_it_learns_the_word_that_decides_and_is_saved(model, transformer, tmp_path):
    settings = {"epochs": 25 if model == "embedding-linear" else 15, "learning_rate": 0.02}
    documents, unseen = planted_documents(150, words=2), planted_documents(40, words=2, seed=2)
    fitted = fitted_labels(tmp_path / "model", small_config(model, transformer, **settings), documents)
    assert right_at_first(fitted, unseen) > 0.85
    same_rankings(fitted, tmp_path / "model", [row.text for row in unseen])


@every_model
def test_it_is_joined_with_words_and_saved(model, transformer, tmp_path):
    documents = planted_documents(120, words=8)
    config = small_config(model, transformer, lexical="one-vs-rest", candidates=3)
    fitted = fitted_labels(tmp_path / "model", config, documents)
    assert isinstance(fitted.scorer, HybridScorer)
    assert right_at_first(fitted, planted_documents(40, words=8, seed=2)) == 1, "the words alone tell"
    opened = same_rankings(fitted, tmp_path / "model", [row.text for row in documents[:9]])
    ranked = opened.rank_tokens(opened.encode([documents[0].text]), 10)
    assert ranked.labels.shape == (1, 3), "only candidates are ranked"


@every_model
def test_a_kim_cnn_may_nominate_its_candidates(model, transformer, tmp_path):
    config = small_config(model, transformer, candidates=2)
    fitted = fitted_labels(tmp_path / "model", config, planted_documents(40, words=8))
    opened = same_rankings(fitted, tmp_path / "model", ["there batan", "thus"])
    assert opened.rank_tokens(opened.encode(["there batan"]), 10).labels.shape == (1, 2)


@pytest.mark.parametrize("model", ON_A_TRANSFORMER)
def test_texts_are_cut_into_the_transformers_own_tokens(model, transformer, tmp_path):
    config = small_config(model, transformer, vectors="not read.txt")
    fitted = fitted_labels(tmp_path / "model", config, planted_documents(10, words=5))
    (row,) = fitted.encode(["there"])
    assert [row[0], row[-1]] == [CLS, SEP]
    assert load_model(tmp_path / "model", "cpu").network.encoder is not None


def test_embedding_linear_leaves_its_transformer_as_it_was_pretrained(transformer, tmp_path):
    config = small_config("embedding-linear", transformer, epochs=3, learning_rate=0.1)
    fitted_labels(tmp_path / "model", config, planted_documents(30, words=5))
    saved = load_file(tmp_path / "model" / "network.safetensors")
    first = load_file(transformer / "model.safetensors")
    kept = {name.removeprefix("encoder.transformer."): saved[name] for name in saved if "encoder" in name}
    assert kept.keys() == {name for name in first if not name.startswith("pooler")}
    assert all(kept[name].equal(first[name]) for name in kept)
    assert saved["head.output.weight"].shape[1] == SIZE


@pytest.mark.parametrize("epochs", [1, 5])
def test_embedding_linear_embeds_each_document_once_however_many_epochs(
    epochs, transformer, tmp_path, monkeypatch
):
    embed, rows = EmbeddingLinear.embed, []

    def counted(network, tokens):
        rows.append(len(tokens))
        return embed(network, tokens)

    monkeypatch.setattr(EmbeddingLinear, "embed", counted)
    config = small_config("embedding-linear", transformer, epochs=epochs, dev_fraction=0.25)
    fitted_labels(tmp_path / "model", config, planted_documents(40, words=5))
    assert sum(rows) == 40 + 10, "all of them, and the held-out ones again to tune the threshold"


def test_embedding_linear_selects_by_what_its_whole_network_reaches(transformer, tmp_path):
    """What an epoch says of the stored embeddings is what the model gives for the texts."""
    config = small_config("embedding-linear", transformer, dev_fraction=0.25, learning_rate=0.02, epochs=4)
    documents = [*planted_documents(40, words=6), *planted_documents(40, words=3, seed=2)]
    fitted = fitted_labels(tmp_path / "model", config, documents)
    lines = (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()
    best = max(json.loads(line)["nDCG@5"] for line in lines)
    assert fitted.facts.dev["nDCG@5"] == pytest.approx(best, abs=1e-6)


def test_embedding_linear_goes_on_where_it_was_stopped(transformer, tmp_path, monkeypatch):
    config = small_config("embedding-linear", transformer, epochs=3, checkpoint_epochs=0.01, dropout=0.2)
    documents, weights = planted_documents(40, words=5), "network.safetensors"
    fitted_labels(tmp_path / "whole", config, documents)
    loss, done = LabelTask.loss, []

    def cut(*args):
        done.append(1)
        if len(done) == 8:
            raise PowerCutError
        return loss(*args)

    with monkeypatch.context() as patched:
        patched.setattr(LabelTask, "loss", cut)
        with pytest.raises(PowerCutError):
            fitted_labels(tmp_path / "cut", config, documents)
    fitted_labels(tmp_path / "cut", config, documents, resume=True)
    assert (tmp_path / "cut" / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()
