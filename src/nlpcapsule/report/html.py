"""The parts of a page: one self-contained HTML file without scripts, fonts or network."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from nlpcapsule.evaluation.report import ABSENT

_FOLDER = Path(__file__).parent


def page(title: str, lead: str, sections: Iterable[str], style: str = "") -> str:
    """Return a whole page; `style` adds CSS rules to those of all pages."""
    html = (_FOLDER / "page.html").read_text(encoding="utf-8")
    style = (_FOLDER / "page.css").read_text(encoding="utf-8") + style
    html = html.replace("STYLE", style).replace("TITLE", escape(title)).replace("LEAD", escape(lead))
    return html.replace("SECTIONS", "".join(sections))


def section(title: str, content: str) -> str:
    """Return a section of a page; empty without content."""
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}</section>\n" if content else ""


def facts_list(facts: Mapping[str, str]) -> str:
    """Return facts by name as a list of tiles."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>\n" for name, value in facts.items()
    )
    return f"<dl>\n{rows}</dl>\n" if rows else ""


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table that scrolls on narrow screens; the first column names the rows.

    Cells and caption are HTML; the title is the caption by default.
    """
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>\n'
        for first, *cells in rows
    )
    if not body:
        return ""
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(title)}">\n'
        f"<table>\n<caption><span>{caption or escape(title) + '.'}</span></caption>\n"
        f"<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


def percent(fraction: float) -> str:
    """Return a fraction as a percentage with one decimal, without the sign."""
    return f"{100 * fraction:.1f}" if math.isfinite(fraction) else ABSENT


def ranking(rows: Iterable[tuple[str, float, bool]], word: str, notes: Mapping[str, str] = {}) -> str:
    """Return texts with their probabilities; a hit is marked by a word and a frame, not by colour alone.

    Notes are HTML that follows a text.
    """
    mark = f' <strong class="hit">{word}</strong>'
    lines = (
        f'<li><span class="score">{percent(score)}%</span> {escape(text)}{mark if is_hit else ""}'
        f"{notes.get(text, '')}</li>\n"
        for text, score, is_hit in rows
    )
    return f"<ol>\n{''.join(lines)}</ol>\n"


def gallery(figures: Mapping[str, str], first: int = 1) -> str:
    """Return plots with captions; `first` numbers the first of them, uniquely on its page."""
    shown = "".join(
        f"<figure>\n{_inline_svg(svg, caption, number)}\n"
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>\n"
        for number, (caption, svg) in enumerate(figures.items(), start=first)
    )
    return f'<div class="gallery">\n{shown}</div>\n' if shown else ""


def _inline_svg(svg: str, caption: str, number: int) -> str:
    """Embed an SVG file in the page: labelled for screen readers, full width, with unique ids."""
    body = svg[svg.index("<svg") :].strip()
    opening, rest = body.split(">", 1)
    opening = re.sub(r'\s(?:width|height)="[^"]*"', "", opening)
    opening += f' role="img" aria-label="{escape(caption)}">'
    # Every plot numbers its parts from 1, but ids must be unique on a page.
    own_id = rf"\g<1>figure{number}-"
    return opening + re.sub(r"<[^>]+>", lambda tag: re.sub(r'(\bid="|href="#|url\(#)', own_id, tag[0]), rest)
