"""Show an explanation in a notebook."""

from __future__ import annotations

from html import escape

from nlpcapsule.explain.explanation import DocumentExplanation, LabelExplanation

_STYLE = "background: rgba(230, 159, 0, {:.2f}); border-radius: 3px; color: inherit"
_NAMES = {
    "network": "network",
    "lexical": "words",
    "neighbours": "similar documents",
    "name": "label name",
    "prior": "frequency",
}


def explanation_html(explanation: DocumentExplanation) -> str:
    """Return HTML with the text and its marked words for each label; everything is escaped."""
    parts = [_label_html(explanation.text, label) for label in explanation.labels]
    if explanation.similar:
        rows = "".join(
            f"<li>{escape(similar.id)} ({similar.similarity:.2f}): {escape(', '.join(similar.labels))}</li>"
            for similar in explanation.similar
        )
        parts.append(f"<p>Similar training documents:</p><ul>{rows}</ul>")
    return f"<div>{''.join(parts)}</div>"


def _label_html(text: str, label: LabelExplanation) -> str:
    title = escape(label.label if label.name is None else f"{label.name} ({label.label})")
    shared = ", ".join(
        f"{_NAMES[source]} {share:.0%}" for source, share in label.shares.items() if share >= 0.005
    )
    return (
        f"<p><b>{title}</b> {label.probability:.1%} <small>({escape(shared)})</small></p>"
        f'<blockquote style="white-space: pre-wrap">{_marked(text, label)}</blockquote>'
    )


def _marked(text: str, label: LabelExplanation) -> str:
    """Return the text with the label's words marked, the important ones more strongly."""
    largest = max((word.importance for word in label.words), default=1.0)
    spans = sorted((span, word.importance / largest) for word in label.words for span in word.spans)
    parts, end = [], 0
    for (start, stop), strength in spans:
        style = _STYLE.format(0.15 + 0.6 * strength)
        parts += [escape(text[end:start]), f'<mark style="{style}">{escape(text[start:stop])}</mark>']
        end = stop
    return "".join([*parts, escape(text[end:])])
