"""Render the demo's report as one self-contained HTML file: no scripts, no fonts, no network."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from nlpcapsule.evaluation.report import ABSENT, COUNTS

_LOW, _HIGH = " 95% low", " 95% high"  # suffixes of the names of an interval's ends


@dataclass(frozen=True)
class ExampleDocument:
    """A document with its labels.

    Attributes:
        text: The text.
        true_labels: The labels it has.
        predicted: Labels a model ranks first and their probabilities, best first.
    """

    text: str
    true_labels: tuple[str, ...]
    predicted: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class ExampleQuestion:
    """A question with its ranked answers.

    Attributes:
        question: The question.
        ranking: Answer, probability of being right, whether it is right; best first.
    """

    question: str
    ranking: tuple[tuple[str, float, bool], ...]


@dataclass(frozen=True)
class DemoReport:
    """The contents of the page.

    Attributes:
        label_tables: Part of the data → system → figure → value. Figures are fractions of 1, but for counts.
        answer_figures: System → figure → value. Here as above, "X 95% low" and "X 95% high" are shown as the
            interval of the figure "X".
        documents: Tagged examples.
        questions: Ranked examples.
        figures: Caption → text of an SVG file, as `plots` draws it.
        facts: Facts about the run: "training documents" → "1,700".
    """

    label_tables: dict[str, dict[str, dict[str, float]]]
    answer_figures: dict[str, dict[str, float]]
    documents: tuple[ExampleDocument, ...]
    questions: tuple[ExampleQuestion, ...]
    figures: dict[str, str]
    facts: dict[str, str]


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
    return _PAGE.format(style=STYLE, sections="".join(sections))


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
    note = " Figures are percentages."
    if len(columns) < len(names):
        note += " In brackets: the 95% confidence interval."
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(system)}</th>'
        + "".join(f"<td>{_cell(figures, name)}</td>" for name in columns)
        + "</tr>\n"
        for system, figures in systems.items()
    )
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(caption)}">\n'
        f"<table>\n<caption><span><strong>{escape(caption)}.</strong>{note}</span></caption>\n"
        f'<thead><tr><th scope="col">system</th>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table>\n</div>\n"
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
    true = set(example.true_labels)
    ranked = "".join(_ranked(label, score, label in true, "true") for label, score in example.predicted)
    missed = true - {label for label, _ in example.predicted}
    lines = [_label_line("True labels", example.true_labels)]
    if missed:
        lines.append(_label_line("Not predicted", [name for name in example.true_labels if name in missed]))
    return (
        f'<article>\n<p class="text">{escape(example.text)}</p>\n{"".join(lines)}'
        f"<p>Predicted, best first:</p>\n<ol>\n{ranked}</ol>\n</article>\n"
    )


def _label_line(title: str, labels: Iterable[str]) -> str:
    return f"<p><strong>{title}:</strong> {escape(', '.join(labels)) or ABSENT}</p>\n"


def _question(example: ExampleQuestion) -> str:
    ranked = "".join(_ranked(answer, score, is_right, "right") for answer, score, is_right in example.ranking)
    return f"<article>\n<h3>{escape(example.question)}</h3>\n<ol>\n{ranked}</ol>\n</article>\n"


def _ranked(text: str, score: float, is_hit: bool, word: str) -> str:
    """Return a line of a ranking; a hit is marked by a word and a frame, not by colour alone."""
    mark = f' <strong class="hit">{word}</strong>' if is_hit else ""
    return f'<li><span class="score">{percent(score)}%</span> {escape(text)}{mark}</li>\n'


STYLE = """
:root { color-scheme: light dark; --ink: #1c1f24; --soft: #555c66; --paper: #ffffff; --tint: #f3f5f8;
  --line: #d5dae1; --accent: #1f5fa8; --hit: #14653c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --soft: #aab2bd; --paper: #15181c;
  --tint: #1f242a; --line: #39414b; --accent: #8ab8f0; --hit: #7fd6a5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 68rem;
  color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
h1 { margin: 0; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 0.75rem; padding-bottom: 0.2rem; font-size: 1.3rem;
  border-bottom: 2px solid var(--accent); }
h3 { margin: 0 0 0.5rem; font-size: 1.05rem; overflow-wrap: anywhere; }
p { margin: 0.4rem 0; overflow-wrap: anywhere; }
.lead { color: var(--soft); max-width: 42rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: 0.75rem; margin: 0; }
dl div { padding: 0.6rem 0.8rem; background: var(--tint); border-radius: 0.4rem; }
dt { color: var(--soft); font-size: 0.85rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 0 0 1.25rem; }
.wide:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; min-width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0.3rem 0; color: var(--soft); }
caption span { display: inline-block; max-width: calc(100vw - 2.5rem); }
caption strong { color: var(--ink); }
th, td { padding: 0.4rem 0.7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th:first-child { text-align: left; }
thead th { background: var(--tint); }
tbody th { font-weight: 500; background: var(--paper); }
@media (max-width: 40rem) {
  th, td { padding: 0.4rem 0.45rem; }
  th:first-child { position: sticky; left: 0; min-width: 7.5rem; max-width: 9rem; white-space: normal; }
}
small { color: var(--soft); font-size: 0.85em; }
.gallery { display: grid; gap: 1rem; }
.gallery { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
figure { margin: 0; padding: 0.5rem; border: 1px solid var(--line); border-radius: 0.4rem; }
figure svg { display: block; width: 100%; height: auto; background: #ffffff; border-radius: 0.2rem; }
figcaption { padding: 0.4rem 0.2rem 0; color: var(--soft); font-size: 0.9rem; overflow-wrap: anywhere; }
article { margin: 0 0 1rem; padding: 0.9rem 1rem; border: 1px solid var(--line); border-radius: 0.4rem; }
.text { margin: 0 0 0.75rem; padding: 0.6rem 0.8rem; background: var(--tint); border-radius: 0.3rem;
  white-space: pre-wrap; }
ol { margin: 0.3rem 0 0; padding-left: 1.6rem; }
li { margin: 0.2rem 0; overflow-wrap: anywhere; }
.score { display: inline-block; min-width: 3.6rem; color: var(--soft); font-variant-numeric: tabular-nums; }
.hit { padding: 0 0.4rem; border: 1px solid var(--hit); border-radius: 0.6rem; color: var(--hit);
  font-size: 0.8rem; }
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>nlpcapsule: report of the demo</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>nlpcapsule: report of the demo</h1>
<p class="lead">Capsule networks trained on the sample that comes with the package, beside other systems
trained on the same documents. All figures and scores are percentages with one decimal; counts are whole
numbers.</p>
</header>
<main>
{sections}</main>
</body>
</html>
"""
