"""Trained models: text in, ranked labels or ranked answers out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit
from torch import nn

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Question
from nlpcapsule.data.encoded import EncodedDocuments, EncodedQuestions, encode_questions, encode_texts
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.evaluation.answer_metrics import answer_metrics
from nlpcapsule.evaluation.label_metrics import label_metrics
from nlpcapsule.lexical.evidence import WordEvidence
from nlpcapsule.lexical.ranker import LexicalRanker
from nlpcapsule.scoring.answers import score_answers
from nlpcapsule.scoring.documents import (
    RANKED,
    LabelRankings,
    rank_documents,
    rank_labels,
    score_candidates,
)
from nlpcapsule.scoring.fusion import Evidence, Fusion, label_frequency
from nlpcapsule.scoring.lexical import rank_lexically

CANDIDATES = 200  # that a lexical system nominates where nothing else is said


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


@dataclass
class LabelModel:
    """A trained label network or lexical system, with all it takes to use it.

    Attributes:
        config: The configuration it was trained with.
        tokenizer: Text → token ids.
        labels: Label ids ↔ names.
        network: The network that ranks; None where a lexical system does.
        nominator: The Kim-CNN that nominates candidates; None where the network ranks all labels.
        facts: What else is known: decision threshold, training documents, data fingerprint, dev figures.
        lexical: The lexical system that ranks where there is no network.
        words: What is known from the words beside a network: it nominates candidates; None where nothing is.
        fusion: How the network's and the words' evidence are joined, where there are both.
    """

    config: Config
    tokenizer: WordTokenizer
    labels: LabelVocabulary
    network: nn.Module | None
    nominator: nn.Module | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    lexical: LexicalRanker | None = None
    words: WordEvidence | None = None
    fusion: Fusion | None = None

    def encode(self, texts: Sequence[str]) -> Ragged:
        """Texts → token ids."""
        return encode_texts(texts, self.tokenizer, self.config.text.max_tokens)

    def rank_tokens(
        self, tokens: Ragged, top_k: int, on_batch: Callable[[int], None] | None = None
    ) -> LabelRankings:
        """Ranks labels for encoded documents."""
        if not len(tokens):
            return LabelRankings(np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
        if self.network is None:
            assert self.lexical is not None
            return rank_lexically(self.lexical, tokens, top_k, on_batch)
        if self.words is not None:
            return self._rank_jointly(tokens, top_k, on_batch)
        return rank_documents(
            self.network,
            tokens,
            top_k,
            padding_id=self.tokenizer.padding_id,
            batch=self.config.inference.batch,
            candidates=self.nominate(tokens),
            unused=self.labels.counts == 0,
            on_batch=on_batch,
        )

    def nominate(self, tokens: Ragged) -> np.ndarray | None:
        """(N, C) labels that the network routes to for each document; None for all."""
        count = self.config.inference.candidates
        if self.words is not None:
            return self.words.top(tokens, count or CANDIDATES)[0]
        if self.nominator is None:
            return None
        return rank_documents(
            self.nominator,
            tokens,
            count,
            padding_id=self.tokenizer.padding_id,
            batch=self.config.inference.batch,
        ).labels

    def evidence(
        self, tokens: Ragged, on_batch: Callable[[int], None] | None = None
    ) -> tuple[np.ndarray, Evidence, LabelRankings]:
        """The words nominate, the network routes to the candidates, similar documents are asked.

        Returns:
            Candidates (N, C), what is known about them, and what the network's routing did.
        """
        assert self.network is not None
        assert self.words is not None
        candidates, words_say = self.words.top(tokens, self.config.inference.candidates or CANDIDATES)
        network_says, routed = score_candidates(
            self.network,
            tokens,
            candidates,
            padding_id=self.tokenizer.padding_id,
            batch=self.config.inference.batch,
            on_batch=on_batch,
        )
        shares, nearest = self.words.shares(tokens, candidates)
        frequency = label_frequency(self.labels.counts)[candidates]
        names = self.words.names(tokens, candidates)
        return candidates, Evidence(network_says, words_say, shares, nearest, frequency, names), routed

    def _rank_jointly(
        self, tokens: Ragged, top_k: int, on_batch: Callable[[int], None] | None
    ) -> LabelRankings:
        assert self.fusion is not None
        candidates, evidence, routed = self.evidence(tokens, on_batch)
        ranked = rank_labels(candidates, self.fusion(evidence), top_k, self.labels.counts == 0)
        return replace(ranked, iterations=routed.iterations, agreement=routed.agreement)

    def evaluate(
        self, documents: EncodedDocuments, rankings: LabelRankings | None = None
    ) -> dict[str, float]:
        """All figures on documents; their rankings, where they are there already, are not made again."""
        ranked = rankings or self.rank_tokens(documents.tokens, RANKED)
        return label_metrics(
            ranked.labels,
            ranked.scores,
            list(documents.labels),
            self.labels.counts,
            self.facts["training_documents"],
            self.facts["threshold"],
            None if ranked.unused is None else ranked.unused.labels,
        )

    def rank(
        self, texts: Sequence[str], top_k: int = 5, threshold: float | None = None
    ) -> list[list[RankedLabel]]:
        """The best labels of each text, best first.

        Args:
            texts: The texts.
            top_k: Labels per text, at most.
            threshold: Leaves labels out whose score is below it; `facts["threshold"]` is the tuned one.
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


@dataclass
class AnswerModel:
    """A trained answer network with all it takes to use it.

    Attributes:
        config: The configuration it was trained with.
        tokenizer: Text → token ids.
        network: The network that scores.
        facts: What else is known: data fingerprint, dev figures.
    """

    config: Config
    tokenizer: WordTokenizer
    network: nn.Module
    facts: dict[str, Any] = field(default_factory=dict)

    def encode(self, questions: Sequence[Question]) -> EncodedQuestions:
        """Questions → token ids."""
        return encode_questions(questions, self.tokenizer, self.config.text.max_tokens)

    def log_odds(
        self, questions: Sequence[Question], on_batch: Callable[[int], None] | None = None
    ) -> list[np.ndarray]:
        """Log-odds that candidates are right, in the candidates' own order."""
        return score_answers(
            self.network,
            self.encode(questions),
            padding_id=self.tokenizer.padding_id,
            batch=self.config.inference.batch,
            on_batch=on_batch,
        )

    def evaluate(self, questions: Sequence[Question]) -> dict[str, float]:
        """MAP, MRR and their intervals on questions whose candidates are marked."""
        marks = [[int(row.label == 1) for row in question.candidates] for question in questions]
        return answer_metrics(self.log_odds(questions), marks)

    def rank(self, questions: Sequence[Question]) -> list[list[RankedAnswer]]:
        """Each question's candidates, best first; equal scores keep the candidates' order."""
        ranked = []
        for question, scores in zip(questions, self.log_odds(questions), strict=True):
            order = np.argsort(-scores, kind="stable")
            ranked.append(
                [RankedAnswer(question.candidates[i].text, float(expit(scores[i])), int(i)) for i in order]
            )
        return ranked
