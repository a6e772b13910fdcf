"""The estimator that assigns labels to texts."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from nlpcapsule.config import Config
from nlpcapsule.errors import DataError
from nlpcapsule.estimators.base import CapsuleEstimator
from nlpcapsule.estimators.inputs import checked_documents, checked_labels, checked_texts
from nlpcapsule.evaluation.ranked import check_positive_integer
from nlpcapsule.explain import DocumentExplanation, explain
from nlpcapsule.explain.document import WORDS
from nlpcapsule.hugging_face import is_dataset
from nlpcapsule.scoring.models import LabelModel, RankedLabel
from nlpcapsule.scoring.rankings import Rankings
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import PreparedLabels, prepare_labels


class CapsuleClassifier(CapsuleEstimator[LabelModel]):
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
        train = checked_documents(texts, labels)
        if (dev_texts is None) != (dev_labels is None) and not is_dataset(dev_texts):
            raise DataError("dev_texts and dev_labels go together. Got only one of the two")
        dev = None if dev_texts is None else checked_documents(dev_texts, dev_labels)
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
        model, rows = self._fitted(), checked_texts(texts)
        return Rankings(model.rank(rows, top_k, threshold), rows)

    def explain(
        self, text: str, labels: Sequence[str] | None = None, top_k: int = 5, words: int = WORDS
    ) -> DocumentExplanation:
        """Explain labels of a text: the words, capsules, similar documents and parts that carried them.

        Without labels, the best `top_k` are explained. Of each label, at most `words` words are named.
        """
        check_positive_integer("top_k", top_k)
        check_positive_integer("words", words)
        (checked,) = checked_texts([text], "text")
        chosen = None if labels is None else checked_labels(labels, 0)
        return explain(self._fitted(), checked, chosen, top_k=top_k, words=words)

    def rank_unused(self, texts: Sequence[str], top_k: int = 5) -> list[list[RankedLabel]]:
        """Return the best labels of each text among those of `label_names` without training texts."""
        check_positive_integer("top_k", top_k)
        return self._fitted().rank_unused(checked_texts(texts), top_k)

    @property
    def threshold_(self) -> float:
        """The probability from which a label is predicted, tuned on the dev part; 0.5 without one."""
        return self._fitted().threshold

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Return probabilities (texts, labels), columns in the order of `classes_`."""
        model = self._fitted()
        return model.probabilities(model.encode(checked_texts(texts)))

    def score(self, texts: Sequence[str], labels: Sequence[Sequence[str]] | None = None) -> float:
        """Return precision at 1: how often the best label is right."""
        return self.evaluate(texts, labels)["P@1"]

    def evaluate(
        self, texts: Sequence[str], labels: Sequence[Sequence[str]] | None = None
    ) -> dict[str, float]:
        """Return all metrics of `nlpcapsule evaluate`."""
        model = self._fitted()
        documents = checked_documents(texts, labels)
        model.check_measurable(name for document in documents for name in document.labels)
        return model.evaluate(model.encode_documents(documents))

    @property
    def classes_(self) -> list[str]:
        """Label names by id."""
        return self._fitted().labels.ids
