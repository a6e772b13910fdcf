"""From documents to a trained label model, with every loss, every choice of negatives, and word vectors."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_runs import fit_documents, some_documents, tiny_config

from nlpcapsule.data.documents import Document
from nlpcapsule.errors import ConfigError, DataError
from nlpcapsule.model_folder import load_model, weights_of
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.paper import PaperCapsules, PaperNetwork
from nlpcapsule.scoring.network_scorer import NetworkScorer
from nlpcapsule.scoring.nominated_scorer import NominatedScorer
from nlpcapsule.training import fit_labels as module
from nlpcapsule.training import label_task
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.preparation import hold_out
from nlpcapsule.training.prepared_labels import prepare_labels


def losses(folder):
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["loss"] for line in lines]


@pytest.mark.parametrize("model", ["label-query", "paper", "official", "kim-cnn", "xml-cnn"])
def test_every_network_learns_something(tmp_path, model):
    fit_documents(tmp_path, tiny_config(model=model, epochs=3, learning_rate=0.01))
    first, *_, last = losses(tmp_path)
    assert last < first


@pytest.mark.parametrize("negatives", ["all", "uniform", "batch", "hard"])
@pytest.mark.parametrize("model", ["label-query", "paper"])
def test_every_choice_of_negatives_trains_and_ranks(tmp_path, model, negatives):
    config = tiny_config(model=model, negatives=negatives, negative_count=6, epochs=2, learning_rate=0.01)
    trained = fit_documents(tmp_path, config)
    first, last = losses(tmp_path)
    assert last < first
    # A nominator that served to find hard negatives is not needed to rank.
    assert type(trained.scorer) is NetworkScorer
    ranked = trained.rank([some_documents(1)[0].text], top_k=3)[0]
    assert len(ranked) == 3
    assert [row.score for row in ranked] == sorted((row.score for row in ranked), reverse=True)


@pytest.mark.parametrize("loss", ["bce", "margin", "spread"])
def test_every_loss_trains(tmp_path, loss):
    fit_documents(tmp_path, tiny_config(loss=loss, epochs=2, learning_rate=0.01))
    first, last = losses(tmp_path)
    assert 0 < last < first


@pytest.mark.parametrize("model", ["label-query", "paper", "official"])
def test_with_candidates_only_nominated_labels_are_ranked(tmp_path, model):
    trained = fit_documents(tmp_path, tiny_config(model=model, candidates=5))
    assert isinstance(trained.scorer, NominatedScorer)
    texts = [document.text for document in some_documents(4, "dev")]
    tokens = trained.encode(texts)
    assert trained.rank_tokens(tokens, 50).labels.shape == (4, 5)
    assert (tmp_path / "nominator.safetensors").exists()
    assert (tmp_path / "nominator-metrics.jsonl").exists()
    assert load_model(tmp_path).rank(texts) == trained.rank(texts)


def test_as_many_candidates_as_labels_need_no_nominator(tmp_path):
    trained = fit_documents(tmp_path, tiny_config(candidates=10_000))
    assert type(trained.scorer) is NetworkScorer


def test_bf16_trains_on_a_cpu(tmp_path):
    trained = fit_documents(tmp_path, tiny_config(precision="bf16", epochs=2, learning_rate=0.01))
    first, last = losses(tmp_path)
    assert last < first
    assert all(tensor.dtype == torch.float32 for tensor in weights_of(trained.network).values())


def test_same_seed_same_model_other_seed_other_model(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fit_documents(tmp_path / name, tiny_config(seed=seed, negatives="uniform", negative_count=5))
    first, second, other = ((tmp_path / name / "network.safetensors").read_bytes() for name in "abc")
    assert first == second
    assert first != other


def test_a_dev_part_selects_the_epoch_and_sets_the_threshold(tmp_path):
    trained = fit_documents(tmp_path, tiny_config(epochs=2, learning_rate=0.01))
    assert trained.facts.dev["documents"] == 16
    assert 0 <= trained.facts.threshold <= 1
    lines = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert max(json.loads(line)["nDCG@5"] for line in lines) == trained.facts.dev["nDCG@5"]


def test_without_a_dev_part_the_threshold_is_one_half(tmp_path):
    facts = fit_documents(tmp_path, tiny_config(), dev=0).facts
    assert facts.threshold == 0.5
    assert facts.dev is None


@pytest.mark.parametrize(("given", "used"), [(12, 12), (5, 8)])
def test_word_vectors_start_the_embedding_and_the_larger_size_wins(tmp_path, given, used):
    documents = some_documents(64)
    words = sorted(
        {word for document in documents for word in document.text.lower().split() if word.isalpha()}
    )
    generator = np.random.default_rng(0)
    vectors = tmp_path / "vectors.txt"
    rows = (" ".join([word, *(f"{x:.3f}" for x in generator.normal(size=given))]) for word in words)
    vectors.write_text("\n".join(rows) + "\n", encoding="utf-8")
    config = tiny_config(vectors=str(vectors), candidates=5, model="paper")
    data = prepare_labels(documents, None, config)
    assert data.vectors.shape == (data.tokenizer.size, given)
    assert any("words found" in note for note in data.notes)
    trained = fit_documents(tmp_path / "model", config)
    assert trained.facts.embedding_size == used
    nominator = trained.scorer.nominator.network
    assert trained.network.document.embedding.size == nominator.encoder.name_size == used
    vectors.unlink()  # a model folder needs nothing beside itself
    texts = [document.text for document in documents[:3]]
    assert load_model(tmp_path / "model").rank(texts) == trained.rank(texts)


def test_paper_starts_from_its_training_documents(tmp_path, monkeypatch):
    seen = []
    start, train = PaperCapsules.start_from, module.train_network

    def noted_start(network, documents):
        seen.append(("start", documents))
        start(network, documents)

    def noted_training(network, *rest):
        if isinstance(network, PaperNetwork):
            seen.append(("training", rest[0].train.tokens))
        return train(network, *rest)

    monkeypatch.setattr(PaperCapsules, "start_from", noted_start)
    monkeypatch.setattr(module, "train_network", noted_training)
    fit_documents(tmp_path, tiny_config(model="paper", candidates=5))
    assert [what for what, _ in seen] == ["start", "training"]
    assert seen[0][1] is seen[1][1]


def test_a_given_tokenizer_is_used_as_it_is(tmp_path):
    documents = some_documents(64)
    first = prepare_labels(documents, None, tiny_config(vocabulary_size=50))
    (tmp_path / "tokenizer.json").write_text(first.tokenizer.to_json(), encoding="utf-8")
    config = tiny_config(tokenizer=str(tmp_path / "tokenizer.json"))
    again = prepare_labels(documents, None, config)
    assert again.tokenizer.size == first.tokenizer.size
    assert again.fingerprint() == first.fingerprint()


def test_dev_fraction_holds_documents_out():
    config = tiny_config(dev_fraction=0.25)
    data = prepare_labels(some_documents(40), None, config)
    assert (len(data.train), len(data.dev)) == (30, 10)
    assert prepare_labels(some_documents(40), None, config).fingerprint() == data.fingerprint()


def test_a_threshold_for_something_is_not_left_untuned_without_a_word():
    asked = {"threshold_for": 0.8}
    with pytest.raises(ConfigError, match=r"there are none: give --dev data, or set training\.dev_fraction"):
        prepare_labels(some_documents(40), None, tiny_config(**asked))
    assert prepare_labels(some_documents(40), some_documents(9), tiny_config(**asked)).dev is not None


def test_holding_out_splits_without_loss_and_by_seed():
    kept, held = hold_out(range(20), 0.2, seed=1)
    assert sorted(kept + held) == list(range(20))
    assert (len(held), held, kept) == (4, sorted(held), sorted(kept))
    assert hold_out(range(20), 0.2, seed=2)[1] != held


def test_one_document_is_too_few_to_hold_some_out():
    with pytest.raises(DataError, match="1 rows are too few to hold 50% of them out"):
        hold_out(["only"], 0.5, seed=1)


def test_unknown_labels_of_dev_are_noted():
    train = some_documents(30)
    dev = [train[3], Document("something else entirely", ("never heard of",))]
    notes = " ".join(prepare_labels(train, dev, tiny_config()).notes)
    assert "2 dev documents; 1 of their" in notes


def test_documents_without_labels_are_trained_on(tmp_path):
    documents = [
        replace(row, labels=()) if index % 4 == 0 else row for index, row in enumerate(some_documents(32))
    ]
    data = prepare_labels(documents, None, tiny_config())
    assert "(8 without labels)" in data.notes[0]
    for negatives in ("all", "uniform", "batch"):
        task = LabelTask(tiny_config(negatives=negatives), data.train, None, data.labels)
        outputs = task.outputs(np.array([0, 4]), (1, 0, 0, 0))
        assert outputs.targets.sum() == 0
        assert outputs.targets.shape[1] > 0


def test_the_sampled_negatives_depend_on_the_step_alone():
    data = prepare_labels(some_documents(32), None, tiny_config())
    task = LabelTask(tiny_config(negatives="uniform", negative_count=4), data.train, None, data.labels)
    rows = np.arange(5)
    first, again, later = (task.outputs(rows, (1, 0, step, 0)).ids for step in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, later)


def test_epochs_are_compared_on_a_fixed_sample_of_many_dev_documents(monkeypatch):
    config = tiny_config()
    data = prepare_labels(some_documents(64), some_documents(40, "dev"), config)
    network = build_network(config, data.tokenizer.size, label_count=len(data.labels)).eval()
    task = LabelTask(config, data.train, data.dev, data.labels)
    ranked = []
    score = NetworkScorer.score
    monkeypatch.setattr(
        NetworkScorer,
        "score",
        lambda self, tokens, *rest: ranked.append(tokens) or score(self, tokens, *rest),
    )

    def seen() -> list[list[int]]:
        ranked.clear()
        task.dev_metrics(network)
        return [row.tolist() for tokens in ranked for row in tokens]

    assert len(seen()) == 40
    monkeypatch.setattr(label_task, "MOST_DEV_DOCUMENTS", 15)
    sample = seen()
    assert len(sample) == 15
    assert seen() == sample, "the same in every epoch"
