"""Ranked labels or answers of several texts, as a list that notebooks show as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, TypeVar

from nlpcapsule.errors import cut
from nlpcapsule.scoring.models import RankedAnswer, RankedLabel

RankedType = TypeVar("RankedType", bound=RankedLabel | RankedAnswer)
_SHOWN = 20  # texts that a notebook shows
_STYLE = "text-align: left; vertical-align: top"


class Rankings(list[list[RankedType]]):
    """One list per text, best first; equal to a plain list of the same rows."""

    def __init__(self, rows: Iterable[list[RankedType]] = (), texts: Sequence[str] = ()) -> None:
        super().__init__(rows)
        self.texts = texts

    def _repr_html_(self) -> str:
        """Return the display of a notebook; everything is escaped."""
        lines = [
            f'<tr><td style="{_STYLE}">{escape(cut(text))}</td><td style="{_STYLE}">{_cell(row)}</td></tr>'
            for text, row in zip(self.texts[:_SHOWN], self, strict=False)
        ]
        more = f"<p>and {len(self) - _SHOWN:,} more</p>" if len(self) > _SHOWN else ""
        return f"<table>{''.join(lines)}</table>{more}"


def _cell(row: Sequence[Any]) -> str:
    """Return the ranked names with their probabilities, one per line."""
    return "<br>".join(f"<b>{each.score:.1%}</b> {escape(_name(each))}" for each in row)


def _name(ranked: RankedLabel | RankedAnswer) -> str:
    if isinstance(ranked, RankedAnswer):
        return ranked.answer
    return ranked.label if ranked.name is None else f"{ranked.name} ({ranked.label})"
