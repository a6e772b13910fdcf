"""Trained models: text in, ranked labels or ranked answers out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit
from torch import nn

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Question
from nlpcapsule.data.encoded import EncodedDocuments, EncodedQuestions, encode_questions, encode_texts
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.evaluation.answer_metrics import answer_metrics
from nlpcapsule.evaluation.label_metrics import label_metrics
from nlpcapsule.scoring.answers import score_answers
from nlpcapsule.scoring.documents import RANKED, LabelRankings, rank_documents, score_in_parts
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.lexical_scorer import LexicalScorer
from nlpcapsule.scoring.scorer import LabelScorer


@dataclass(frozen=True)
class RankedLabel:
    """A label, its probability, and its name where a thesaurus gave one."""

    label: str
    score: float
    name: str | None = None


@dataclass(frozen=True)
class RankedAnswer:
    """A candidate's text, its probability of being right, and its place among the candidates given."""

    answer: str
    score: float
    position: int


@dataclass(frozen=True, eq=False)
class LabelModel:
    """A trained label scorer with all it takes to use it.

    Any number of threads may share a model: nothing in it changes while it ranks.

    Attributes:
        config: The configuration it was trained with.
        tokenizer: Text → token ids.
        labels: Label ids ↔ names.
        scorer: Scores labels.
        facts: Decision threshold, training documents, data fingerprint, dev metrics.
    """

    config: Config
    tokenizer: WordTokenizer
    labels: LabelVocabulary
    scorer: LabelScorer
    facts: ModelFacts = field(default_factory=ModelFacts)

    @property
    def network(self) -> nn.Module | None:
        """The network that scores; None where a lexical system does."""
        return self.scorer.network

    @property
    def threshold(self) -> float:
        """The probability from which on a label is given; 0.5 where it was not tuned."""
        return 0.5 if self.facts.threshold is None else self.facts.threshold

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Texts → token ids."""
        return encode_texts(texts, self.tokenizer, self.config.text.max_tokens)

    def rank_tokens(
        self, tokens: Ragged, top_k: int, advance: Callable[[int], None] | None = None
    ) -> LabelRankings:
        """Rank the labels of encoded documents.

        Args:
            tokens: N rows of token ids.
            top_k: Labels per document, at most.
            advance: Called with the number of documents done since the last call, for progress.
        """
        return rank_documents(self.scorer, tokens, top_k, unused=self.unused, advance=advance)

    def probabilities(self, tokens: Ragged) -> np.ndarray:
        """Return the probabilities (N, n) of all labels; 0 for labels that are no candidates."""
        found = np.zeros((len(tokens), len(self.labels)), dtype=np.float32)
        for rows, scores in score_in_parts(self.scorer, tokens):
            labels = np.broadcast_to(scores.labels, scores.log_odds.shape)  # (B, C)
            found[rows[:, None], labels] = expit(scores.log_odds)
        return found

    @property
    def unused(self) -> np.ndarray | None:
        """(n,) True for labels that no training document has; None where no such label can be found."""
        return None if isinstance(self.scorer, LexicalScorer) else self.labels.counts == 0

    def evaluate(
        self,
        documents: EncodedDocuments,
        rankings: LabelRankings | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> dict[str, float]:
        """Return all metrics on documents.

        Args:
            documents: The documents and their labels.
            rankings: Their ranked labels, where these are known; None ranks them.
            advance: As in `rank_tokens`.
        """
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

    def rank(
        self, texts: Sequence[str], top_k: int = 5, threshold: float | None = None
    ) -> list[list[RankedLabel]]:
        """Return the best labels of each text, best first.

        Args:
            texts: The texts.
            top_k: Labels per text, at most.
            threshold: Leaves labels out whose score is below it; `self.threshold` is the tuned one.
        """
        return self.named(self.rank_tokens(self.encode(texts), top_k), threshold)

    def rank_unused(self, texts: Sequence[str], top_k: int = 5) -> list[list[RankedLabel]]:
        """Of the labels that no training document has, those that fit each text best; none where all have.

        Their probabilities are low, and they are seldom among the first of all labels.
        """
        unused = self.rank_tokens(self.encode(texts), top_k).unused
        return [[] for _ in texts] if unused is None else self.named(unused)

    def named(self, rankings: LabelRankings, threshold: float | None = None) -> list[list[RankedLabel]]:
        """Ranked labels by what they are called, less those whose score is below a threshold."""
        least = -np.inf if threshold is None else threshold
        titles: Sequence[str | None] = self.labels.titles or [None] * len(self.labels)
        return [
            [
                RankedLabel(self.labels.names[label], float(score), titles[label])
                for label, score in zip(ids, row, strict=True)
                if score >= least
            ]
            for ids, row in zip(rankings.labels, rankings.scores, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class AnswerModel:
    """A trained answer network with all it takes to use it; threads may share it.

    Attributes:
        config: The configuration it was trained with.
        tokenizer: Text → token ids.
        network: The network that scores, in eval mode.
        facts: Data fingerprint, dev metrics.
    """

    config: Config
    tokenizer: WordTokenizer
    network: nn.Module
    facts: ModelFacts = field(default_factory=ModelFacts)

    def encode(self, questions: Sequence[Question]) -> EncodedQuestions:
        """Questions → token ids."""
        return encode_questions(questions, self.tokenizer, self.config.text.max_tokens)

    def log_odds(
        self, questions: Sequence[Question], advance: Callable[[int], None] | None = None
    ) -> list[np.ndarray]:
        """Score candidates by the log-odds that they are right, in the candidates' own order.

        Args:
            questions: The questions.
            advance: Called with the number of questions done since the last call, for progress.
        """
        return score_answers(
            self.network,
            self.encode(questions),
            padding_id=self.tokenizer.padding_id,
            batch=self.config.inference.batch_size,
            advance=advance,
        )

    def evaluate(
        self, questions: Sequence[Question], advance: Callable[[int], None] | None = None
    ) -> dict[str, float]:
        """Return MAP, MRR and their intervals on questions whose candidates are marked."""
        marks = [[int(row.label == 1) for row in question.candidates] for question in questions]
        return answer_metrics(self.log_odds(questions, advance), marks)

    def rank(
        self, questions: Sequence[Question], advance: Callable[[int], None] | None = None
    ) -> list[list[RankedAnswer]]:
        """Rank each question's candidates, best first; equal scores keep the candidates' order."""
        ranked = []
        for question, scores in zip(questions, self.log_odds(questions, advance), strict=True):
            order = np.argsort(-scores, kind="stable")
            ranked.append(
                [RankedAnswer(question.candidates[i].text, float(expit(scores[i])), int(i)) for i in order]
            )
        return ranked
