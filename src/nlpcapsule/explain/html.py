"""Show an explanation in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from nlpcapsule.explain.explanation import DocumentExplanation, ExplainedWord, QuestionExplanation

_STYLE = "background: rgba(230, 159, 0, {:.2f}); border-radius: 3px; color: inherit"
_NAMES = {
    "network": "network",
    "lexical": "words",
    "neighbours": "similar documents",
    "name": "label name",
    "prior": "frequency",
    "capsules": "capsules",
    "overlap": "word overlap",
    "model": "model",
}


def explanation_html(explanation: DocumentExplanation) -> str:
    """Return HTML with the text and its marked words for each label; everything is escaped."""
    parts = []
    for label in explanation.labels:
        title = label.label if label.name is None else f"{label.name} ({label.label})"
        parts += [_heading(title, label.probability, label.shares), _quoted(explanation.text, label.words)]
    if explanation.similar:
        rows = "".join(
            f"<li>{escape(similar.id)} ({similar.similarity:.2f}): {escape(', '.join(similar.labels))}</li>"
            for similar in explanation.similar
        )
        parts.append(f"<p>Similar training documents:</p><ul>{rows}</ul>")
    return f"<div>{''.join(parts)}</div>"


def answers_html(explanation: QuestionExplanation) -> str:
    """Return HTML with the question and each answer, their words marked; everything is escaped."""
    parts = []
    for place, answer in enumerate(explanation.answers, start=1):
        parts += [
            _heading(f"Answer {place}", answer.probability, answer.shares),
            _quoted(explanation.question, answer.question_words),
            _quoted(answer.answer, answer.answer_words),
        ]
    return f"<div>{''.join(parts)}</div>"


def _heading(title: str, probability: float, shares: dict[str, float]) -> str:
    shared = ", ".join(f"{_NAMES[source]} {share:.0%}" for source, share in shares.items() if share >= 0.005)
    return f"<p><b>{escape(title)}</b> {probability:.1%} <small>{escape(shared)}</small></p>"


def _quoted(text: str, words: Sequence[ExplainedWord]) -> str:
    """Return the text with words marked, the important ones more strongly."""
    largest = max((word.importance for word in words), default=1.0)
    spans = sorted((span, word.importance / largest) for word in words for span in word.spans)
    parts, end = [], 0
    for (start, stop), strength in spans:
        style = _STYLE.format(0.15 + 0.6 * strength)
        parts += [escape(text[end:start]), f'<mark style="{style}">{escape(text[start:stop])}</mark>']
        end = stop
    parts.append(escape(text[end:]))
    return f'<blockquote style="white-space: pre-wrap">{"".join(parts)}</blockquote>'
