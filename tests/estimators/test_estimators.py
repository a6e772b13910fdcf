"""The Python front door: fit, predict, score, save and load, with scikit-learn's manners."""

import doctest
import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

import nlpcapsule
from nlpcapsule import AnswerRanker, CapsuleClassifier
from nlpcapsule.cli.app import app
from nlpcapsule.errors import ConfigError, DataError, ModelFolderError, NlpCapsuleError
from nlpcapsule.estimators import capsule_classifier
from nlpcapsule.scoring.models import RankedAnswer, RankedLabel

TINY = {"embedding_size": 8, "filters": 8, "capsule_size": 8, "condensed": 4}
LABEL_TINY = TINY | {"document_size": 8, "learning_rate": 0.02, "batch_size": 8}
TEXTS = ["rain and wind", "snow and ice and wind", "a goal in the last minute", "the match was lost"] * 6
LABELS = [["weather"], ["weather", "winter"], ["sport"], ["sport"]] * 6
QUESTIONS = ["where is the library", "when does the bakery open"] * 6
CANDIDATES = [
    ["at the old market", "it opens at six", "she likes bread"],
    ["it opens at six", "at the old market"],
] * 6
MARKS = [[1, 0, 0], [1, 0]] * 6


class Column:
    """Rows as a pandas Series with an index of its own holds them: gone through in order, looked up by it."""

    def __init__(self, rows):
        self.rows = list(rows)

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __getitem__(self, key):
        return self.rows[len(self.rows) - 1 - key]


@pytest.fixture(scope="module")
def classifier():
    return CapsuleClassifier(epochs=12, settings=LABEL_TINY).fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def ranker():
    return AnswerRanker(epochs=12, settings=TINY | {"learning_rate": 0.02}).fit(QUESTIONS, CANDIDATES, MARKS)


def test_the_docstrings_examples_work():
    result = doctest.testmod(capsule_classifier)
    assert result.attempted > 0
    assert result.failed == 0


def test_labels_are_predicted_best_first(classifier):
    assert classifier.predict(["wind and rain", "the goal was late"], top_k=1) == [["weather"], ["sport"]]
    ranked = classifier.rank(["wind and rain"], top_k=3)[0]
    assert all(isinstance(row, RankedLabel) for row in ranked)
    assert [row.label for row in ranked] == classifier.predict(["wind and rain"], top_k=3)[0]


def test_labels_that_no_text_has_are_ranked_apart(classifier, tmp_path):
    names = tmp_path / "names.json"
    names.write_text(
        json.dumps({"weather": "rain", "sport": "match", "winter": "snow", "sea": "wind and waves"})
    )
    named = CapsuleClassifier(epochs=2, settings=LABEL_TINY | {"label_names": str(names)}).fit(TEXTS, LABELS)
    assert [[row.label for row in ranked] for ranked in named.rank_unused(["the wind", "a goal"])] == [
        ["sea"]
    ] * 2
    assert classifier.rank_unused(["the wind"]) == [[]]


def test_probabilities_stand_in_the_columns_of_the_classes(classifier):
    probabilities = classifier.predict_proba(TEXTS[:4])
    assert probabilities.shape == (4, 3)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert sorted(classifier.classes_) == ["sport", "weather", "winter"]
    for row, ranked in zip(probabilities, classifier.rank(TEXTS[:4], top_k=3), strict=True):
        by_name = dict(zip(classifier.classes_, row, strict=True))
        assert all(by_name[one.label] == pytest.approx(one.score) for one in ranked)


def test_labels_that_were_not_nominated_have_probability_zero():
    settings = TINY | {"candidates": 2, "negative_count": 1, "max_tokens": 10}
    fitted = CapsuleClassifier("paper", epochs=1, settings=settings).fit(TEXTS, LABELS)
    assert ((fitted.predict_proba(TEXTS[:4]) > 0).sum(axis=1) == 2).all()


def test_the_score_is_precision_at_one(classifier):
    figures = classifier.evaluate(TEXTS, LABELS)
    assert classifier.score(TEXTS, LABELS) == figures["P@1"] == 1.0
    assert figures["documents"] == len(TEXTS)
    assert {"nDCG@5", "micro-F1", "ECE@5"} <= figures.keys()


def test_labels_training_never_saw_count_as_missed(classifier):
    assert classifier.evaluate(["rain", "wind"], [["weather"], ["astronomy"]])["P@1"] == 0.5


def test_a_dev_part_selects_the_epoch():
    fitted = CapsuleClassifier(epochs=2, settings=LABEL_TINY).fit(TEXTS, LABELS, TEXTS[:4], LABELS[:4])
    assert fitted.model_.facts.dev["documents"] == 4


def test_same_seed_same_result_other_seed_other_result():
    first, second, other = (
        CapsuleClassifier(epochs=1, seed=seed, settings=LABEL_TINY)
        .fit(TEXTS, LABELS)
        .predict_proba(TEXTS[:3])
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_fitting_again_begins_anew():
    estimator = CapsuleClassifier(epochs=1, settings=LABEL_TINY)
    first = estimator.fit(TEXTS, LABELS).predict_proba(TEXTS[:3])
    assert np.array_equal(estimator.fit(TEXTS, LABELS).predict_proba(TEXTS[:3]), first)


def test_answers_are_ranked(ranker):
    predicted = ranker.predict(QUESTIONS[:2], CANDIDATES[:2])
    assert [sorted(row) for row in predicted] == [sorted(row) for row in CANDIDATES[:2]]
    ranked = ranker.rank(QUESTIONS[:2], CANDIDATES[:2])
    assert all(isinstance(row, RankedAnswer) for rows in ranked for row in rows)
    assert [[row.answer for row in rows] for rows in ranked] == predicted
    assert ranker.score(QUESTIONS, CANDIDATES, MARKS) == 1.0


def test_rows_belong_together_in_their_order_whatever_index_they_have(classifier, ranker):
    questions, candidates, marks = Column(QUESTIONS[:2]), Column(CANDIDATES[:2]), Column(MARKS[:2])
    assert ranker.score(questions, candidates, marks) == 1.0
    turned = Column([[0, 1, 1], [0, 1]])
    assert ranker.score(questions, candidates, turned) == ranker.score(
        QUESTIONS[:2], CANDIDATES[:2], list(turned)
    )
    fitted = AnswerRanker(epochs=1, settings=TINY).fit(Column(QUESTIONS), Column(CANDIDATES), Column(MARKS))
    expected = AnswerRanker(epochs=1, settings=TINY).fit(QUESTIONS, CANDIDATES, MARKS)
    assert fitted.rank(QUESTIONS[:2], CANDIDATES[:2]) == expected.rank(QUESTIONS[:2], CANDIDATES[:2])
    assert classifier.evaluate(Column(TEXTS), Column(LABELS)) == classifier.evaluate(TEXTS, LABELS)


@pytest.mark.parametrize("kind", [CapsuleClassifier, AnswerRanker])
def test_scikit_learn_can_copy_and_set_parameters(kind):
    estimator = kind("paper", epochs=3, seed=5, settings={"filters": 4})
    assert clone(estimator).get_params() == estimator.get_params()
    assert clone(estimator).get_params() == {
        "model": "paper",
        "epochs": 3,
        "seed": 5,
        "settings": {"filters": 4},
        "verbose": False,
    }
    assert estimator.set_params(epochs=7).epochs == 7
    with pytest.raises(ValueError, match="colour"):
        estimator.set_params(colour="red")


def test_a_copy_of_a_fitted_estimator_is_not_fitted(classifier):
    with pytest.raises(NotFittedError):
        clone(classifier).predict(["rain"])


def test_before_fit_there_is_nothing_to_use(tmp_path):
    classifier, ranker = CapsuleClassifier(), AnswerRanker()
    for use in (
        lambda: classifier.predict(["x"]),
        lambda: classifier.predict_proba(["x"]),
        lambda: classifier.evaluate(["x"], [["y"]]),
        lambda: classifier.classes_,
        lambda: classifier.save(tmp_path / "a"),
        lambda: ranker.predict(["x"], [["y"]]),
        lambda: ranker.save(tmp_path / "b"),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet: call fit, or open one with load"):
            use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("rain and wind", [["weather"]], "texts must be a list of texts. Got a single text"),
        (["rain", 3], [["weather"], ["weather"]], r"texts\[1\] must be a str. Got int"),
        (["rain", None], [["weather"], ["weather"]], r"texts\[1\] must be a str. Got NoneType"),
        (["rain", "wind"], [["weather"]], "must be of one length. Got 2 and 1"),
        (["rain"], ["weather"], r"labels\[0\] must be a list of label names. Got 'weather'"),
        (["rain"], [[1, 2]], r"labels\[0\] must be a list of label names"),
        (["rain"], [["weather", " "]], r"labels\[0\] holds a blank label"),
        (None, [["weather"]], r"texts must be a list of texts\. Got NoneType"),
        (["rain"], None, r"labels must be a list of lists\. Got NoneType"),
        (["rain"], "x", r"labels must be a list of lists\. Got str"),
    ],
)
def test_wrong_input_is_named(classifier, texts, labels, message):
    with pytest.raises(NlpCapsuleError, match=message):
        CapsuleClassifier(settings=LABEL_TINY).fit(texts, labels)
    with pytest.raises(NlpCapsuleError, match=message):
        classifier.evaluate(texts, labels)


@pytest.mark.parametrize("row", [None, float("nan"), 3])
def test_a_row_without_a_list_of_labels_is_named(row):
    with pytest.raises(
        DataError, match=rf"labels\[1\] must be a list of label names\. Got {row!r}.*; give \[\] where"
    ):
        CapsuleClassifier(settings=LABEL_TINY).fit(["rain", "wind"], [["weather"], row])
    with pytest.raises(DataError, match=rf"labels\[1\] must be a list of 1 \(right\) .* Got {row!r} instead"):
        AnswerRanker(settings=TINY).fit(["where", "when"], [["here"], ["now"]], [[1], row])
    with pytest.raises(NlpCapsuleError, match=r"candidates\[1\] must be a list of texts\. Got "):
        AnswerRanker(settings=TINY).fit(["where", "when"], [["here"], row], [[1], [1]])


def test_half_a_surrogate_pair_in_a_label_becomes_what_readers_make_of_it(tmp_path):
    labels = [["weather \ud83d"], ["weather \ud83d", "weather \ud83e"], ["sport"], ["sport"]] * 6
    fitted = CapsuleClassifier(epochs=1, settings=LABEL_TINY).fit(TEXTS, labels)
    assert sorted(fitted.classes_) == ["sport", "weather \ufffd"]
    fitted.save(tmp_path / "model")
    loaded = CapsuleClassifier.load(tmp_path / "model")
    assert loaded.evaluate(TEXTS, labels) == fitted.evaluate(TEXTS, labels)


def test_labels_that_cannot_be_measured_are_refused_as_the_command_refuses_them(classifier):
    message = (
        r"none of the labels is known to the model \(for example 'astronomy'\); it was trained on labels"
    )
    for measure in (classifier.evaluate, classifier.score):
        with pytest.raises(DataError, match=message):
            measure(["stars", "planets"], [["astronomy"], []])
        with pytest.raises(DataError, match=r"no document has a label, so there is nothing to measure"):
            measure(["stars"], [[]])


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        ({"dev_texts": ["rain"]}, "dev_texts and dev_labels go together"),
        ({"dev_labels": [["weather"]]}, "dev_texts and dev_labels go together"),
        ({"dev_texts": ["rain"], "dev_labels": []}, r"must be of one length\. Got 1 and 0"),
        ({"dev_texts": ["rain"], "dev_labels": [["unheard-of"]]}, "no dev text has a label that a training"),
        ({"dev_texts": [], "dev_labels": []}, "no dev text has a label that a training"),
    ],
)
def test_a_dev_part_needs_labels_that_training_knows(dev, message):
    with pytest.raises(NlpCapsuleError, match=message):
        CapsuleClassifier(settings=LABEL_TINY).fit(TEXTS, LABELS, **dev)


def test_nothing_to_rank_gives_nothing(classifier):
    assert classifier.rank([]) == classifier.predict([]) == []
    assert classifier.predict_proba([]).shape == (0, len(classifier.classes_))


def test_what_is_asked_for_must_make_sense(classifier):
    for top_k in (-1, 0, 2.5, "3", True):
        for ask in (classifier.rank, classifier.predict, classifier.rank_unused):
            with pytest.raises(NlpCapsuleError, match=rf"`top_k` must be a positive integer\. Got {top_k!r}"):
                ask(["rain"], top_k)
    with pytest.raises(NlpCapsuleError, match=r"threshold must be a number.*Got 'tuned'"):
        classifier.rank(["rain"], threshold="tuned")


@pytest.mark.parametrize(
    ("questions", "candidates", "marks", "message"),
    [
        ("where", [["here"]], [[1]], "questions must be a list of texts"),
        (["where"], [["here"], ["there"]], [[1]], r"must be of one length\. Got 1, 2 and 1"),
        (["where"], [["here"]], [[1], [0]], r"must be of one length\. Got 1, 1 and 2"),
        (["where"], None, [[1]], r"candidates must be a list of lists\. Got NoneType"),
        (["where"], [["here", "there"]], [[1]], r"labels\[0\] must have one label per candidate \(2\)"),
        (["where"], ["here"], [[1, 0, 0, 0]], r"candidates\[0\] must be a list of texts"),
        (["where"], [["here", 3]], [[1, 0]], r"candidates\[0\]\[1\] must be a str\. Got int"),
        (["where"], [["here", "there"]], [[1, 2]], r"labels\[0\] must be 1 \(right\) or 0 \(wrong\)"),
        (["where"], [["here", "there"]], [[1, None]], r"labels\[0\] must be 1 \(right\) or 0 \(wrong\)"),
    ],
)
def test_wrong_questions_are_named(ranker, questions, candidates, marks, message):
    with pytest.raises(NlpCapsuleError, match=message):
        AnswerRanker(settings=TINY).fit(questions, candidates, marks)
    with pytest.raises(NlpCapsuleError, match=message):
        ranker.score(questions, candidates, marks)


def test_wrong_settings_are_named():
    with pytest.raises(
        ConfigError, match=r"unknown setting 'fliters': did you mean 'model\.network\.encoder\.fil"
    ):
        CapsuleClassifier(settings={"fliters": 3}).fit(TEXTS, LABELS)
    for name in ("seed", "training.seed"):
        with pytest.raises(ConfigError, match="the seed is a parameter of its own"):
            CapsuleClassifier(settings={name: 7}).fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match="unknown model 'papper'"):
        CapsuleClassifier("papper").fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match="does not rank answers"):
        AnswerRanker("kim-cnn").fit(QUESTIONS, CANDIDATES, MARKS)


@pytest.mark.parametrize("texts", [[], ["rain"]])
def test_without_labels_there_is_nothing_to_learn(texts):
    with pytest.raises(DataError):
        CapsuleClassifier(settings=LABEL_TINY).fit(texts, [[] for _ in texts])


def test_a_saved_classifier_comes_back(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    loaded = CapsuleClassifier.load(tmp_path / "model")
    assert loaded.rank(TEXTS[:4]) == classifier.rank(TEXTS[:4])
    assert (loaded.epochs, loaded.seed, loaded.model) == (12, 1, "hybrid")
    assert loaded._config() == classifier.model_.config
    assert isinstance(nlpcapsule.load(tmp_path / "model"), CapsuleClassifier)
    with pytest.raises(ModelFolderError, match=r"ranks labels: open it with CapsuleClassifier\.load"):
        AnswerRanker.load(tmp_path / "model")


def test_a_loaded_classifier_can_be_fitted_again_with_the_same_result(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    again = clone(CapsuleClassifier.load(tmp_path / "model")).fit(TEXTS, LABELS)
    assert np.array_equal(again.predict_proba(TEXTS[:4]), classifier.predict_proba(TEXTS[:4]))


def test_a_saved_ranker_comes_back(ranker, tmp_path):
    ranker.save(tmp_path / "model")
    expected = ranker.rank(QUESTIONS[:2], CANDIDATES[:2])
    assert AnswerRanker.load(tmp_path / "model").rank(QUESTIONS[:2], CANDIDATES[:2]) == expected
    opened = nlpcapsule.load(str(tmp_path / "model"))
    assert isinstance(opened, AnswerRanker)
    assert opened.rank(QUESTIONS[:2], CANDIDATES[:2]) == expected
    with pytest.raises(ModelFolderError, match=r"ranks answers: open it with AnswerRanker\.load"):
        CapsuleClassifier.load(tmp_path / "model")


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def command(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)


def test_the_command_line_evaluates_what_python_saved(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    data = write_rows(
        tmp_path / "data.jsonl",
        ({"text": text, "labels": labels} for text, labels in zip(TEXTS, LABELS, strict=True)),
    )
    command("evaluate", tmp_path / "model", data, "--json", tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert figures == pytest.approx(classifier.evaluate(TEXTS, LABELS))


def test_python_opens_what_the_command_line_trained(tmp_path):
    rows = zip(QUESTIONS, CANDIDATES, MARKS, strict=True)
    data = write_rows(
        tmp_path / "data.jsonl",
        (
            {
                "question": question,
                "candidates": [
                    {"text": text, "label": mark} for text, mark in zip(candidates, marks, strict=True)
                ],
            }
            for question, candidates, marks in rows
        ),
    )
    sizes = [f"--set={key}={value}" for key, value in (TINY | {"epochs": 2}).items()]
    command("train", data, "--task", "answers", "--output", tmp_path / "model", "--quiet", *sizes)
    command("evaluate", tmp_path / "model", data, "--json", tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    opened = nlpcapsule.load(tmp_path / "model")
    assert opened.score(QUESTIONS, CANDIDATES, MARKS) == pytest.approx(figures["MAP"])


def test_verbose_shows_progress_and_silence_is_the_default(capsys):
    CapsuleClassifier(epochs=1, settings=LABEL_TINY).fit(TEXTS, LABELS)
    assert capsys.readouterr() == ("", "")
    CapsuleClassifier(epochs=1, settings=LABEL_TINY, verbose=True).fit(TEXTS, LABELS)
    shown = capsys.readouterr()
    assert "label-query: epoch 1/1" in shown.err
    assert shown.out == ""


def test_the_package_names_what_it_has_not():
    with pytest.raises(AttributeError, match="has no attribute 'CapsuleClasifier'"):
        nlpcapsule.CapsuleClasifier  # noqa: B018
