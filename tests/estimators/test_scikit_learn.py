"""What scikit-learn expects of an estimator: its own checks, pickles, cross-validation, ValueErrors."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from importlib.util import find_spec
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

from nlpcapsule import AnswerRanker, CapsuleClassifier

TINY = {"embedding_size": 8, "filters": 8, "capsule_size": 8, "condensed": 4}
TEXTS = ["rain and wind", "snow and ice and wind", "a goal in the last minute", "the match was lost"] * 6
LABELS = [["weather"], ["weather", "winter"], ["sport"], ["sport"]] * 6
QUESTIONS = ["where is the library", "when does the bakery open"] * 6
CANDIDATES = [["at the old market", "it opens at six"], ["it opens at six", "at the old market"]] * 6
MARKS = [[1, 0], [1, 0]] * 6

# The checks that give a matrix of numbers in the place of texts; `OnNumbers` passes all of them.
ABOUT_MATRICES = {
    "check_complex_data",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimators_dtypes",
    "check_estimators_empty_data_messages",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_requires_y_none",
}


class OnMatrices(CapsuleClassifier):
    """Claims to take matrices, so that scikit-learn runs its checks."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.string = False
        return tags


class OnNumbers(OnMatrices):
    """Spells each row of numbers as a text, and each class as a label."""

    def __init__(
        self,
        model: str = "one-vs-rest",
        *,
        epochs: int | None = None,
        seed: int = 1,
        settings: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(model, epochs=epochs, seed=seed, settings=settings, verbose=verbose)

    def fit(self, X: Any, y: Any) -> OnNumbers:  # type: ignore[override]
        X, y = validate_data(self, X, y, multi_output=True)
        return super().fit(spelled(X), names(y))

    def predict(self, X: Any) -> np.ndarray:  # type: ignore[override]
        self._fitted()
        X = validate_data(self, X, reset=False)
        return np.array([float(row[0]) for row in super().predict(spelled(X), top_k=1)])

    def predict_proba(self, X: Any) -> np.ndarray:
        self._fitted()
        return super().predict_proba(spelled(validate_data(self, X, reset=False)))

    def score(self, X: Any, y: Any) -> float:
        self._fitted()
        return super().score(spelled(validate_data(self, X, reset=False)), names(y))


def spelled(X: np.ndarray) -> list[str]:
    return [" ".join(f"c{place}v{value:.1f}" for place, value in enumerate(row)) for row in X]


def names(y: Any) -> list[list[str]]:
    return [[str(value) for value in np.atleast_1d(row)] for row in np.asarray(y)]


def failed_checks(estimator: Any) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 30
    return {result["check_name"] for result in results if result["status"] == "failed"}


def test_every_check_passes_once_numbers_are_spelled_as_texts() -> None:
    assert failed_checks(OnNumbers()) == set()


def test_a_text_estimator_fails_only_checks_that_give_numbers() -> None:
    assert failed_checks(OnMatrices()) <= ABOUT_MATRICES


@pytest.mark.parametrize("estimator", [CapsuleClassifier(), AnswerRanker()])
def test_scikit_learn_knows_that_texts_are_wanted(estimator: Any) -> None:
    with pytest.warns(UserWarning, match="requires input"):
        results = check_estimator(estimator, on_fail=None)
    assert [result["status"] for result in results] == ["passed"] * len(results)


@pytest.mark.parametrize(
    ("model", "settings", "package"),
    [
        ("label-query", TINY, None),
        ("kim-cnn", {"embedding_size": 8, "filters": 8}, None),
        ("one-vs-rest", {}, None),
        ("omikuji", {}, "omikuji"),
        ("fasttext", {}, "fasttext"),
    ],
)
def test_a_fitted_classifier_can_be_pickled_whatever_its_system(
    model: str, settings: dict[str, Any], package: str | None
) -> None:
    if package and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    fitted = CapsuleClassifier(model, epochs=1, settings=settings).fit(TEXTS, LABELS)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), through_joblib(fitted)):
        assert other.rank(TEXTS[:4]) == fitted.rank(TEXTS[:4])
        assert other.get_params() == fitted.get_params()
        check_is_fitted(other)


@pytest.mark.parametrize("model", ["label-query", "bm25"])
def test_a_fitted_ranker_can_be_pickled(model: str) -> None:
    settings = TINY if model == "label-query" else {}
    fitted = AnswerRanker(model, epochs=1, settings=settings).fit(QUESTIONS, CANDIDATES, MARKS)
    other = pickle.loads(pickle.dumps(fitted))
    assert other.rank(QUESTIONS, CANDIDATES) == fitted.rank(QUESTIONS, CANDIDATES)


def test_an_estimator_that_is_not_fitted_can_be_pickled() -> None:
    estimator = CapsuleClassifier("paper", epochs=3, settings={"filters": 4})
    other = pickle.loads(pickle.dumps(estimator))
    assert other.get_params() == clone(estimator).get_params()
    assert not hasattr(other, "model_")


def through_joblib(estimator: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    return joblib.load(file)


def test_texts_can_be_cross_validated_and_searched_over() -> None:
    scores = cross_val_score(CapsuleClassifier("one-vs-rest"), TEXTS, LABELS, cv=3, error_score="raise")
    assert scores.tolist() == [1.0, 1.0, 1.0]
    search = GridSearchCV(CapsuleClassifier("one-vs-rest"), {"seed": [1, 2]}, cv=2, error_score="raise")
    assert search.fit(TEXTS, LABELS).best_estimator_.predict(["rain"], top_k=1) == [["weather"]]
    pipeline = make_pipeline(CapsuleClassifier("one-vs-rest")).fit(TEXTS, LABELS)
    assert pipeline.predict(["rain"], top_k=1) == [["weather"]]


def test_answers_can_be_cross_validated_and_searched_over() -> None:
    pairs = list(zip(QUESTIONS, CANDIDATES, strict=True))
    assert cross_val_score(AnswerRanker("bm25"), pairs, MARKS, cv=3, error_score="raise").shape == (3,)
    search = GridSearchCV(AnswerRanker("bm25"), {"seed": [1, 2]}, cv=2, error_score="raise").fit(pairs, MARKS)
    best = search.best_estimator_
    assert best.predict(pairs) == best.predict(QUESTIONS, CANDIDATES)
    assert best.score(pairs, MARKS) == best.score(QUESTIONS, CANDIDATES, MARKS)
    pipeline = make_pipeline(AnswerRanker("bm25")).fit(pairs, MARKS)
    assert pipeline.predict(pairs[:1]) == best.predict(pairs[:1])


@pytest.mark.parametrize(
    ("estimator", "rows", "truth"),
    [
        (CapsuleClassifier("one-vs-rest"), TEXTS, LABELS),
        (AnswerRanker("bm25"), list(zip(QUESTIONS, CANDIDATES, strict=True)), MARKS),
    ],
    ids=["labels", "answers"],
)
@pytest.mark.slow
def test_a_search_runs_in_processes_of_joblib(estimator: Any, rows: Any, truth: Any) -> None:
    grid = {"seed": [1, 2]}
    alone, shared = (
        GridSearchCV(estimator, grid, cv=2, n_jobs=jobs, error_score="raise").fit(rows, truth)
        for jobs in (1, 2)
    )
    assert shared.cv_results_["mean_test_score"].tolist() == alone.cv_results_["mean_test_score"].tolist()
    assert shared.predict(rows) == alone.predict(rows)


def test_a_pipeline_may_clean_texts_first() -> None:
    cleaned = make_pipeline(FunctionTransformer(shouting_to_speech), CapsuleClassifier("one-vs-rest"))
    cleaned.fit([text.upper() for text in TEXTS], LABELS)
    plain = CapsuleClassifier("one-vs-rest").fit(TEXTS, LABELS)
    assert cleaned.predict(["RAIN AND WIND"]) == plain.predict(["rain and wind"])
    assert through_joblib(cleaned).predict(["RAIN"], top_k=1) == [["weather"]]


def shouting_to_speech(texts: list[str]) -> list[str]:
    return [text.lower() for text in texts]


def test_rankings_are_lists_that_notebooks_show_as_tables() -> None:
    texts = ["rain & <b>wind</b>", *TEXTS]
    ranked = CapsuleClassifier("one-vs-rest").fit(TEXTS, LABELS).rank(texts, top_k=2)
    assert ranked == list(ranked)
    assert pickle.loads(pickle.dumps(ranked)) == ranked
    shown = ranked._repr_html_()
    assert "rain &amp; &lt;b&gt;wind&lt;/b&gt;" in shown
    assert shown.count("<tr>") == 20
    assert f"and {len(texts) - 20} more" in shown
    assert f"<b>{ranked[0][0].score:.1%}</b> weather" in shown
    answered = AnswerRanker("bm25").fit(QUESTIONS, CANDIDATES, MARKS).rank(["where?"], [["<i>here</i>"]])
    assert "&lt;i&gt;here" in answered._repr_html_()


def test_settings_can_be_searched_over() -> None:
    grid = {"settings": [{"C": 0.1}, {"C": 10.0}]}
    search = GridSearchCV(CapsuleClassifier("one-vs-rest"), grid, cv=2, error_score="raise")
    assert search.fit(TEXTS, LABELS).best_params_["settings"] in grid["settings"]
    again = through_joblib(search)
    assert again.predict(["rain"]) == search.predict(["rain"])


@pytest.mark.parametrize("rows", [["one"], [("one", ["a"], 1)], [3]])
def test_rows_that_are_no_pairs_are_refused(rows: Any) -> None:
    with pytest.raises(ValueError, match=r"questions\[0\] must be a pair"):
        AnswerRanker("bm25").fit(rows, [[1]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: CapsuleClassifier("one-vs-rest").fit("text", LABELS),
        lambda: CapsuleClassifier("one-vs-rest").fit(TEXTS, LABELS[:3]),
        lambda: CapsuleClassifier("one-vs-rest").fit([], []),
        lambda: CapsuleClassifier("one-vs-rest").fit(TEXTS, LABELS, dev_texts=TEXTS),
        lambda: CapsuleClassifier("no such system").fit(TEXTS, LABELS),
        lambda: CapsuleClassifier(settings={"epohcs": 3}).fit(TEXTS, LABELS),
        lambda: CapsuleClassifier(epochs=-1).fit(TEXTS, LABELS),
        lambda: AnswerRanker("bm25").fit(QUESTIONS, CANDIDATES, [[2, 0]] * 12),
        lambda: AnswerRanker("bm25").fit(QUESTIONS, [3] * 12, MARKS),
    ],
)
def test_a_wrong_value_is_a_value_error(call: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        call()
