"""Explain answers to a question.

A word's importance is what deleting it, from the question or from the answer, takes from the answer's
log-odds. Questions and answers are short, so every word is tried. Words depend on no other candidate, as the
score does not; shares compare an answer with the average candidate.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import expit

from nlpcapsule.data.documents import Question
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.explain.document import WORDS
from nlpcapsule.explain.explanation import AnswerExplanation, ExplainedWord, QuestionExplanation
from nlpcapsule.explain.sources import shares
from nlpcapsule.explain.words import Word, each_left_out, find_words
from nlpcapsule.networks.answer_ranker import AnswerNetwork
from nlpcapsule.scoring.models import AnswerModel, RankedAnswer
from nlpcapsule.scoring.network_scorer import device_of

_BATCH = 64  # pairs that are scored at a time


def explain_answers(
    model: AnswerModel, question: Question, *, top_k: int | None = None, words: int = WORDS
) -> QuestionExplanation:
    """Explain the best answers to a question.

    Args:
        model: The model.
        question: The question with its candidates.
        top_k: Answers to explain; None explains all.
        words: Words to name per text, at most.

    Example:
        >>> found = explain_answers(model, question, top_k=1)  # doctest: +SKIP
        >>> [word.word for word in found.answers[0].answer_words]  # doctest: +SKIP
        ['nine', 'opens']
    """
    (ranked,) = model.rank([question])
    encoded = model.encode([question])
    answers = list(encoded.answers)
    candidates = _scores(model, [encoded.questions[0]] * len(answers), answers) if answers else {}
    return QuestionExplanation(
        question.text,
        tuple(_explained(model, question.text, row, candidates, words) for row in ranked[:top_k]),
    )


def _explained(
    model: AnswerModel, question: str, ranked: RankedAnswer, candidates: dict[str, np.ndarray], most: int
) -> AnswerExplanation:
    """Explain one answer; `candidates` are the summands (C,) of all candidates' log-odds."""
    answer = ranked.answer
    unknown, length = model.tokenizer.unknown_id, model.config.text.max_tokens
    asked, answered = (model.tokenizer.encode_with_offsets(text, length) for text in (question, answer))
    asked_words, answer_words = find_words(question, asked), find_words(answer, answered)
    questions = each_left_out(asked.ids, asked_words, unknown)
    answers = each_left_out(answered.ids, answer_words, unknown)
    by_source = _scores(  # the pair, the question without each word, the answer without each word
        model,
        [*questions, *(asked.ids for _ in answer_words)],
        [*(answered.ids for _ in questions), *list(answers)[1:]],
    )
    log_odds = float(sum(rows[0] for rows in by_source.values()))
    is_lifted = any(rows[ranked.position] > rows.mean() for rows in candidates.values())
    return AnswerExplanation(
        answer=answer,
        position=ranked.position,
        probability=float(expit(log_odds)),
        log_odds=log_odds,
        log_odds_by_source={name: float(rows[0]) for name, rows in by_source.items()},
        shares=shares(candidates, ranked.position) if is_lifted else {},
        question_words=_important(asked_words, by_source, 1, most),
        answer_words=_important(answer_words, by_source, len(questions), most),
    )


@torch.inference_mode()
def _scores(
    model: AnswerModel, questions: list[np.ndarray], answers: list[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the summands of the log-odds of N pairs, by part of the model: (N,) each."""
    network, device, padding = model.network, device_of(model.network), model.tokenizer.padding_id
    asked, answered = Ragged.from_rows(questions), Ragged.from_rows(answers)
    found: dict[str, list[np.ndarray]] = {}
    for start in range(0, len(asked), _BATCH):
        rows = np.arange(start, min(start + _BATCH, len(asked)))
        arrays = asked.padded(rows, padding), answered.padded(rows, padding), rows - start
        inputs = [torch.from_numpy(array).to(device) for array in arrays]
        parts = network.parts(*inputs) if isinstance(network, AnswerNetwork) else {"model": network(*inputs)}
        for name, scores in parts.items():
            found.setdefault(name, []).append(scores.double().cpu().numpy())
    return {name: np.concatenate(chunks) for name, chunks in found.items()}


def _important(
    words: list[Word], by_source: dict[str, np.ndarray], start: int, most: int
) -> tuple[ExplainedWord, ...]:
    """Return the words that speak for the answer; row `start + i` of the scores is without word i."""
    falls = {name: rows[0] - rows[start : start + len(words)] for name, rows in by_source.items()}
    total = np.sum(list(falls.values()), axis=0)  # (W,)
    log_odds = sum(rows[0] for rows in by_source.values())
    order = [index for index in np.argsort(-total, kind="stable") if total[index] > 0][:most]
    return tuple(
        ExplainedWord(
            word=words[index].text,
            spans=words[index].spans,
            importance=float(total[index]),
            probability_drop=float(expit(log_odds) - expit(log_odds - total[index])),
            by_source={name: float(fall[index]) for name, fall in falls.items()},
        )
        for index in order
    )
