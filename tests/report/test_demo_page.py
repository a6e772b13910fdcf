"""The report page."""

from __future__ import annotations

import dataclasses
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from nlpcapsule.report.demo_page import (
    DemoReport,
    ExampleDocument,
    ExampleQuestion,
    metrics_table,
    report_html,
)
from nlpcapsule.report.plots import iterations_histogram, system_curve

HOSTILE = """<script>alert("x")</script>&amp;'" onload="evil()"></td><img src=http://bad.example/x>"""
VOID = {"meta", "br", "img", "link", "hr", "input"}

REPORT = DemoReport(
    label_tables={
        "seen phrasings": {
            "capsules": {"P@1": 0.91234, "P@5": 0.5, "documents": 1412},
            "words": {"P@1": 0.8},
        }
    },
    answer_figures={"capsules": {"MAP": 0.7, "MAP 95% low": 0.65, "MAP 95% high": 0.76, "MRR": float("nan")}},
    documents=(ExampleDocument("the lamp is out", ("lamps", "roads"), (("lamps", 0.981), ("bins", 0.02))),),
    questions=(ExampleQuestion("Who came?", (("Anna came.", 0.9, True), ("It rained.", 0.1, False))),),
    figures={
        "iterations of all documents": iterations_histogram(np.array([2, 3, 3])),
        "loss by iterations": system_curve({1: 3.0, 2: 2.0}),
    },
    facts={"training documents": "1,700", "seed": "1"},
)
EMPTY = DemoReport({}, {}, (), (), {}, {})


class Page(HTMLParser):
    """A page's elements, with the nesting checked on the way."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text_in(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag and text.strip()]


@pytest.mark.parametrize("report", [REPORT, EMPTY], ids=["full", "empty"])
def test_page_is_well_formed(report: DemoReport) -> None:
    page = Page(report_html(report))
    assert page.of("html") == [{"lang": "en"}]
    assert len(page.of("h1")) == 1
    assert any(meta.get("name") == "viewport" for meta in page.of("meta"))


def test_page_needs_nothing_beside_itself() -> None:
    html = report_html(REPORT)
    page = Page(html)
    for tag in ("script", "link", "img", "iframe", "object"):
        assert page.of(tag) == []
    for _, attributes in page.elements:
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert not re.search(r"@import|url\((?!#)", html)
    assert "<!DOCTYPE svg" not in html
    assert "<?xml" not in html


def test_ids_stand_once_and_references_find_theirs() -> None:
    html = report_html(REPORT)
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids)) > 0
    references = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', html)
    assert references
    assert {first or second for first, second in references} <= set(ids)


def test_figures_are_named_and_tables_have_captions() -> None:
    page = Page(report_html(REPORT))
    assert [(svg["role"], svg["aria-label"]) for svg in page.of("svg")] == [
        ("img", caption) for caption in REPORT.figures
    ]
    assert page.text_in("figcaption") == list(REPORT.figures)
    assert len(page.of("caption")) == len(page.of("table")) == 2
    assert all("scope" in cell for cell in page.of("th"))


def test_figures_are_percentages_with_one_decimal_and_counts_are_not() -> None:
    html = report_html(REPORT)
    cells = Page(html).text_in("td")
    assert cells[:3] == ["91.2", "50.0", "1,412"]
    assert cells[3:6] == ["80.0", "–", "–"], "what a system lacks is a dash"
    assert "Figures are percentages." in html


def test_interval_stands_beside_its_figure() -> None:
    html = report_html(REPORT)
    assert "<td>70.0 <small>[65.0, 76.0]</small></td>" in html
    assert "95% low" not in html
    assert "95% confidence interval" in html


def test_true_predictions_and_right_answers_are_marked_by_a_word() -> None:
    html = report_html(REPORT)
    items = [re.sub(r"<[^>]+>", "", item) for item in re.findall(r"<li>(.*?)</li>", html)]
    assert items == ["98.1% lamps true", "2.0% bins", "90.0% Anna came. right", "10.0% It rained."]
    assert "<strong>Not predicted:</strong> roads" in html


def test_nothing_is_said_of_missed_labels_where_none_is_missed() -> None:
    found = ExampleDocument("the lamp is out", ("lamps",), (("lamps", 0.9),))
    assert "Not predicted" not in report_html(dataclasses.replace(REPORT, documents=(found,)))


def test_parts_without_content_are_left_out() -> None:
    assert Page(report_html(EMPTY)).text_in("h2") == []
    only_questions = dataclasses.replace(EMPTY, questions=REPORT.questions)
    assert Page(report_html(only_questions)).text_in("h2") == ["Ranked answers"]


def test_hostile_text_stays_text() -> None:
    hostile = DemoReport(
        label_tables={HOSTILE: {HOSTILE: {HOSTILE: 0.5}}},
        answer_figures={HOSTILE: {HOSTILE: 0.5}},
        documents=(ExampleDocument(HOSTILE, (HOSTILE, HOSTILE + "2"), ((HOSTILE, 0.5),)),),
        questions=(ExampleQuestion(HOSTILE, ((HOSTILE, 0.5, True),)),),
        figures={HOSTILE: system_curve({1: 3.0, 2: 2.0})},
        facts={HOSTILE: HOSTILE},
    )
    plain = dataclasses.replace(
        hostile,
        label_tables={"part": {"system": {"P@1": 0.5}}},
        answer_figures={"system": {"MAP": 0.5}},
        documents=(ExampleDocument("text", ("a", "b"), (("a", 0.5),)),),
        questions=(ExampleQuestion("question", (("answer", 0.5, True),)),),
        figures={"caption": system_curve({1: 3.0, 2: 2.0})},
        facts={"fact": "value"},
    )
    page, harmless = Page(report_html(hostile)), Page(report_html(plain))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in harmless.elements]
    assert [set(names) for _, names in page.elements] == [set(names) for _, names in harmless.elements]
    assert page.text_in("h3") == [HOSTILE]
    assert page.of("svg")[0]["aria-label"] == HOSTILE


def test_same_report_gives_the_same_page() -> None:
    assert report_html(REPORT) == report_html(REPORT)


ROWS = {
    "capsules [fast]": {"P@1": 0.80623, "MAP 95% low": 0.1, "documents": 6000},
    "CNN | Kim": {"P@1": 0.6835},
}


def printed(table: Table) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=120).print(table)
    return text.getvalue().splitlines()


def test_a_printed_table_shows_percentages_counts_and_dashes() -> None:
    lines = printed(metrics_table(ROWS, ["P@1", "documents"], "EUR-Lex [15k]"))
    assert "EUR-Lex [15k]" in lines[0]
    capsules = next(line for line in lines if "capsules [fast]" in line)
    assert "80.62" in capsules
    assert "6,000" in capsules
    assert "–" in next(line for line in lines if "CNN | Kim" in line)


def test_the_columns_come_in_the_order_asked_for() -> None:
    lines = printed(metrics_table(ROWS, ["documents", "P@1"], "any"))
    header = next(line for line in lines if "P@1" in line)
    assert header.index("documents") < header.index("P@1")
