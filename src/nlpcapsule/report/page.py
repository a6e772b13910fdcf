"""Render the report of an evaluation as one self-contained HTML file: no scripts, no fonts, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from nlpcapsule.diagnostics.plots import instance_curve, iterations_histogram, system_curve
from nlpcapsule.diagnostics.report_page import STYLE, facts_list, gallery, percent, section
from nlpcapsule.evaluation.report import COUNTS
from nlpcapsule.report.evaluation import Confusion, EvaluationReport, WorstDocument
from nlpcapsule.report.plots import agreement_plot, calibration_plot, frequency_plot

_MAIN = ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5", "micro-F1", "macro-F1", "ECE@5")
_RECALL = "recall@5 ("


def evaluation_html(report: EvaluationReport) -> str:
    """Return the page; parts that do not apply are left out."""
    sections = [
        section("What was measured", facts_list(report.facts)),
        section("Figures", _main_figures(report)),
        section("By label frequency", _by_frequency(report)),
        section(
            "Calibration", gallery({_calibration_caption(report): calibration_plot(report.calibration)}, 2)
        ),
        section("Labels confused most", _confusions(report.confusions)),
        section("Documents tagged worst", "".join(map(_worst, report.worst))),
        section("Routing", gallery(_routing_plots(report), 3)),
        section("All figures", _all_figures(report.figures)),
    ]
    return _PAGE.format(style=STYLE + _PRINT, sections="".join(sections))


def _main_figures(report: EvaluationReport) -> str:
    rows = []
    for name in _MAIN:
        if name in report.figures:
            low, high = report.intervals.get(name, (None, None))
            interval = "" if low is None or high is None else f"{percent(low)} to {percent(high)}"
            rows.append((name, percent(report.figures[name]), interval))
    return _table(
        "Percentages, with 95% bootstrap intervals over documents", ("figure", "value", "interval"), rows
    )


def _by_frequency(report: EvaluationReport) -> str:
    bands = {
        name.removeprefix(_RECALL).removesuffix(" examples)"): value
        for name, value in report.figures.items()
        if name.startswith(_RECALL)
    }
    caption = "The share of true labels that are among the first five, by their training documents"
    return gallery({caption: frequency_plot(bands)}) if bands else ""


def _calibration_caption(report: EvaluationReport) -> str:
    error = report.figures.get("ECE@5")
    told = "" if error is None else f" They differ by {percent(error)} points on average."
    return f"How often labels are right, by the probability that the model states.{told}"


def _confusions(confusions: tuple[Confusion, ...]) -> str:
    rows = [(row.predicted, row.true, f"{row.documents:,}") for row in confusions]
    return _table(
        "Documents in which the first label was predicted and the second was right",
        ("predicted", "right", "documents"),
        rows,
    )


def _worst(document: WorstDocument) -> str:
    true = set(document.true_labels)
    ranked = "".join(
        f'<li><span class="score">{percent(score)}%</span> {escape(label)}'
        + (' <strong class="hit">true</strong>' if label in true else "")
        + _words(document.words.get(label, ()))
        + "</li>\n"
        for label, score in document.predicted
    )
    return (
        f'<article>\n<h3>{escape(document.id)}</h3>\n<p class="text">{escape(document.text)}</p>\n'
        f"<p><strong>True labels:</strong> {escape(', '.join(document.true_labels))}</p>\n"
        f"<p>Predicted, best first:</p>\n<ol>\n{ranked}</ol>\n</article>\n"
    )


def _words(words: tuple[str, ...]) -> str:
    return f"<br><small>because of: {escape(', '.join(words))}</small>" if words else ""


def _routing_plots(report: EvaluationReport) -> dict[str, str]:
    routing = report.routing
    if routing is None or routing.iterations is None:
        return {}
    plots = {f"Iterations that {routing.routing} took": iterations_histogram(routing.iterations)}
    if routing.agreement is not None:
        plots["Agreement of capsules, mean over documents"] = agreement_plot(routing.agreement)
    if routing.instance_agreement is not None:
        curve = instance_curve(routing.instance_agreement, routing.instance_stop, routing.most_iterations)
        plots["The first document, routed beyond its stop"] = curve
    if routing.loss_by_iterations:
        plots["Loss if every document took the same number"] = system_curve(routing.loss_by_iterations)
    return plots


def _all_figures(figures: Mapping[str, float]) -> str:
    rows = [(name, f"{value:,.0f}" if name in COUNTS else percent(value)) for name, value in figures.items()]
    table = _table("Percentages", ("figure", "value"), rows)
    return f"<details>\n<summary>Show them</summary>\n{table}</details>\n"


def _table(caption: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table whose first column names the rows; empty without rows."""
    if not rows:
        return ""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>\n"
        for first, *rest in rows
    )
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(caption)}">\n<table>\n'
        f"<caption><span>{escape(caption)}.</span></caption>\n<thead><tr>{top}</tr></thead>\n"
        f"<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


_PRINT = """
h3 { color: var(--soft); font-size: 0.95rem; }
figure:only-child { max-width: 40rem; }
tbody th, tbody td { white-space: normal; overflow-wrap: anywhere; }
@media print {
  :root { --ink: #000000; --soft: #444444; --paper: #ffffff; --tint: #f3f5f8; --line: #bbbbbb; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  figure, article, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
  .wide { overflow: visible; }
}
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>nlpcapsule: report of an evaluation</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>Report of an evaluation</h1>
<p class="lead">What the model gets right on documents that it was not trained on, where it errs, and how far
its probabilities can be trusted. Scores are percentages.</p>
</header>
<main>
{sections}</main>
</body>
</html>
"""
