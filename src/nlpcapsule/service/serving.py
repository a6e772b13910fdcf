"""What the endpoints share: the model, the threads that work with it, feedback and figures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from nlpcapsule.data.documents import Question
from nlpcapsule.learning.store import FeedbackStore
from nlpcapsule.scoring.models import AnswerModel, LabelModel, RankedAnswer, RankedLabel
from nlpcapsule.service.batching import Batcher
from nlpcapsule.service.metrics import ServiceMetrics
from nlpcapsule.service.problems import ProblemError
from nlpcapsule.service.served_model import ModelHolder, ServedModel
from nlpcapsule.service.settings import ServiceSettings
from nlpcapsule.service.vocabulary import Hierarchy, VocabularySearch

if TYPE_CHECKING:  # explanations import torch, rankings with an exported network do without
    from nlpcapsule.explain import DocumentExplanation, QuestionExplanation

Explanation = TypeVar("Explanation", "DocumentExplanation", "QuestionExplanation")
_MOST_EXPLANATIONS = 16  # explanations that wait at a time; each takes as long as tens of documents


@dataclass(frozen=True)
class RankText:
    """A document to rank; `top_k` labels are needed."""

    text: str
    top_k: int


@dataclass(frozen=True)
class Ranked:
    """The labels of a document, and the version of the model that ranked them."""

    version: str
    labels: list[RankedLabel]


@dataclass(frozen=True)
class Answered:
    """The answers to a question, and the version of the model that ranked them."""

    version: str
    answers: list[RankedAnswer]


class Service:
    """A running service.

    Args:
        settings: Its settings.
        served: The model, if it is already loaded.
    """

    def __init__(self, settings: ServiceSettings, served: ServedModel | None = None) -> None:
        self.settings = settings
        self.metrics = ServiceMetrics()
        self.holder = ModelHolder(settings.model, served, self._swapped)
        self.hierarchy = Hierarchy.read(settings.hierarchy) if settings.hierarchy else Hierarchy()
        self.feedback = FeedbackStore(settings.feedback) if settings.feedback else None
        observe = self.metrics.batches.observe
        self.rank: Batcher[RankText, Ranked] = Batcher(self._rank, settings.most_batch, observe)
        self.answer: Batcher[Question, Answered] = Batcher(self._answer, settings.most_batch, observe)
        self._explainer = ThreadPoolExecutor(1, thread_name_prefix="explain")
        self._explaining = 0
        self._vocabulary: tuple[ServedModel, VocabularySearch] | None = None

    def start(self) -> None:
        """Load the model, if that is not done, and watch for new versions."""
        self.metrics.loaded.set(self.holder.current.loaded_at.timestamp())
        self.holder.watch(self.settings.watch_seconds)

    def close(self) -> None:
        """Finish what was accepted, and close."""
        self.holder.close()
        self.rank.close()
        self.answer.close()
        self._explainer.shutdown()
        if self.feedback is not None:
            self.feedback.close()

    def label_model(self, served: ServedModel | None = None) -> LabelModel:
        """Return a served model, or the current one.

        Raises:
            ProblemError: If it ranks answers.
        """
        model = (served or self.holder.current).model
        if not isinstance(model, LabelModel):
            raise ProblemError(HTTPStatus.CONFLICT, "this model ranks answers; use /v1/answers")
        return model

    def answer_model(self, served: ServedModel | None = None) -> AnswerModel:
        """Return a served model, or the current one.

        Raises:
            ProblemError: If it ranks labels.
        """
        model = (served or self.holder.current).model
        if not isinstance(model, AnswerModel):
            raise ProblemError(HTTPStatus.CONFLICT, "this model ranks labels; use /v1/labels")
        return model

    def vocabulary(self) -> VocabularySearch:
        """Return the search over the current model's labels."""
        served, kept = self.holder.current, self._vocabulary
        if kept is None or kept[0] is not served:
            kept = served, VocabularySearch(self.label_model(served).labels, self.hierarchy)
            self._vocabulary = kept
        return kept[1]

    def name_of(self, label: str, name: str | None = None) -> str | None:
        """Return a label's name: the model's, or the hierarchy's; None if neither knows one."""
        return name or self.hierarchy.names.get(label)

    async def explain(
        self, text: str, labels: list[str] | None, top_k: int, words: int
    ) -> tuple[str, DocumentExplanation]:
        """Explain labels of a document; raises as `_in_turn` does."""
        self.label_model()

        def work(served: ServedModel) -> DocumentExplanation:
            from nlpcapsule.explain import explain

            return explain(self.label_model(served), text, labels, top_k=top_k, words=words)

        return await self._in_turn(work)

    async def explain_answers(
        self, question: Question, top_k: int, words: int
    ) -> tuple[str, QuestionExplanation]:
        """Explain answers to a question; raises as `_in_turn` does."""
        self.answer_model()

        def work(served: ServedModel) -> QuestionExplanation:
            from nlpcapsule.explain import explain_answers

            return explain_answers(self.answer_model(served), question, top_k=top_k, words=words)

        return await self._in_turn(work)

    async def _in_turn(self, work: Callable[[ServedModel], Explanation]) -> tuple[str, Explanation]:
        """Explain in a thread of its own, so that rankings need not wait; return the model's version, too.

        Raises:
            ProblemError: If too many explanations are waiting.
        """
        if self._explaining >= _MOST_EXPLANATIONS:
            told = f"{self._explaining} explanations are waiting; try again in a few seconds"
            raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, told, {"Retry-After": "3"})
        self._explaining += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._explainer, self._explained, work)
        finally:
            self._explaining -= 1

    def _explained(self, work: Callable[[ServedModel], Explanation]) -> tuple[str, Explanation]:
        served = self.holder.with_torch()  # read once: it may be replaced meanwhile
        return served.version, work(served)

    def _rank(self, items: list[RankText]) -> list[Ranked]:
        served = self.holder.current
        most = max(item.top_k for item in items)
        ranked = self.label_model(served).rank([item.text for item in items], most)
        return [
            Ranked(served.version, labels[: item.top_k]) for item, labels in zip(items, ranked, strict=True)
        ]

    def _answer(self, items: list[Question]) -> list[Answered]:
        served = self.holder.current
        return [Answered(served.version, answers) for answers in self.answer_model(served).rank(items)]

    def _swapped(self, served: ServedModel) -> None:
        self.metrics.swaps.inc()
        self.metrics.loaded.set(served.loaded_at.timestamp())
