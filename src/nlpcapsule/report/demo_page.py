"""Show what the demo has trained: examples, curves, and all of it as one HTML file."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from rich.markup import escape as escape_markup
from rich.table import Table

from nlpcapsule.data.documents import Document, Question
from nlpcapsule.evaluation.report import ABSENT, COUNTS, figure_cell
from nlpcapsule.report import plots
from nlpcapsule.report.html import facts_list, gallery, page, percent, ranking, section, table
from nlpcapsule.report.routing import RoutingInspection
from nlpcapsule.scoring.models import AnswerModel, LabelModel

COLUMNS = ("P@1", "P@3", "P@5", "nDCG@5", "micro-F1")
ANSWER_COLUMNS = ("MAP", "MAP 95% low", "MAP 95% high", "MRR", "questions")
_LOW, _HIGH = " 95% low", " 95% high"  # suffixes of the names of an interval's ends
_TITLE = "nlpcapsule: report of the demo"
_LEAD = """Capsule networks trained on the sample that comes with the package, next to other systems
trained on the same documents. All figures and scores are percentages with one decimal; counts are whole
numbers."""


@dataclass(frozen=True)
class ExampleDocument:
    """A document with its labels."""

    text: str
    true_labels: tuple[str, ...]
    predicted: tuple[tuple[str, float], ...]  # and their probabilities, best first

    def __str__(self) -> str:
        ranked = ", ".join(
            f"{label} {score:.2f}{' (right)' if label in self.true_labels else ''}"
            for label, score in self.predicted
        )
        return f"\n{self.text}\n  its labels: {', '.join(self.true_labels)}\n  found: {ranked}"


@dataclass(frozen=True)
class ExampleQuestion:
    """A question with its ranked answers."""

    question: str
    ranking: tuple[tuple[str, float, bool], ...]  # answer, probability, is right; best first

    def __str__(self) -> str:
        answers = (
            f"  {score:.2f}{' (right)' if is_right else ''}  {answer}"
            for answer, score, is_right in self.ranking[:3]
        )
        return "\n".join([f"\n{self.question}", *answers])


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


def demo_tables(
    labels: Mapping[str, Mapping[str, Mapping[str, float]]], answers: Mapping[str, Mapping[str, float]]
) -> list[Table]:
    """Return a table of system → metrics for each test part of the documents, and one of the questions."""
    tables = [
        metrics_table(systems, COLUMNS, f"Labels, {part} (percent)") for part, systems in labels.items()
    ]
    return [*tables, metrics_table(answers, ANSWER_COLUMNS, "Answers (percent)")]


def metrics_table(rows: Mapping[str, Mapping[str, float]], columns: Sequence[str], title: str) -> Table:
    """Return a `rich` table in percent, a row per system, a column per metric; a missing one is a dash."""
    printed = Table(title=escape_markup(title))
    printed.add_column("system")
    for column in columns:
        printed.add_column(escape_markup(column), justify="right", no_wrap=True)
    for system, figures in rows.items():
        cells = (figure_cell(column, figures.get(column)) for column in columns)
        printed.add_row(escape_markup(system), *cells)
    return printed


def example_documents(model: LabelModel, documents: Sequence[Document]) -> tuple[ExampleDocument, ...]:
    """Return documents with their labels and the model's best five."""
    ranked = model.rank([document.text for document in documents], 5)
    return tuple(
        ExampleDocument(document.text, document.labels, tuple((row.label, row.score) for row in rows))
        for document, rows in zip(documents, ranked, strict=True)
    )


def example_questions(model: AnswerModel, questions: Sequence[Question]) -> tuple[ExampleQuestion, ...]:
    """Return questions with the model's ranking of their candidates."""
    return tuple(
        ExampleQuestion(
            question.text,
            tuple((row.answer, row.score, question.candidates[row.position].label == 1) for row in rows),
        )
        for question, rows in zip(questions, model.rank(questions), strict=True)
    )


def demo_curves(
    histories: Mapping[str, Sequence[Mapping[str, Any]]], routing: RoutingInspection
) -> dict[str, str]:
    """Return training curves of all systems, and the paper's two routing curves of the default."""
    curves = {"Dev nDCG@5 by epoch": plots.training_curves(histories, "nDCG@5")}
    if routing.loss_by_iterations:
        curves["System level: loss by number of iterations"] = plots.system_curve(routing.loss_by_iterations)
    curves["Instance level: agreement of one document by iteration"] = plots.instance_curve(
        routing.instance_agreement, routing.instance_stop, routing.most_iterations
    )
    curves["Iterations each document took"] = plots.iterations_histogram(routing.iterations)
    return curves


def report_html(report: DemoReport) -> str:
    """Return the page; empty parts of the report are left out."""
    label_tables = "".join(
        _figures_table(part[:1].upper() + part[1:], systems) for part, systems in report.label_tables.items()
    )
    sections = [
        section("This run", facts_list(report.facts)),
        section("Tagging documents with labels", label_tables),
        section("Ranking answers to questions", _figures_table("Right answers first", report.answer_figures)),
        section("Curves", gallery(report.figures)),
        section("Tagged documents", "".join(map(_document, report.documents))),
        section("Ranked answers", "".join(map(_question, report.questions))),
    ]
    return page(_TITLE, _LEAD, sections)


def _figures_table(title: str, systems: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table with one row per system; empty without metrics."""
    names = dict.fromkeys(name for figures in systems.values() for name in figures)
    columns = [name for name in names if not name.endswith((_LOW, _HIGH))]
    if not columns:
        return ""
    rows = (
        [escape(system), *(_cell(figures, name) for name in columns)] for system, figures in systems.items()
    )
    intervals = " In brackets: the 95% confidence interval." if len(columns) < len(names) else ""
    caption = f"<strong>{escape(title)}.</strong> Figures are percentages.{intervals}"
    return table(title, ["system", *columns], rows, caption)


def _cell(figures: Mapping[str, float], name: str) -> str:
    value = figures.get(name, math.nan)
    if name in COUNTS and math.isfinite(value):
        return f"{value:,.0f}"
    low, high = figures.get(name + _LOW), figures.get(name + _HIGH)
    interval = "" if low is None or high is None else f" <small>[{percent(low)}, {percent(high)}]</small>"
    return percent(value) + interval


def _document(example: ExampleDocument) -> str:
    true = example.true_labels
    predicted = {label for label, _ in example.predicted}
    missed = ", ".join(label for label in true if label not in predicted)
    return (
        f'<article>\n<p class="text">{escape(example.text)}</p>\n'
        f"<p><strong>True labels:</strong> {escape(', '.join(true)) or ABSENT}</p>\n"
        + (f"<p><strong>Not predicted:</strong> {escape(missed)}</p>\n" if missed else "")
        + "<p>Predicted, best first:</p>\n"
        + ranking(((label, score, label in true) for label, score in example.predicted), "true")
        + "</article>\n"
    )


def _question(example: ExampleQuestion) -> str:
    ranked = ranking(example.ranking, "right")
    return f"<article>\n<h3>{escape(example.question)}</h3>\n{ranked}</article>\n"
