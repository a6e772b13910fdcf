"""Render the report of an evaluation as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from nlpcapsule.evaluation.report import COUNTS
from nlpcapsule.report import plots
from nlpcapsule.report.evaluation import Confusion, EvaluationReport, WorstDocument
from nlpcapsule.report.html import facts_list, gallery, page, percent, ranking, section, table

_MAIN = ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5", "micro-F1", "macro-F1", "ECE@5")
_RECALL = "recall@5 ("
_STYLE = """h3 { color: var(--soft); font-size: 0.95rem; }
figure:only-child { max-width: 40rem; }
tbody th, tbody td { white-space: normal; overflow-wrap: anywhere; }"""
_LEAD = """What the model gets right on documents that it was not trained on, where it errs, and how far
its probabilities can be trusted. Scores are percentages."""


def evaluation_html(report: EvaluationReport) -> str:
    """Return the page; parts that do not apply are left out."""
    sections = [
        section("What was measured", facts_list(report.facts)),
        section("Figures", _main_figures(report)),
        section("By label frequency", _by_frequency(report)),
        section("Calibration", _calibration(report)),
        section("Labels confused most", _confusions(report.confusions)),
        section("Documents tagged worst", "".join(map(_worst, report.worst))),
        section("Routing", gallery(_routing_plots(report), 3)),
        section("All figures", _all_figures(report.figures)),
    ]
    return page("nlpcapsule: report of an evaluation", _LEAD, sections, _STYLE)


def _main_figures(report: EvaluationReport) -> str:
    rows = []
    for name in _MAIN:
        if name in report.figures:
            low, high = report.intervals.get(name, (None, None))
            interval = "" if low is None or high is None else f"{percent(low)} to {percent(high)}"
            rows.append((name, percent(report.figures[name]), interval))
    title = "Percentages, with 95% bootstrap intervals over documents"
    return table(title, ("figure", "value", "interval"), rows)


def _by_frequency(report: EvaluationReport) -> str:
    bands = {
        name.removeprefix(_RECALL).removesuffix(" examples)"): value
        for name, value in report.figures.items()
        if name.startswith(_RECALL)
    }
    caption = "The share of true labels that are among the first five, by their training documents"
    return gallery({caption: plots.frequency_plot(bands)}) if bands else ""


def _calibration(report: EvaluationReport) -> str:
    error = report.figures.get("ECE@5")
    told = "" if error is None else f" They differ by {percent(error)} points on average."
    caption = f"How often labels are right, by the probability that the model states.{told}"
    return gallery({caption: plots.calibration_plot(report.calibration)}, 2)


def _confusions(confusions: tuple[Confusion, ...]) -> str:
    rows = [(escape(row.predicted), escape(row.true), f"{row.documents:,}") for row in confusions]
    title = "Documents in which the first label was predicted and the second was right"
    return table(title, ("predicted", "right", "documents"), rows)


def _worst(document: WorstDocument) -> str:
    ranked = ((label, score, label in document.true_labels) for label, score in document.predicted)
    words = {
        label: f"<br><small>because of: {escape(', '.join(words))}</small>"
        for label, words in document.words.items()
        if words
    }
    return (
        f'<article>\n<h3>{escape(document.id)}</h3>\n<p class="text">{escape(document.text)}</p>\n'
        f"<p><strong>True labels:</strong> {escape(', '.join(document.true_labels))}</p>\n"
        f"<p>Predicted, best first:</p>\n{ranking(ranked, 'true', words)}</article>\n"
    )


def _routing_plots(report: EvaluationReport) -> dict[str, str]:
    routing = report.routing
    if routing is None:
        return {}
    curve = plots.instance_curve(routing.instance_agreement, routing.instance_stop, routing.most_iterations)
    shown = {
        f"Iterations that {routing.routing} took": plots.iterations_histogram(routing.iterations),
        "Agreement of capsules, mean over documents": plots.agreement_plot(routing.agreement),
        "The first document, routed beyond its stop": curve,
    }
    if routing.loss_by_iterations:
        shown["Loss if every document took the same number"] = plots.system_curve(routing.loss_by_iterations)
    return shown


def _all_figures(figures: Mapping[str, float]) -> str:
    rows = [
        (escape(name), f"{value:,.0f}" if name in COUNTS else percent(value))
        for name, value in figures.items()
    ]
    shown = table("Percentages", ("figure", "value"), rows)
    return f"<details>\n<summary>Show them</summary>\n{shown}</details>\n"
