"""Estimators with the scikit-learn interface: fit, predict, score, get_params, clone, save, load."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Candidate, Document, Question
from nlpcapsule.data.encoded import encode_documents
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.readers.document_rows import string_value
from nlpcapsule.data.readers.reading import Place
from nlpcapsule.errors import ConfigError, DataError, ModelFolderError
from nlpcapsule.evaluation.ranked import check_positive_integer
from nlpcapsule.explain import DocumentExplanation, QuestionExplanation, explain, explain_answers
from nlpcapsule.explain.document import WORDS
from nlpcapsule.hugging_face import (
    dataset_columns,
    dataset_values,
    from_pretrained,
    is_dataset,
    push_to_hub,
    save_pretrained,
)
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.scoring.models import AnswerModel, LabelModel, RankedAnswer, RankedLabel
from nlpcapsule.scoring.rankings import Rankings
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import PreparedLabels, prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

_FILES = "model_files"  # in a pickle, in place of the model

ModelType = TypeVar("ModelType", LabelModel, AnswerModel)


class _CapsuleEstimator(BaseEstimator, Generic[ModelType]):
    """Base class of both estimators: parameters, saving and loading."""

    _task: ClassVar[str]

    def __init__(
        self,
        model: str | None = None,
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
        """Save a model folder that the command line and `load` can read, replacing an earlier model."""
        save_model(self._fitted(), Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a model folder."""
        return cls._of_task(load_model(folder), folder)

    @classmethod
    def _of_task(cls, model: LabelModel | AnswerModel, source: str | Path) -> Self:
        if model.config.task != cls._task:
            other = "AnswerRanker" if cls._task == "labels" else "CapsuleClassifier"
            raise ModelFolderError(f"{source} ranks {model.config.task}: open it with {other}.load")
        return cls._holding(model)

    def save_pretrained(self, folder: str | Path) -> None:
        """Save a model folder in the layout of the Hugging Face hub, with a README.md."""
        save_pretrained(self._fitted(), folder)

    def push_to_hub(self, repository: str, private: bool = True, token: str | None = None) -> str:
        """Upload the model to the Hugging Face hub (extra `hub`); return the address of the commit."""
        return push_to_hub(self._fitted(), repository, private, token)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> Self:
        """Load a model folder, or a repository of the Hugging Face hub by its "owner/name"."""
        return cls._of_task(from_pretrained(source, revision), source)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: parameters, and the files of the model folder if fitted.

        Some systems cannot be pickled, and later versions can read the folder, too.
        """
        state = {**super().__getstate__()}
        model = state.pop("model_", None)
        if model is not None:
            with tempfile.TemporaryDirectory() as folder:
                save_model(model, Path(folder) / "model")
                files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
                state[_FILES] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {**state}
        files = state.pop(_FILES, None)
        super().__setstate__(state)
        if files is not None:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in files.items():
                    path = Path(folder) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                model: Any = load_model(Path(folder) / "model")
                self.model_ = model

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is texts, not a matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    @classmethod
    def _holding(cls, model: LabelModel | AnswerModel) -> Self:
        """Create an estimator around a trained model, with the parameters of its configuration."""
        config = model.config
        settings = {
            f"{section}.{name}": value
            for section in Config.SECTIONS
            for name, value in getattr(config, section).model_dump().items()
            if name not in ("name", "seed", "epochs")
        }
        training = config.training
        estimator = cls(config.model.name, epochs=training.epochs, seed=training.seed, settings=settings)
        estimator.model_ = model
        return estimator

    def _config(self) -> Config:
        settings = self.settings or {}
        if {"seed", "training.seed"} & settings.keys():
            raise ConfigError(
                "the seed is a parameter of its own: give it as seed=…, and leave it out of `settings`"
            )
        epochs = {} if self.epochs is None else {"training.epochs": self.epochs}
        overrides = {**settings, "training.seed": self.seed, **epochs}
        return Config.build(self._task, self.model, overrides=overrides)

    def _train(self, prepare: Callable[[Config], Any], fit: Callable[..., Any]) -> Self:
        """Prepare data and fit a model to them; its checkpoints are temporary."""
        config = self._config()
        with tempfile.TemporaryDirectory() as folder, TrainingProgress(not self.verbose) as progress:
            self.model_ = fit(prepare(config), config, RunFolder(Path(folder)), progress)
        return self

    def _fitted(self) -> ModelType:
        if not hasattr(self, "model_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted yet: call fit, or open one with load")
        return self.model_


class CapsuleClassifier(_CapsuleEstimator[LabelModel]):
    """Classifier that assigns labels to texts.

    Args:
        model: A system for labels that docs/configuration.md names, such as "label-query" or "paper"; None
            uses "hybrid".
        epochs: Number of training epochs; None uses the model's default.
        seed: The same seed gives the same result on the same machine.
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
        labels: Sequence[Sequence[str]] | None = None,
        dev_texts: Sequence[str] | None = None,
        dev_labels: Sequence[Sequence[str]] | None = None,
    ) -> Self:
        """Train on texts and their label lists; a dev part, if given, selects the best epoch.

        A Hugging Face dataset with columns `text` and `labels` may take the place of texts and labels.
        """
        train = _documents(texts, labels)
        if is_dataset(dev_texts):
            dev_texts, dev_labels = dataset_columns(dev_texts)
        if (dev_texts is None) != (dev_labels is None):
            raise DataError("dev_texts and dev_labels go together. Got only one of the two")
        dev = None if dev_texts is None or dev_labels is None else _documents(dev_texts, dev_labels)
        if not train:
            raise DataError("there are no texts to learn from")

        def prepare(config: Config) -> PreparedLabels:
            data = prepare_labels(train, dev, config)
            if data.dev is not None and not (data.dev.labels.values < len(data.labels)).any():
                raise DataError(
                    "no dev text has a label that a training text has, so none can select an epoch",
                    hint="give other dev texts, or none",
                )
            return data

        return self._train(prepare, fit_labels)

    def predict(
        self, texts: Sequence[str], top_k: int = 5, threshold: float | None = None
    ) -> list[list[str]]:
        """Return the best labels of each text, best first; arguments as in `rank`."""
        return [[row.label for row in ranked] for ranked in self.rank(texts, top_k, threshold)]

    def rank(
        self, texts: Sequence[str], top_k: int = 5, threshold: float | None = None
    ) -> Rankings[RankedLabel]:
        """Return at most `top_k` labels of each text with their probabilities, best first.

        Labels whose probability is below the threshold are dropped; `threshold_` is the tuned one. A notebook
        shows the list as a table.
        """
        check_positive_integer("top_k", top_k)
        if isinstance(threshold, str):
            problem = "threshold must be a number; `threshold_` is the tuned one"
            raise DataError(f"{problem}. Got {threshold!r} instead")
        model, rows = self._fitted(), _texts(texts)
        return Rankings(model.rank(rows, top_k, threshold), rows)

    def explain(
        self, text: str, labels: Sequence[str] | None = None, top_k: int = 5, words: int = WORDS
    ) -> DocumentExplanation:
        """Explain labels of a text: the words, capsules, similar documents and parts that carried them.

        Args:
            text: The text.
            labels: Labels to explain; None explains the best ones.
            top_k: Labels to explain if none are given.
            words: Words to name per label, at most.
        """
        check_positive_integer("top_k", top_k)
        check_positive_integer("words", words)
        (checked,) = _texts([text], "text")
        chosen = None if labels is None else _label_names(labels, 0)
        return explain(self._fitted(), checked, chosen, top_k=top_k, words=words)

    def rank_unused(self, texts: Sequence[str], top_k: int = 5) -> list[list[RankedLabel]]:
        """Return the best labels of each text among those of `label_names` without training texts."""
        check_positive_integer("top_k", top_k)
        return self._fitted().rank_unused(_texts(texts), top_k)

    @property
    def threshold_(self) -> float:
        """The probability from which a label is predicted, tuned on the dev part; 0.5 without one."""
        return self._fitted().threshold

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Return probabilities (texts, labels), columns in the order of `classes_`."""
        model = self._fitted()
        return model.probabilities(model.encode(_texts(texts)))

    def score(self, texts: Sequence[str], labels: Sequence[Sequence[str]] | None = None) -> float:
        """Return precision at 1: how often the best label is right."""
        return self.evaluate(texts, labels)["P@1"]

    def evaluate(
        self, texts: Sequence[str], labels: Sequence[Sequence[str]] | None = None
    ) -> dict[str, float]:
        """Return all metrics of `nlpcapsule evaluate`."""
        model = self._fitted()
        documents = _documents(texts, labels)
        _check_measurable(documents, model.labels)
        return model.evaluate(
            encode_documents(documents, model.tokenizer, model.labels, model.config.text.max_tokens)
        )

    @property
    def classes_(self) -> list[str]:
        """Label names by id."""
        return self._fitted().labels.ids


class AnswerRanker(_CapsuleEstimator[AnswerModel]):
    """Ranker of candidate answers to questions; its arguments are those of `CapsuleClassifier`.

    `model` is a system for answers; None uses "label-query".
    """

    _task = "answers"

    def fit(
        self,
        questions: Sequence[Any],
        candidates: Sequence[Sequence[Any]] | None = None,
        labels: Sequence[Sequence[int]] | None = None,
    ) -> Self:
        """Train on questions, each with candidate answers and their labels (1 right, 0 wrong).

        As scikit-learn's tools have two arguments, here and in `predict` and `score` pairs (question,
        candidates) may be given as `questions`, and then the labels as `candidates`. A Hugging Face dataset
        with columns `question`, `candidates` and `labels` may take the place of all three.
        """
        rows = _questions(*_apart(questions, candidates, labels))
        return self._train(lambda config: prepare_answers(rows, None, config), fit_answers)

    def predict(
        self, questions: Sequence[Any], candidates: Sequence[Sequence[str]] | None = None
    ) -> list[list[str]]:
        """Return each question's candidates, best first."""
        if candidates is None and is_dataset(questions):
            questions, candidates = dataset_values(questions, "question", "candidates")
        elif candidates is None:
            questions, candidates, _ = _apart(questions, [], None)
        return [[row.answer for row in ranked] for ranked in self.rank(questions, candidates)]

    def rank(self, questions: Sequence[str], candidates: Sequence[Sequence[str]]) -> Rankings[RankedAnswer]:
        """Return each question's candidates with their probabilities, best first; a table in a notebook."""
        model, rows = self._fitted(), _questions(questions, candidates, None)
        return Rankings(model.rank(rows), [row.text for row in rows])

    def explain(
        self, question: str, candidates: Sequence[str], top_k: int | None = None, words: int = WORDS
    ) -> QuestionExplanation:
        """Explain answers to a question: the words of both, and the parts of the model, that carried them.

        Args:
            question: The question.
            candidates: Its candidate answers.
            top_k: How many of the best to explain; None explains all.
            words: Words to name per text, at most.
        """
        if top_k is not None:
            check_positive_integer("top_k", top_k)
        check_positive_integer("words", words)
        (row,) = _questions([question], [candidates], None)
        return explain_answers(self._fitted(), row, top_k=top_k, words=words)

    def score(
        self,
        questions: Sequence[Any],
        candidates: Sequence[Sequence[Any]] | None = None,
        labels: Sequence[Sequence[int]] | None = None,
    ) -> float:
        """Return mean average precision."""
        questions, candidates, labels = _apart(questions, candidates, labels)
        return self._fitted().evaluate(_questions(questions, candidates, labels))["MAP"]


def load(folder: str | Path) -> CapsuleClassifier | AnswerRanker:
    """Load a model folder as the estimator that fits its task."""
    model = load_model(folder)
    kind = CapsuleClassifier if isinstance(model, LabelModel) else AnswerRanker
    return kind._holding(model)


def _texts(texts: Sequence[str], name: str = "texts") -> list[str]:
    if isinstance(texts, str):
        raise DataError(f"{name} must be a list of texts. Got a single text instead: put it in a list")
    if not isinstance(texts, Iterable):
        raise DataError(f"{name} must be a list of texts. Got {type(texts).__name__} instead")
    rows = list(texts)
    for index, text in enumerate(rows):
        if not isinstance(text, str):
            raise DataError(f"{name}[{index}] must be a str. Got {type(text).__name__} instead")
    return rows


def _lists(rows: Sequence[Any] | None, name: str) -> list[Any]:
    """Return the rows in order, since indexing a pandas Series by number uses its index."""
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise DataError(f"{name} must be a list of lists. Got {type(rows).__name__} instead")
    return list(rows)


def _documents(texts: Sequence[str], labels: Sequence[Sequence[str]] | None) -> list[Document]:
    if labels is None and is_dataset(texts):
        texts, labels = dataset_columns(texts)
    rows, label_rows = _texts(texts), _lists(labels, "labels")
    if len(rows) != len(label_rows):
        raise DataError(f"texts and labels must be of one length. Got {len(rows)} and {len(label_rows)}")
    return [
        Document(text, _label_names(row, i))
        for i, (text, row) in enumerate(zip(rows, label_rows, strict=True))
    ]


def _label_names(row: Any, index: int) -> tuple[str, ...]:
    """Return the labels of one text without repeats, as file readers do."""
    names = None if isinstance(row, str) or not isinstance(row, Iterable) else list(row)
    if names is None or not all(isinstance(name, str) for name in names):
        raise DataError(
            f"labels[{index}] must be a list of label names. Got {row!r} instead",
            hint="give [] where there are none",
        )
    if not all(name.strip() for name in names):
        raise DataError(f"labels[{index}] holds a blank label: {row!r}")
    return tuple(dict.fromkeys(string_value(name, "labels", Place("labels", index)) for name in names))


def _check_measurable(documents: Sequence[Document], known: LabelVocabulary) -> None:
    """Reject labels that cannot be measured, as `nlpcapsule evaluate` does."""
    names = dict.fromkeys(name for document in documents for name in document.labels)
    if not names:
        raise DataError("no text has a label, so there is nothing to measure", hint="give labelled texts")
    if not any(name in known for name in names):
        examples = ", ".join(repr(name) for name in list(names)[:3])
        raise DataError(
            f"none of the labels is known to the model (for example {examples})",
            hint=f"it was trained on labels such as {known.ids[0]!r}",
        )


def _questions(
    questions: Sequence[str],
    candidates: Sequence[Sequence[str]],
    labels: Sequence[Sequence[int]] | None,
) -> list[Question]:
    texts, answer_rows = _texts(questions, "questions"), _lists(candidates, "candidates")
    mark_rows = [None] * len(texts) if labels is None else _lists(labels, "labels")
    if not len(texts) == len(answer_rows) == len(mark_rows):
        lengths = f"{len(texts)}, {len(answer_rows)} and {len(mark_rows)}"
        raise DataError(f"questions, candidates and labels must be of one length. Got {lengths}")
    rows: list[Question] = []
    for index, (text, answer_row, mark_row) in enumerate(zip(texts, answer_rows, mark_rows, strict=True)):
        answers = _texts(answer_row, f"candidates[{index}]")
        marks = [None] * len(answers) if labels is None else _marks(mark_row, index, len(answers))
        rows.append(Question(text, tuple(map(Candidate, answers, marks))))
    return rows


def _apart(
    questions: Sequence[Any],
    candidates: Sequence[Sequence[Any]] | None,
    labels: Sequence[Sequence[int]] | None,
) -> tuple[Sequence[Any], Sequence[Sequence[Any]], Sequence[Sequence[int]]]:
    """Return questions, candidates and labels, where a dataset, pairs and labels, or all three were given."""
    if candidates is None and is_dataset(questions):
        asked, answers, marks = dataset_values(questions, "question", "candidates", "labels")
        return asked, answers, marks
    if candidates is None:
        raise DataError("candidates must be a list of lists. Got NoneType instead")
    if labels is not None:
        return questions, candidates, labels
    pairs = _lists(questions, "questions")
    for index, pair in enumerate(pairs):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise DataError(
                f"questions[{index}] must be a pair (question, candidates). Got {pair!r:.80} instead"
            )
    return [question for question, _ in pairs], [answers for _, answers in pairs], candidates


def _marks(row: Any, index: int, count: int) -> list[Any]:
    """Return which of a question's candidates are right."""
    if not isinstance(row, Iterable):
        expected = "must be a list of 1 (right) and 0 (wrong), one per candidate"
        raise DataError(f"labels[{index}] {expected}. Got {row!r} instead")
    marks = list(row)
    if len(marks) != count:
        raise DataError(f"labels[{index}] must have one label per candidate ({count})")
    if not all(mark in (0, 1) for mark in marks):
        raise DataError(f"labels[{index}] must be 1 (right) or 0 (wrong). Got {marks!r} instead")
    return marks
