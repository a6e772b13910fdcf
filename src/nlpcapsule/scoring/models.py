"""Trained models: text in, ranked labels or ranked answers out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from nlpcapsule.config import Config
from nlpcapsule.data import encoded
from nlpcapsule.data.documents import Document, Question
from nlpcapsule.data.encoded import EncodedDocuments, EncodedQuestions
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.data.top_columns import NO_NUMBER
from nlpcapsule.errors import DataError, ModelFolderError, NlpCapsuleError, quoted
from nlpcapsule.evaluation.answer_metrics import answer_metrics
from nlpcapsule.evaluation.label_metrics import label_metrics
from nlpcapsule.scoring.documents import RANKED, LabelRankings, rank_documents, score_in_parts
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.lexical_scorer import LexicalScorer
from nlpcapsule.scoring.scorer import LabelScorer

if TYPE_CHECKING:  # prediction with an exported network does without torch
    from torch import nn


@dataclass(frozen=True)
class RankedLabel:
    """A label, its probability and, if known, its name."""

    label: str
    score: float
    name: str | None = None


@dataclass(frozen=True)
class RankedAnswer:
    """A candidate's text, its probability of being right, and its index among the given candidates."""

    answer: str
    score: float
    position: int


@dataclass(frozen=True, eq=False)
class LabelModel:
    """A trained label scorer; thread-safe, since ranking does not change its state."""

    config: Config  # the configuration it was trained with
    tokenizer: WordTokenizer  # text → token ids
    labels: LabelVocabulary
    scorer: LabelScorer
    facts: ModelFacts = field(default_factory=ModelFacts)  # threshold, training documents, dev metrics

    @property
    def network(self) -> nn.Module | None:
        """The network that scores; None where a lexical system does."""
        return self.scorer.network

    @property
    def threshold(self) -> float:
        """The probability from which a label is predicted; 0.5 if it was not tuned."""
        return 0.5 if self.facts.threshold is None else self.facts.threshold

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Tokenize texts."""
        return encoded.encode_texts(texts, self.tokenizer, self.config.text.max_tokens)

    def encode_documents(self, documents: Iterable[Document]) -> EncodedDocuments:
        """Tokenize documents, with their labels as ids."""
        return encoded.encode_documents(documents, self.tokenizer, self.labels, self.config.text.max_tokens)

    def rank_tokens(
        self, tokens: Ragged, top_k: int, advance: Callable[[int], None] | None = None
    ) -> LabelRankings:
        """Rank the labels of encoded documents; `advance` gets the number done since its last call."""
        return rank_documents(self.scorer, tokens, top_k, unused=self.unused, advance=advance)

    def probabilities(self, tokens: Ragged) -> np.ndarray:
        """Return the probabilities (N, n) of all labels; 0 for labels that are not candidates."""
        found = np.zeros((len(tokens), len(self.labels)), dtype=np.float32)
        for rows, scores in score_in_parts(self.scorer, tokens):
            labels = np.broadcast_to(scores.labels, scores.log_odds.shape)  # (B, C)
            found[rows[:, None], labels] = expit(scores.log_odds)
        return found

    @property
    def unused(self) -> np.ndarray | None:
        """(n,) True for labels without training documents; None if such labels cannot be ranked."""
        return None if isinstance(self.scorer, LexicalScorer) else self.labels.counts == 0

    def evaluate(
        self,
        documents: EncodedDocuments,
        rankings: LabelRankings | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> dict[str, float]:
        """Return all metrics on documents, whose `rankings` may be known; `advance` as in `rank_tokens`."""
        ranked = rankings or self.rank_tokens(documents.tokens, RANKED, advance)
        if self.facts.training_documents is None:
            raise ModelFolderError("the model does not say how many documents it was trained on")
        return label_metrics(
            ranked.labels,
            ranked.scores,
            list(documents.labels),
            self.labels.counts,
            self.facts.training_documents,
            self.threshold,
            None if ranked.unused is None else ranked.unused.labels,
        )

    def check_measurable(self, names: Iterable[str], strict: bool = False) -> None:
        """Reject true labels that cannot be measured: none at all, none known or, if strict, one unknown."""
        names = list(dict.fromkeys(names))
        if not names:
            problem, hint = "no document has a label, so there is nothing to measure", "give labelled data"
            raise DataError(problem, hint=hint)
        unknown = [name for name in names if name not in self.labels]
        if len(unknown) == len(names) or (strict and unknown):
            which = f"{len(unknown):,} labels are not"
            which = "none of the labels is" if len(unknown) == len(names) else which
            examples = ", ".join(quoted(name) for name in unknown[:3])
            raise DataError(
                f"{which} known to the model (for example {examples})",
                hint=f"it was trained on labels such as {quoted(self.labels.ids[0])}",
            )

    def rank(
        self, texts: Sequence[str], top_k: int = 5, threshold: float | None = None
    ) -> list[list[RankedLabel]]:
        """Return at most `top_k` labels of each text, best first, without those below a threshold."""
        return self.named(self.rank_tokens(self.encode(texts), top_k), threshold)

    def rank_unused(self, texts: Sequence[str], top_k: int = 5) -> list[list[RankedLabel]]:
        """Return the best labels of each text among those without training documents, if there are any.

        Their probabilities are low, so `rank` seldom returns them.
        """
        unused = self.rank_tokens(self.encode(texts), top_k).unused
        return [[] for _ in texts] if unused is None else self.named(unused)

    def named(self, rankings: LabelRankings, threshold: float | None = None) -> list[list[RankedLabel]]:
        """Return ranked labels with their ids and names, without those below a threshold."""
        least = -np.inf if threshold is None else threshold
        names: Sequence[str | None] = self.labels.names or [None] * len(self.labels)
        return [
            [
                RankedLabel(self.labels.ids[label], float(score), names[label])
                for label, score in zip(ids, row, strict=True)
                if score >= least
            ]
            for ids, row in zip(rankings.labels, rankings.scores, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class AnswerModel:
    """A trained answer network with its configuration and tokenizer; thread-safe."""

    config: Config  # the configuration it was trained with
    tokenizer: WordTokenizer  # text → token ids
    network: nn.Module  # the network that scores, in eval mode
    facts: ModelFacts = field(default_factory=ModelFacts)  # data fingerprint, dev metrics

    def encode(self, questions: Sequence[Question]) -> EncodedQuestions:
        """Tokenize questions and candidates."""
        return encoded.encode_questions(questions, self.tokenizer, self.config.text.max_tokens)

    def log_odds(
        self, questions: Sequence[Question], advance: Callable[[int], None] | None = None
    ) -> list[np.ndarray]:
        """Score candidates, in the order given, by the log-odds that they are right."""
        from nlpcapsule.scoring.answers import score_answers

        scores = score_answers(
            self.network,
            self.encode(questions),
            padding_id=self.tokenizer.padding_id,
            batch=self.config.inference.batch_size,
            advance=advance,
        )
        if any(np.isnan(row).any() for row in scores):
            raise NlpCapsuleError(NO_NUMBER)
        return scores

    def evaluate(
        self, questions: Sequence[Question], advance: Callable[[int], None] | None = None
    ) -> dict[str, float]:
        """Return MAP, MRR and their confidence intervals on labelled questions."""
        marks = [[int(row.label == 1) for row in question.candidates] for question in questions]
        return answer_metrics(self.log_odds(questions, advance), marks)

    def rank(
        self, questions: Sequence[Question], advance: Callable[[int], None] | None = None
    ) -> list[list[RankedAnswer]]:
        """Rank each question's candidates, best first; ties keep the order given."""
        ranked = []
        for question, scores in zip(questions, self.log_odds(questions, advance), strict=True):
            order = np.argsort(-scores, kind="stable")
            ranked.append(
                [RankedAnswer(question.candidates[i].text, float(expit(scores[i])), int(i)) for i in order]
            )
        return ranked
