"""The estimator that ranks answers to questions."""

from collections.abc import Sequence
from typing import Any, Self

from nlpcapsule.estimators.base import CapsuleEstimator
from nlpcapsule.estimators.inputs import checked_questions, split_pairs
from nlpcapsule.evaluation.ranked import check_positive_integer
from nlpcapsule.explain import QuestionExplanation, explain_answers
from nlpcapsule.explain.document import WORDS
from nlpcapsule.hugging_face import dataset_values, is_dataset
from nlpcapsule.scoring.models import AnswerModel, RankedAnswer
from nlpcapsule.scoring.rankings import Rankings
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers


class AnswerRanker(CapsuleEstimator[AnswerModel]):
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
        rows = checked_questions(*split_pairs(questions, candidates, labels))
        return self._train(lambda config: prepare_answers(rows, None, config), fit_answers)

    def predict(
        self, questions: Sequence[Any], candidates: Sequence[Sequence[str]] | None = None
    ) -> list[list[str]]:
        """Return each question's candidates, best first."""
        if candidates is None and is_dataset(questions):
            questions, candidates = dataset_values(questions, "question", "candidates")
        elif candidates is None:
            questions, candidates, _ = split_pairs(questions, [], None)
        return [[row.answer for row in ranked] for ranked in self.rank(questions, candidates)]

    def rank(self, questions: Sequence[str], candidates: Sequence[Sequence[str]]) -> Rankings[RankedAnswer]:
        """Return each question's candidates with their probabilities, best first; a table in a notebook."""
        model, rows = self._fitted(), checked_questions(questions, candidates, None)
        return Rankings(model.rank(rows), [row.text for row in rows])

    def explain(
        self, question: str, candidates: Sequence[str], top_k: int | None = None, words: int = WORDS
    ) -> QuestionExplanation:
        """Explain answers to a question: the words of both, and the parts of the model, that carried them.

        Of the candidates the best `top_k` are explained, or all. At most `words` words are named per text.
        """
        if top_k is not None:
            check_positive_integer("top_k", top_k)
        check_positive_integer("words", words)
        (row,) = checked_questions([question], [candidates], None)
        return explain_answers(self._fitted(), row, top_k=top_k, words=words)

    def score(
        self,
        questions: Sequence[Any],
        candidates: Sequence[Sequence[Any]] | None = None,
        labels: Sequence[Sequence[int]] | None = None,
    ) -> float:
        """Return mean average precision."""
        rows = checked_questions(*split_pairs(questions, candidates, labels))
        return self._fitted().evaluate(rows)["MAP"]
