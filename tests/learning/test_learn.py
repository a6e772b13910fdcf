"""`learn`: new labels are found afterwards, everything else stays as it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from learned_models import HELD_BACK, later_documents, new_documents, old_documents, train_small_hybrid

from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import DataError
from nlpcapsule.explain import explain
from nlpcapsule.learning import network_rows
from nlpcapsule.learning.examples import Example, merge_examples, read_examples
from nlpcapsule.learning.learn import Learned, learn
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.progress import TrainingProgress
from tests.cli.run_command import assert_refused, run_command


def examples(count: int = 5) -> list[Example]:
    return [Example(letter.text, letter.labels) for letter in new_documents(count)]


@pytest.fixture(scope="module")
def learned(trained: Path) -> Learned:
    model = load_model(trained)
    assert isinstance(model, LabelModel)
    return learn(model, examples())


def texts_with(label: str) -> list[str]:
    return [letter.text for letter in later_documents() if label in letter.labels]


def recall(model: LabelModel, label: str, top_k: int = 3) -> float:
    ranked = model.rank(texts_with(label), top_k)
    return float(np.mean([label in [row.label for row in rows] for rows in ranked]))


def test_a_new_label_is_found_in_documents_that_were_not_shown(learned: Learned) -> None:
    assert learned.new_labels == (HELD_BACK,)
    assert learned.added == 5
    assert recall(learned.model, HELD_BACK) > 0.7


def test_a_label_with_one_document_counts_as_the_rarest_of_before(model: LabelModel, tmp_path: Path) -> None:
    """Fusion weights do not hold for rarer labels: they would rank one with a single document first."""
    learned = learn(model, examples(1)).model
    label, rarest = learned.labels.ids.index(HELD_BACK), model.scorer.frequency.min()  # type: ignore[union-attr]
    save_model(learned, tmp_path / "model")
    for changed in (learned, load_model(tmp_path / "model")):
        scorer = changed.scorer  # type: ignore[union-attr]
        assert scorer.frequency[label] < rarest
        candidates = np.arange(len(learned.labels))[None]
        tokens = learned.encode([later_documents()[0].text])
        features, _ = scorer.features(tokens, candidates, np.zeros(candidates.shape))
        assert features.frequency.min() == pytest.approx(rarest)
        assert features.frequency[0, label] == pytest.approx(rarest)
    again = learn(learned, [Example("lamp1 glass2", ("oak",))]).model
    assert again.scorer.fusion.rarest == learned.scorer.fusion.rarest  # type: ignore[union-attr]


def test_the_network_alone_tells_the_label_from_others(learned: Learned) -> None:
    network = learned.model.scorer.scorer  # type: ignore[union-attr]
    label = learned.model.labels.ids.index(HELD_BACK)
    own, other = (
        network.score(learned.model.encode([text.text for text in later_documents() if has(text.labels)]))
        for has in (lambda labels: HELD_BACK in labels, lambda labels: HELD_BACK not in labels)
    )
    assert own.log_odds[:, label].mean() > other.log_odds[:, label].mean() + 0.3


def test_rows_of_other_labels_and_shared_weights_are_unchanged(learned: Learned, model: LabelModel) -> None:
    before, after = model.network, learned.model.network
    assert before is not None
    assert after is not None
    old = {name: number for number, name in enumerate(model.labels.ids)}
    places = [(number, old[name]) for number, name in enumerate(learned.model.labels.ids) if name in old]
    refitted = {learned.model.labels.ids.index(name) for name in learned.refitted}
    kept = [(new, was) for new, was in places if new not in refitted]
    assert len(kept) > len(model.labels) / 2
    new, was = map(list, zip(*kept, strict=True))
    weights = after.state_dict()
    for name, tensor in before.state_dict().items():
        if name.startswith("labels."):
            assert (weights[name][new] == tensor[was]).all(), name
        else:
            assert (weights[name] == tensor).all(), name


def test_the_model_that_learns_is_not_changed(trained: Path, model: LabelModel) -> None:
    learn(model, examples())
    untouched = load_model(trained)
    assert isinstance(untouched, LabelModel)
    assert model.labels.ids == untouched.labels.ids
    assert model.rank(["lamp1 fish2"]) == untouched.rank(["lamp1 fish2"])


def test_old_labels_are_ranked_about_as_well(learned: Learned, model: LabelModel) -> None:
    letters = [letter for letter in later_documents() if HELD_BACK not in letter.labels]
    texts = [letter.text for letter in letters]

    def right(tagger: LabelModel) -> float:
        ranked = tagger.rank(texts, 1)
        return float(
            np.mean([rows[0].label in letter.labels for rows, letter in zip(ranked, letters, strict=True)])
        )

    assert right(learned.model) > right(model) - 0.03


def test_a_learned_model_is_saved_and_loaded(learned: Learned, tmp_path: Path) -> None:
    save_model(learned.model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert isinstance(again, LabelModel)
    texts = texts_with(HELD_BACK)[:5]
    assert again.rank(texts) == learned.model.rank(texts)
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "learned 5 documents (0 of them known before), 1 new label" in card


def test_learning_twice_is_the_same_as_once(trained: Path, learned: Learned, model: LabelModel) -> None:
    again = learn(model, examples()).model
    texts = texts_with(HELD_BACK)[:5]
    assert again.rank(texts) == learned.model.rank(texts), "the same input gives the same model"
    with pytest.raises(DataError, match="nothing to learn"):
        learn(learned.model, examples())


def test_known_documents_get_labels_and_lose_rejected_ones(model: LabelModel) -> None:
    kept = old_documents()
    tokens = {row.tobytes() for row in model.scorer.lexical.neighbours.tokens}  # type: ignore[union-attr]
    letter = next(row for row in kept if model.encode([row.text])[0].tobytes() in tokens and row.labels)
    label = letter.labels[0]
    found = learn(model, [Example(letter.text, ("brand-new",), (label,))])
    assert (found.added, found.updated) == (0, 1)
    assert found.model.facts.training_documents == model.facts.training_documents
    before, after = (
        dict(zip(each.labels.ids, each.labels.counts, strict=True)) for each in (model, found.model)
    )
    assert after[label] == before[label] - 1
    assert after["brand-new"] == 1
    assert set(found.refitted) == {label, "brand-new"}


def test_a_rejected_label_sinks(model: LabelModel) -> None:
    texts = [text.text for text in later_documents()]
    ranked = zip(texts, model.rank(texts, 3), strict=True)
    text, row = next((text, row) for text, rows in ranked for row in rows if 0.1 < row.score < 0.9)
    after = learn(model, [Example(text, (), (row.label,))]).model
    found = {row.label: row.score for row in after.rank([text], len(after.labels))[0]}
    assert found[row.label] < row.score


def test_learned_documents_are_shown_by_their_ids(trained: Path, tmp_path: Path) -> None:
    model = load_model(trained)
    assert isinstance(model, LabelModel)
    letters = new_documents(3)
    found = [Example(letters[0].text, letters[0].labels, (), "letter-17"), *examples(3)[1:]]
    save_model(learn(model, found).model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert isinstance(again, LabelModel)

    def nearest(text: str) -> str:
        return explain(again, text, top_k=1).similar[0].id

    assert nearest(letters[0].text) == "letter-17"
    count = len(again.scorer.lexical.neighbours.tokens)  # type: ignore[union-attr]
    assert nearest(letters[2].text) == f"row {count}", "one without an id is named by its row"
    known = old_documents()[0]
    assert nearest(known.text) == known.id
    later = learn(again, [Example(letters[2].text, ("brand-new",), (), "letter-18")]).model
    assert explain(later, letters[2].text, top_k=1).similar[0].id == "letter-18"


def test_documents_that_do_not_fit_into_memory_are_read_again(
    learned: Learned, model: LabelModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_rows, "_MOST_BYTES", 0)
    texts = texts_with(HELD_BACK)[:5]
    again = learn(model, examples()).model.rank(texts, 3)
    for ours, theirs in zip(again, learned.model.rank(texts, 3), strict=True):
        assert [row.label for row in ours] == [row.label for row in theirs]
        assert [row.score for row in ours] == pytest.approx([row.score for row in theirs], abs=1e-4)


def test_a_model_without_documents_is_refused(model: LabelModel) -> None:
    from dataclasses import replace

    scorer = model.scorer
    lexical = replace(scorer.lexical, neighbours=replace(scorer.lexical.neighbours, tokens=None))  # type: ignore[union-attr]
    older = replace(model, scorer=replace(scorer, lexical=lexical))  # type: ignore[type-var, union-attr]
    with pytest.raises(DataError, match="does not keep its training documents"):
        learn(older, examples())


def test_later_decisions_on_a_document_count() -> None:
    merged = merge_examples(
        [
            Example("a", ("x",), ("y",), "1"),
            Example("b", ("x",)),
            Example("a", ("y",), ("x",), "1"),
            Example("b", ("x",)),
        ]
    )
    assert merged == [Example("a", ("y",), ("x",), "1"), Example("b", ("x",)), Example("b", ("x",))]


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rejected_labels_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "new.jsonl", {"id": 7, "text": "t", "labels": ["x"], "rejected": ["y"]})
    assert read_examples(str(path), ReadOptions(), ReadReport()) == [Example("t", ("x",), ("y",), "7")]
    both = write(tmp_path / "both.jsonl", {"text": "t", "labels": ["x"], "rejected": ["x"]})
    with pytest.raises(DataError, match="line 1: the label 'x' is both accepted and rejected"):
        read_examples(str(both), ReadOptions(), ReadReport())
    table = tmp_path / "new.csv"
    table.write_text("text,labels\nt,x;y\n", encoding="utf-8")
    assert read_examples(str(table), ReadOptions(), ReadReport()) == [Example("t", ("x", "y"))]


def test_the_command_writes_a_version_or_another_folder(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained, folder)
    rows = [{"text": letter.text, "labels": letter.labels} for letter in new_documents()]
    new = write(tmp_path / "new.jsonl", *rows)
    done = run_command("learn", folder, new, "--output", tmp_path / "other")
    assert done.code == 0, done.err
    assert "1 new label" in done.err
    done = run_command("learn", folder, new)
    assert done.err.endswith(f"version 2 of {folder}\n")
    current, other, first = load_model(folder), load_model(tmp_path / "other"), load_model(folder, version=1)
    assert isinstance(current, LabelModel)
    assert isinstance(other, LabelModel)
    assert isinstance(first, LabelModel)
    texts = texts_with(HELD_BACK)[:5]
    assert current.rank(texts) == other.rank(texts)
    assert HELD_BACK not in first.labels
    assert (current.facts.version, other.facts.version) == (2, None)
    assert_refused(run_command("learn", folder, new, "--quiet"), "nothing to learn")


@pytest.mark.parametrize("are_known", [True, False])
def test_unknown_words_are_told(model: LabelModel, are_known: bool) -> None:
    text = old_documents()[0].text if are_known else "qwrt zxcv plmk vbnm"
    told: list[str] = []
    progress = TrainingProgress(quiet=True)
    progress.say = told.append  # type: ignore[method-assign]
    learn(model, [Example(text, ("brand-new",))], progress)
    assert any("of the words are unknown to the model" in line for line in told) != are_known


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("one-vs-rest", "cannot be changed after training"),
        ("label-query", "cannot be changed after training"),
        ("hybrid", "too few documents for a lexical system"),
    ],
)
def test_models_that_keep_no_documents_are_refused(
    kind: str, message: str, tmp_path: Path, make_model: Callable[[str], Path]
) -> None:
    new = write(tmp_path / "new.jsonl", {"text": "t", "labels": ["x"]})
    assert_refused(run_command("learn", make_model(kind), new), message)


@pytest.fixture
def make_model(tmp_path: Path) -> Callable[[str], Path]:
    def make(kind: str) -> Path:
        letters = old_documents()[: 4 if kind == "hybrid" else 60]  # of four, none is held out
        rows = [{"text": letter.text, "labels": letter.labels} for letter in letters]
        train = write(tmp_path / "train.jsonl", *rows)
        small = ["--set=embedding_size=8", "--set=filters=8", "--epochs=1"] if kind != "one-vs-rest" else []
        done = run_command("train", train, "--output", tmp_path / kind, "--model", kind, *small, "-q")
        assert done.code == 0, done.err
        return tmp_path / kind

    return make


def test_a_hybrid_with_trees_learns_too(tmp_path: Path) -> None:
    pytest.importorskip("omikuji")
    model = train_small_hybrid(tmp_path / "model", lexical="omikuji", epochs=4)
    found = learn(model, examples())
    save_model(found.model, tmp_path / "learned")
    assert recall(found.model, HELD_BACK) > 0.7


def test_a_hybrid_with_label_names_learns_named_and_new_labels(tmp_path: Path) -> None:
    names = {
        label: {"name": label.replace("-", " ")} for letter in old_documents() for label in letter.labels
    }
    names[HELD_BACK] = {"name": "a lamp"}  # known by name alone
    (tmp_path / "names.json").write_text(json.dumps(names), encoding="utf-8")
    model = train_small_hybrid(tmp_path / "model", label_names=str(tmp_path / "names.json"), epochs=4)
    assert model.labels.counts[model.labels.ids.index(HELD_BACK)] == 0
    added = Example("Nothing like any of this was ever written.", ("never-named",))
    found = learn(model, [*examples(), added])
    save_model(found.model, tmp_path / "learned")
    again = load_model(tmp_path / "learned")
    assert isinstance(again, LabelModel)
    assert again.labels.names is not None
    titles = dict(zip(again.labels.ids, again.labels.names, strict=True))
    assert titles[HELD_BACK] == "a lamp"
    assert titles["never-named"] == "never-named"
    assert recall(again, HELD_BACK) > 0.7
