"""Labels that are known by name: trained on documents of some, and found in documents of others."""

import json
import random
import re

import numpy as np
import pytest
from tiny_runs import tiny_config

from nlpcapsule.data.documents import Document
from nlpcapsule.model_folder import load_model
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

FILLERS = [f"filler{number}" for number in range(14)]
SUBJECTS = [
    "cheese",
    "wheat",
    "sugar",
    "olive",
    "tobacco",
    "cotton",
    "honey",
    "banana",
    "rice",
    "beef",
    "milk",
]
SUBJECTS += ["silk"]
SEEN = SUBJECTS[:8]


def documents(count, subjects, seed):
    """Fillers and the word of one subject; the label is the subject's number."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        subject = draw.choice(subjects)
        words = [*draw.choices(FILLERS, k=12), subject]
        draw.shuffle(words)
        made.append(Document(" ".join(words), (f"c{SUBJECTS.index(subject)}",)))
    return made


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    path = tmp_path_factory.mktemp("names") / "names.json"
    path.write_text(json.dumps({f"c{number}": word for number, word in enumerate(SUBJECTS)}))
    return str(path)


def fit(folder, names, **settings):
    config = tiny_config(**{"text.label_names": names, **settings})
    data = prepare_labels(documents(160, SEEN, 1), documents(120, SUBJECTS, 2), config)
    return fit_labels(data, config, RunFolder(folder), TrainingProgress(quiet=True)), data


@pytest.fixture(scope="module")
def joined(names, tmp_path_factory):
    folder = tmp_path_factory.mktemp("joined") / "model"
    model, data = fit(folder, names, lexical="one-vs-rest", candidates=10)
    return model, data, folder


def unseen_documents():
    return documents(60, SUBJECTS[8:], 3)


def found_at_first(model, asked):
    ranked = model.rank([document.text for document in asked], top_k=1)
    return np.mean([best[0].label in row.labels for best, row in zip(ranked, asked, strict=True)])


def test_labels_that_are_named_alone_stand_behind_the_others(joined):
    _, data, _ = joined
    labels = data.labels
    assert set(labels.ids[:8]) == {f"c{number}" for number in range(8)}
    assert labels.ids[8:] == ["c8", "c9", "c10", "c11"]
    assert labels.counts[8:].tolist() == [0, 0, 0, 0]
    assert labels.names[8:] == SUBJECTS[8:]
    assert (data.dev.labels.values >= 8).any()
    assert data.dev.labels.values.max() < 12


def test_a_label_without_examples_is_found_by_its_name(joined):
    model, _, _ = joined
    assert found_at_first(model, unseen_documents()) > 0.9
    assert found_at_first(model, documents(60, SEEN, 4)) > 0.9
    assert model.facts.dev["recall@5 (0 examples)"] > 0.9


def test_without_names_it_cannot_be_found(tmp_path):
    model, _ = fit(tmp_path / "model", None, lexical="one-vs-rest", candidates=10)
    assert found_at_first(model, unseen_documents()) == 0
    assert model.facts.dev["recall@5 (0 examples)"] == 0


def test_some_candidates_are_labels_without_examples(joined):
    model, data, _ = joined
    labels, log_odds = model.scorer.lexical.top(data.dev.tokens, 10)
    assert ((labels >= 8).sum(axis=1) == 1).all()
    assert (labels[:, -1] >= 8).all()
    assert np.array_equal(log_odds[:, -1], log_odds.min(axis=1))


def test_what_is_saved_ranks_the_same_when_opened(joined):
    model, data, folder = joined
    opened = load_model(folder)
    before, after = (each.rank_tokens(data.dev.tokens, 5) for each in (model, opened))
    assert np.array_equal(before.labels, after.labels)
    assert np.allclose(before.scores, after.scores, atol=1e-6)
    assert len(opened.scorer.fusion.weights) == 26
    best = opened.rank(["honey"], top_k=1)[0][0]
    assert (best.label, best.name) == ("c6", "honey")


@pytest.mark.parametrize("negatives", ["all", "uniform", "batch", "hard"])
def test_a_label_without_examples_is_never_a_negative(names, negatives):
    config = tiny_config(
        **{"text.label_names": names, "negatives": negatives, "negative_count": 5, "lexical": "one-vs-rest"}
    )
    data = prepare_labels(documents(40, SEEN, 1), documents(10, SUBJECTS, 2), config)
    candidates = np.tile(np.arange(12)[::-1], (40, 1))  # those without examples first
    task = LabelTask(config, data.train, data.dev, data.labels, train_candidates=candidates)
    rows = np.arange(16)
    outputs = task.outputs(rows, (1, 0))
    assert outputs.ids.max() < 8
    ids = outputs.ids if outputs.ids.ndim == 2 else np.tile(outputs.ids, (16, 1))
    for row, own, targets in zip(rows, ids, outputs.targets, strict=True):
        assert own[targets == 1].tolist() == data.train.labels[row].tolist()
    if negatives in ("uniform", "hard"):
        assert (outputs.targets == 0).sum(axis=1).tolist() == [5] * 16


def test_training_leaves_labels_without_examples_to_their_names(names, tmp_path):
    model, _ = fit(tmp_path / "model", names)
    network = model.network
    assert network.labels.slot[8:].abs().max() == 0
    assert network.labels.slot[:8].abs().max() > 0
    assert (network.labels.bias[8:] == network.labels.bias[8]).all()
    assert network.names.has_examples.tolist() == [True] * 8 + [False] * 4
    assert sorted(model.rank_tokens(model.encode(["milk"]), 50).labels[0].tolist()) == list(range(12))


def test_words_of_names_are_known_even_where_no_training_document_has_them(joined):
    _, data, _ = joined
    assert set(SUBJECTS) <= set(data.tokenizer.vocabulary)


def test_a_stopped_training_goes_on_to_the_same_weights(names, tmp_path, monkeypatch):
    whole, data = fit(tmp_path / "whole", names, epochs=2, ema_decay=0.9)
    config = whole.config
    loss, calls = LabelTask.loss, []

    def stopping(self, *arguments):
        calls.append(1)
        if len(calls) == 13:  # in the second epoch of ten batches
            raise KeyboardInterrupt
        return loss(self, *arguments)

    monkeypatch.setattr(LabelTask, "loss", stopping)
    with pytest.raises(KeyboardInterrupt):
        fit_labels(data, config, RunFolder(tmp_path / "stopped"), TrainingProgress(quiet=True))
    resumed = fit_labels(data, config, RunFolder(tmp_path / "stopped", True), TrainingProgress(quiet=True))
    assert calls[13:]
    for name, tensor in whole.network.state_dict().items():
        assert np.array_equal(tensor.numpy(), resumed.network.state_dict()[name].numpy()), name


@pytest.mark.parametrize("settings", [{"negatives": "hard"}, {"candidates": 5}], ids=str)
def test_where_words_cannot_be_weighed_all_labels_are_routed_to(settings, names, tmp_path):
    config = tiny_config(**{"text.label_names": names, "lexical": "auto", **settings})
    data = prepare_labels(documents(4, SEEN, 1), None, config)
    assert data.dev is None
    told, progress = [], TrainingProgress(quiet=True)
    progress.say = told.append
    fit_labels(data, config, RunFolder(tmp_path / "model"), progress)
    assert any("routes to all labels" in line for line in told)
    model = load_model(tmp_path / "model")
    assert (model.config.inference.candidates, model.config.training.negatives) == (0, "all")
    assert len(model.rank(["filler1 silk"], top_k=50)[0]) == len(SUBJECTS)


def test_a_run_does_not_go_on_with_other_names(names, tmp_path):
    other = tmp_path / "names.json"
    other.write_text(json.dumps({f"c{number}": word for number, word in enumerate(reversed(SUBJECTS))}))
    prints = set()
    for path in (names, str(other)):
        config = tiny_config(**{"text.label_names": path})
        prints.add(prepare_labels(documents(40, SEEN, 1), None, config).fingerprint())
    assert len(prints) == 2


def test_it_is_said_how_many_labels_have_a_name(names, tmp_path):
    other = tmp_path / "other.json"
    other.write_text('{"x1": "cheese"}')
    for path, told in ((names, "8 of 8 training labels have a name"), (str(other), "0 of 8 .*right file")):
        data = prepare_labels(documents(40, SEEN, 1), None, tiny_config(**{"text.label_names": path}))
        assert any(re.search(told, note) for note in data.notes)
