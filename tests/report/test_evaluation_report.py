"""`evaluate --report`: one page without outside resources, whose figures are those that are printed."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.model_folder import save_model
from nlpcapsule.report.evaluation import calibration_curve, confusions, evaluate_for_report, worst_documents
from nlpcapsule.report.page import evaluation_html
from nlpcapsule.scoring.documents import LabelRankings
from tests.cli.run_command import assert_refused, run_command
from tests.saved_models import LABELS, answer_model, label_model

HOSTILE = '<script>alert("x")</script> & rain'
DOCUMENTS = [
    Document("rain and wind", ("weather",), "a"),
    Document("a goal in the last minute", ("sport", "winter"), "b"),
    Document(HOSTILE, ("Zürich; été", "<b>unknown</b>"), "<i>c</i>"),
    Document("snow", ()),
]


class Parsed(HTMLParser):
    """The tags, ids and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in ("src", "href", "xlink:href"):
                self.addresses.append(str(value))


@pytest.fixture(scope="module")
def page() -> str:
    return evaluation_html(evaluate_for_report(label_model(), DOCUMENTS, {"model": "<u>mine</u>"}))


def test_the_page_needs_nothing_else_and_shows_text_as_text(page: str) -> None:
    parsed = Parsed(page)
    assert "script" not in parsed.tags
    assert not {"b", "i", "u", "img", "link"} & set(parsed.tags)
    assert all(address.startswith("#") for address in parsed.addresses)
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page


def test_the_page_has_its_parts(page: str) -> None:
    titles = re.findall("<h2>(.*?)</h2>", page)
    assert titles == [
        "What was measured",
        "Figures",
        "By label frequency",
        "Calibration",
        "Labels confused most",
        "Documents tagged worst",
        "Routing",
        "All figures",
    ]
    assert page.count("<svg") == 6


def rankings(*rows: tuple[list[int], list[float]]) -> LabelRankings:
    return LabelRankings(np.array([ids for ids, _ in rows]), np.array([scores for _, scores in rows]))


def test_the_calibration_curve_compares_probability_and_share() -> None:
    ranked = rankings(([0, 1], [0.9, 0.1]), ([0, 1], [0.7, 0.3]))
    truth = EncodedDocuments(Ragged.from_rows([[1], [1]]), Ragged.from_rows([[0], [1]]))
    curve = calibration_curve(ranked, truth, bins=2)
    np.testing.assert_allclose(curve, [[0.2, 0.5, 2], [0.8, 0.5, 2]])


def test_confusions_count_wrong_labels_where_others_are_missing() -> None:
    ranked = rankings(([0, 1], [0.9, 0.1]), ([0, 1], [0.9, 0.1]), ([0, 1], [0.9, 0.1]))
    documents = [Document("", ("sport",)), Document("", ("sport", "weather")), Document("", ("winter",))]
    found = confusions(label_model(), ranked, documents)
    assert [(row.predicted, row.true, row.documents) for row in found] == [
        ("weather", "sport", 1),
        ("weather", "winter", 1),
    ]


def test_the_worst_documents_are_the_surest_mistakes() -> None:
    ranked = rankings(([0, 1], [0.6, 0.1]), ([0, 1], [0.9, 0.1]), ([0, 1], [0.9, 0.1]), ([0, 1], [0.9, 0.1]))
    documents = [
        Document("mild", ("sport",)),
        Document("bad", ("winter",), "7"),
        Document("none", ()),
        Document("good", ("weather",)),
    ]
    found = worst_documents(label_model(), ranked, documents, np.array([0.0, 0.0, 1.0]), count=2)
    assert [(row.id, row.text) for row in found] == [("7", "bad"), ("document 1", "mild")]
    assert found[0].predicted == (("weather", 0.9), ("sport", 0.1))


def test_words_are_named_where_labels_can_be_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("nlpcapsule.explain")
    word = SimpleNamespace(word="<w>")
    module.explain = lambda model, text, labels: SimpleNamespace(  # type: ignore[attr-defined]
        labels=[SimpleNamespace(label=label, words=[word]) for label in labels]
    )
    module.__spec__ = SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "nlpcapsule.explain", module)
    page = evaluation_html(evaluate_for_report(label_model(), DOCUMENTS, {}))
    assert "because of: &lt;w&gt;" in page


def test_the_command_writes_the_figures_that_it_prints(tmp_path: Path) -> None:
    save_model(label_model(), tmp_path / "model")
    data = tmp_path / "data.jsonl"
    data.write_text(
        "".join(json.dumps({"text": row.text, "labels": row.labels}) + "\n" for row in DOCUMENTS),
        encoding="utf-8",
    )
    report, plain, figures = tmp_path / "report.html", tmp_path / "plain.json", tmp_path / "with.json"
    assert run_command("evaluate", tmp_path / "model", data, "--json", plain, "-q").code == 0
    done = run_command("evaluate", tmp_path / "model", data, "--report", report, "--json", figures, "-q")
    assert done.code == 0, done.err
    assert json.loads(plain.read_text()) == json.loads(figures.read_text())
    precision = json.loads(plain.read_text())["P@1"]
    assert f"<td>{100 * precision:.1f}</td>" in report.read_text(encoding="utf-8")
    inside = run_command("evaluate", tmp_path / "model", data, "--report", tmp_path / "model" / "r.html")
    assert_refused(inside, "lies in the model folder")


def test_an_answer_model_has_no_report(tmp_path: Path) -> None:
    save_model(answer_model(), tmp_path / "model")
    done = run_command("evaluate", tmp_path / "model", tmp_path / "none", "--report", tmp_path / "r.html")
    assert_refused(done, "--report is for models that rank labels")


def test_every_model_folder_has_a_card(tmp_path: Path) -> None:
    save_model(label_model(), tmp_path / "labels")
    save_model(answer_model(), tmp_path / "answers")
    card = (tmp_path / "labels" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert f"| labels | {len(LABELS)} |" in card
    assert "| training documents | 9 |" in card
    assert "`weather`" in card
    assert "Ranks answers" in (tmp_path / "answers" / "MODEL_CARD.md").read_text(encoding="utf-8")
    manifest = json.loads((tmp_path / "labels" / "manifest.json").read_text(encoding="utf-8"))
    assert "MODEL_CARD.md" in manifest["sha256"]
