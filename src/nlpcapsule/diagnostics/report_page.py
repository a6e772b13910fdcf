"""Render the demo's report as one self-contained HTML file: no scripts, no fonts, no network."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from nlpcapsule.evaluation.report import ABSENT, COUNTS

STYLE = Path(__file__).with_name("report.css").read_text(encoding="utf-8")  # of every page of figures
_LOW, _HIGH = " 95% low", " 95% high"  # suffixes of the names of an interval's ends


@dataclass(frozen=True)
class ExampleDocument:
    """A document with its labels."""

    text: str
    true_labels: tuple[str, ...]
    predicted: tuple[tuple[str, float], ...]  # and their probabilities, best first


@dataclass(frozen=True)
class ExampleQuestion:
    """A question with its ranked answers."""

    question: str
    ranking: tuple[tuple[str, float, bool], ...]  # answer, probability, is right; best first


@dataclass(frozen=True)
class DemoReport:
    """The contents of the page. Metrics are fractions of 1, but for counts.

    "X 95% low" and "X 95% high" are shown as the interval of the metric "X".
    """

    label_tables: dict[str, dict[str, dict[str, float]]]  # part of the data → system → metric → value
    answer_figures: dict[str, dict[str, float]]  # system → metric → value
    documents: tuple[ExampleDocument, ...]
    questions: tuple[ExampleQuestion, ...]
    figures: dict[str, str]  # caption → text of an SVG file, as `plots` draws it
    facts: dict[str, str]  # about the run: "training documents" → "1,700"


def report_html(report: DemoReport) -> str:
    """Return the page; empty parts of the report are left out."""
    label_tables = "".join(
        _figures_table(part[:1].upper() + part[1:], systems) for part, systems in report.label_tables.items()
    )
    answers = _figures_table("Right answers first", report.answer_figures)
    sections = [
        section("This run", facts_list(report.facts)),
        section("Tagging documents with labels", label_tables),
        section("Ranking answers to questions", answers),
        section("Curves", gallery(report.figures)),
        section("Tagged documents", "".join(map(_document, report.documents))),
        section("Ranked answers", "".join(map(_question, report.questions))),
    ]
    page = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    return page.replace("STYLE", STYLE).replace("SECTIONS", "".join(sections))


def section(title: str, content: str) -> str:
    """Return a section of a page; empty without content."""
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}</section>\n" if content else ""


def facts_list(facts: Mapping[str, str]) -> str:
    """Return facts by name as a list of tiles."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>\n" for name, value in facts.items()
    )
    return f"<dl>\n{rows}</dl>\n" if rows else ""


def _figures_table(caption: str, systems: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table with one row per system, which scrolls horizontally on narrow screens."""
    names = dict.fromkeys(name for figures in systems.values() for name in figures)
    columns = [name for name in names if not name.endswith((_LOW, _HIGH))]
    if not columns:
        return ""
    intervals = " In brackets: the 95% confidence interval." if len(columns) < len(names) else ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("system", *columns))
    body = ""
    for system, figures in systems.items():
        cells = "".join(f"<td>{_cell(figures, name)}</td>" for name in columns)
        body += f'<tr><th scope="row">{escape(system)}</th>{cells}</tr>\n'
    title = f"<strong>{escape(caption)}.</strong> Figures are percentages.{intervals}"
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(caption)}">\n'
        f"<table>\n<caption><span>{title}</span></caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


def _cell(figures: Mapping[str, float], name: str) -> str:
    value = figures.get(name, math.nan)
    if name in COUNTS and math.isfinite(value):
        return f"{value:,.0f}"
    low, high = figures.get(name + _LOW), figures.get(name + _HIGH)
    interval = "" if low is None or high is None else f" <small>[{percent(low)}, {percent(high)}]</small>"
    return percent(value) + interval


def percent(fraction: float) -> str:
    """Return a fraction as a percentage with one decimal, without the sign."""
    return f"{100 * fraction:.1f}" if math.isfinite(fraction) else ABSENT


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


def _document(example: ExampleDocument) -> str:
    true = example.true_labels
    ranked = "".join(_ranked(label, score, label in true, "true") for label, score in example.predicted)
    predicted = {label for label, _ in example.predicted}
    missed = ", ".join(label for label in true if label not in predicted)
    return (
        f'<article>\n<p class="text">{escape(example.text)}</p>\n'
        f"<p><strong>True labels:</strong> {escape(', '.join(true)) or ABSENT}</p>\n"
        + (f"<p><strong>Not predicted:</strong> {escape(missed)}</p>\n" if missed else "")
        + f"<p>Predicted, best first:</p>\n<ol>\n{ranked}</ol>\n</article>\n"
    )


def _question(example: ExampleQuestion) -> str:
    ranked = "".join(_ranked(answer, score, is_right, "right") for answer, score, is_right in example.ranking)
    return f"<article>\n<h3>{escape(example.question)}</h3>\n<ol>\n{ranked}</ol>\n</article>\n"


def _ranked(text: str, score: float, is_hit: bool, word: str) -> str:
    """Return a line of a ranking; a hit is marked by a word and a frame, not by colour alone."""
    mark = f' <strong class="hit">{word}</strong>' if is_hit else ""
    return f'<li><span class="score">{percent(score)}%</span> {escape(text)}{mark}</li>\n'
