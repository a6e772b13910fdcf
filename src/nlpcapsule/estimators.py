"""The Python front door, with scikit-learn's manners: fit, predict, score, get_params, clone, save, load."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from nlpcapsule.config import Config
from nlpcapsule.dataset.encoded import encode_documents
from nlpcapsule.errors import ConfigError, DataError, ModelFolderError, NlpCapsuleError
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.ranking.models import AnswerModel, LabelModel, RankedAnswer, RankedLabel
from nlpcapsule.text.documents import Candidate, Document, Question
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

ModelType = TypeVar("ModelType", LabelModel, AnswerModel)


class _CapsuleEstimator(BaseEstimator, Generic[ModelType]):
    """What both estimators share: their parameters, and how a fitted one is kept and opened."""

    _task: ClassVar[str]

    def __init__(
        self,
        model: str = "label-query",
        *,
        epochs: int | None = None,
        seed: int = 1,
        settings: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.seed = seed
        self.settings = settings
        self.verbose = verbose

    def save(self, folder: str | Path) -> None:
        """Writes a model folder that the command line and `load` read."""
        save_model(self._fitted(), Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Opens a model folder."""
        model = load_model(folder)
        if model.config.task != cls._task:
            other = "AnswerRanker" if cls._task == "labels" else "CapsuleClassifier"
            raise ModelFolderError(f"{folder} ranks {model.config.task}: open it with {other}.load")
        return cls._holding(model)

    @classmethod
    def _holding(cls, model: LabelModel | AnswerModel) -> Self:
        """An estimator around a trained model, with the parameters that lead to it."""
        estimator = cls(**_parameters(model.config))
        estimator.model_ = model
        return estimator

    def _config(self) -> Config:
        settings = self.settings or {}
        if {"seed", "training.seed"} & settings.keys():
            raise ConfigError(
                "the seed is a parameter of its own: give it as seed=…, and leave it out of `settings`"
            )
        overrides = {**settings, "training.seed": self.seed}
        if self.epochs is not None:
            overrides["training.epochs"] = self.epochs
        return Config.build(self._task, self.model, overrides=overrides)

    def _fitted(self) -> ModelType:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit, or open one with load"
            )
        return self.model_


class CapsuleClassifier(_CapsuleEstimator[LabelModel]):
    """Tags texts with labels.

    Args:
        model: "label-query", "paper" or any other network for labels that docs/configuration.md names.
        epochs: Passes over the training texts; None takes the model's default.
        seed: Same seed, same machine, same result.
        settings: Any other setting by name, for example {"training.batch_size": 64, "routing": "kde"}.
        verbose: Show progress on standard error.

    Example:
        >>> texts = ["rain and wind", "snow and ice", "a goal in the last minute", "the match was lost"] * 8
        >>> labels = [["weather"], ["weather", "winter"], ["sport"], ["sport"]] * 8
        >>> classifier = CapsuleClassifier(epochs=12, settings={"condensed": 8, "filters": 16})
        >>> classifier.fit(texts, labels).predict(["wind and snow"], top_k=1)
        [['weather']]
    """

    _task = "labels"

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[Sequence[str]],
        dev_texts: Sequence[str] | None = None,
        dev_labels: Sequence[Sequence[str]] | None = None,
    ) -> Self:
        """Trains on texts and their label lists; a dev part, if given, selects the best epoch."""
        train = _documents(texts, labels)
        if (dev_texts is None) != (dev_labels is None):
            raise NlpCapsuleError("dev_texts and dev_labels go together. Got only one of the two")
        dev = None if dev_texts is None or dev_labels is None else _documents(dev_texts, dev_labels)
        if not train:
            raise DataError("there are no texts to learn from")
        config = self._config()
        with tempfile.TemporaryDirectory() as folder, TrainingProgress(not self.verbose) as progress:
            data = prepare_labels(train, dev, config)
            if data.dev is not None and not (data.dev.labels.values < len(data.labels)).any():
                raise DataError(
                    "no dev text has a label that a training text has, so none can select an epoch",
                    hint="give other dev texts, or none",
                )
            self.model_ = fit_labels(data, config, RunFolder(Path(folder)), progress)
        return self

    def predict(
        self, texts: Sequence[str], top_k: int = 5, threshold: float | None = None
    ) -> list[list[str]]:
        """The names of the best labels of each text, best first; arguments as in `rank`."""
        return [[row.label for row in ranked] for ranked in self.rank(texts, top_k, threshold)]

    def rank(
        self, texts: Sequence[str], top_k: int = 5, threshold: float | None = None
    ) -> list[list[RankedLabel]]:
        """The best labels of each text with their probabilities, best first.

        Args:
            texts: The texts.
            top_k: Labels per text, at most.
            threshold: Leaves labels out whose probability is below it; `threshold_` is the tuned one.
        """
        if top_k < 1:
            raise NlpCapsuleError(f"top_k must be 1 or more. Got {top_k} instead")
        if isinstance(threshold, str):
            raise NlpCapsuleError(
                f"threshold must be a number; `threshold_` is the tuned one. Got {threshold!r} instead"
            )
        return self._fitted().rank(_texts(texts), top_k, threshold)

    def rank_unused(self, texts: Sequence[str], top_k: int = 5) -> list[list[RankedLabel]]:
        """Of the labels that `label_names` names and no training text has, those that fit each text best."""
        return self._fitted().rank_unused(_texts(texts), top_k)

    @property
    def threshold_(self) -> float:
        """The probability from which on a label is given, tuned on the dev part; 0.5 without one."""
        return self._fitted().facts["threshold"]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """(texts, labels) probabilities, columns in the order of `classes_`."""
        model = self._fitted()
        rankings = model.rank_tokens(model.encode(_texts(texts)), len(model.labels))
        probabilities = np.zeros((len(rankings.labels), len(model.labels)), dtype=np.float32)
        np.put_along_axis(probabilities, rankings.labels, rankings.scores, axis=1)
        return probabilities

    def score(self, texts: Sequence[str], labels: Sequence[Sequence[str]]) -> float:
        """Precision at 1: how often the best label is right."""
        return self.evaluate(texts, labels)["P@1"]

    def evaluate(self, texts: Sequence[str], labels: Sequence[Sequence[str]]) -> dict[str, float]:
        """All figures of `nlpcapsule evaluate`."""
        model = self._fitted()
        documents = _documents(texts, labels)
        return model.evaluate(
            encode_documents(documents, model.tokenizer, model.labels, model.config.text.max_tokens)
        )

    @property
    def classes_(self) -> list[str]:
        """Label names by id."""
        return self._fitted().labels.names


class AnswerRanker(_CapsuleEstimator[AnswerModel]):
    """Ranks candidate answers of questions.

    Args:
        model: "label-query", "paper" or any other network for answers that docs/configuration.md names.
        epochs: Passes over the training questions; None takes the model's default.
        seed: Same seed, same machine, same result.
        settings: Any other setting by name, for example {"loss": "pairwise"}.
        verbose: Show progress on standard error.
    """

    _task = "answers"

    def fit(
        self, questions: Sequence[str], candidates: Sequence[Sequence[str]], labels: Sequence[Sequence[int]]
    ) -> Self:
        """Trains on questions, each with candidate answers and their labels (1 right, 0 wrong)."""
        config = self._config()
        with tempfile.TemporaryDirectory() as folder, TrainingProgress(not self.verbose) as progress:
            data = prepare_answers(_questions(questions, candidates, labels), None, config)
            self.model_ = fit_answers(data, config, RunFolder(Path(folder)), progress)
        return self

    def predict(self, questions: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[list[str]]:
        """Each question's candidates, best first."""
        return [[row.answer for row in ranked] for ranked in self.rank(questions, candidates)]

    def rank(self, questions: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[list[RankedAnswer]]:
        """Each question's candidates with their probabilities, best first."""
        return self._fitted().rank(_questions(questions, candidates, None))

    def score(
        self, questions: Sequence[str], candidates: Sequence[Sequence[str]], labels: Sequence[Sequence[int]]
    ) -> float:
        """Mean average precision."""
        return self._fitted().evaluate(_questions(questions, candidates, labels))["MAP"]


def load(folder: str | Path) -> CapsuleClassifier | AnswerRanker:
    """Opens a model folder, whatever it ranks."""
    model = load_model(folder)
    kind = CapsuleClassifier if isinstance(model, LabelModel) else AnswerRanker
    return kind._holding(model)


def _parameters(config: Config) -> dict[str, Any]:
    """Constructor arguments that lead to the same configuration."""
    settings = {
        f"{section}.{name}": value
        for section in Config.SECTIONS
        for name, value in getattr(config, section).model_dump().items()
        if name not in ("name", "seed", "epochs")
    }
    return {
        "model": config.model.name,
        "epochs": config.training.epochs,
        "seed": config.training.seed,
        "settings": settings,
    }


def _texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise NlpCapsuleError("texts must be a list of texts. Got a single text instead: put it in a list")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise NlpCapsuleError(f"texts[{index}] must be a str. Got {type(text).__name__} instead")
    return list(texts)


def _documents(texts: Sequence[str], labels: Sequence[Sequence[str]]) -> list[Document]:
    rows = _texts(texts)
    if len(rows) != len(labels):
        raise NlpCapsuleError(f"texts and labels must be of one length. Got {len(rows)} and {len(labels)}")
    for index, row in enumerate(labels):
        if isinstance(row, str) or not all(isinstance(name, str) for name in row):
            raise NlpCapsuleError(f"labels[{index}] must be a list of label names. Got {row!r} instead")
        if not all(name.strip() for name in row):
            raise NlpCapsuleError(f"labels[{index}] holds a blank label: {row!r}")
    return [Document(text, tuple(dict.fromkeys(row))) for text, row in zip(rows, labels, strict=True)]


def _questions(
    questions: Sequence[str],
    candidates: Sequence[Sequence[str]],
    labels: Sequence[Sequence[int]] | None,
) -> list[Question]:
    texts = _texts(questions)
    if len(texts) != len(candidates) or (labels is not None and len(labels) != len(texts)):
        raise NlpCapsuleError("questions, candidates and labels must be of one length")
    rows: list[Question] = []
    for index, (text, answers) in enumerate(zip(texts, candidates, strict=True)):
        marks = [None] * len(answers) if labels is None else list(labels[index])
        if len(marks) != len(answers):
            raise NlpCapsuleError(f"labels[{index}] must have one label per candidate ({len(answers)})")
        if labels is not None and not all(mark in (0, 1) for mark in marks):
            raise NlpCapsuleError(f"labels[{index}] must be 1 (right) or 0 (wrong). Got {marks!r} instead")
        rows.append(Question(text, tuple(map(Candidate, _texts(answers), marks))))
    return rows
