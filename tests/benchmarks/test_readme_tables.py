"""The README's tables say what the results files say."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.readme import comparison_table, pages, with_tables

ROOT = Path(__file__).parents[2]
INTERVALS = {"MAP": 0.5, "MAP 95% low": 0.4, "MAP 95% high": 0.625, "MRR": 0.75, "questions": 65.0}


def over_seeds(figures):
    return {name: {"mean": value, "deviation": 0.0012} for name, value in figures.items()}


LABEL_FIGURES = over_seeds(dict.fromkeys(("P@1", "P@3", "P@5", "nDCG@5", "PSP@5"), 0.6543))
ON_A_GPU = {"hardware": "a toaster", "gpu memory GiB": 1.25, "process memory GiB": 3.0}
ON_A_CPU = {**ON_A_GPU, "gpu memory GiB": None}

RESULTS = {
    "demo": {
        "hardware": "a toaster",
        "seeds": [1],
        "labels": {"test-seen": {"kim-cnn": {"P@1": 0.25, "P@3": 0.5, "P@5": 0.5, "nDCG@5": 0.75}}},
        "answers": {"label-query": INTERVALS},
    },
    "main-table": {
        "paper data": {"eurlex15k": "EUR-Lex"},
        "paper": {"XML-CNN": {"EUR-Lex": [75.65, 61.81, 50.90]}},
        "planned on": {"eurlex15k": ["XML-CNN", "FastXML", "Cap-Zhao A"]},
        "results": {
            "eurlex15k": {
                "1": {
                    "XML-CNN": {**ON_A_GPU, "seeds": [1, 2], "figures": LABEL_FIGURES},
                    "FastXML": {**ON_A_CPU, "seeds": [1], "figures": LABEL_FIGURES},
                }
            }
        },
    },
    "routing-comparison": {
        "paper data": {"eurlex15k": "EUR-Lex"},
        "paper": {"paper, KDE": {"EUR-Lex": [80.20, 65.48, 52.83]}},
        "planned on": {"eurlex15k": ["paper, KDE", "paper, EM"]},
        "results": {
            "eurlex15k": {"1": {"paper, KDE": {**ON_A_GPU, "seeds": [1, 2], "figures": LABEL_FIGURES}}}
        },
    },
    "low-resource": {
        "paper data": {"eurlex15k": "EUR-Lex"},
        "paper": {"XML-CNN": {"EUR-Lex": [73.69, 75.65]}},
        "paper fractions": [0.5, 1.0],
        "planned": ["XML-CNN"],
        "planned fractions": [0.5, 1.0],
        "results": {"eurlex15k": {"0.5": {"XML-CNN": {**ON_A_GPU, "seeds": [1], "figures": LABEL_FIGURES}}}},
    },
    "answer-selection": {
        "paper": {"CNTN": {"TREC QA": [65.80, 69.78]}},
        "planned": ["CNTN", "HD-LSTM"],
        "results": {
            "trecqa": {
                "1": {
                    "CNTN": {
                        "hardware": "a toaster",
                        "seeds": [1],
                        "figures": {
                            "dev-clean": over_seeds(INTERVALS),
                            "dev-raw": over_seeds({**INTERVALS, "MAP": 0.55}),
                        },
                    }
                }
            }
        },
    },
}
ROWS = {
    "demo": ["Labels, test-seen (percent)", "│ kim-cnn │ 25.00 │ 50.00 │", "│ label-query │ 50.00 │"],
    "main-table": [
        "| XML-CNN | 65.43 ± 0.12 | 65.43 ± 0.12 |",
        "| 2 | 1.2 GPU | 75.65 |",
        "| 1 | 3.0 RAM |  |",
        "Not run yet: Cap-Zhao A.",
    ],
    "routing-comparison": ["| paper, KDE | 65.43 ± 0.12 |", "| 80.20 |", "Not run yet: paper, EM."],
    "low-resource": ["| XML-CNN | 65.43 | not run |", "| XML-CNN, EUR-Lex in the paper | 73.69 | 75.65 |"],
    "answer-selection": [
        "| CNTN | 50.0 [40.0, 62.5] | 75.0 | 55.0 [40.0, 62.5] | 75.0 | 65.80 | 69.78 |",
        "Not run yet: HD-LSTM.",
    ],
}


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    for name, record in RESULTS.items():
        (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", RESULTS)
def test_a_table_is_written_between_its_marks_and_nowhere_else(results, name):
    before = f"# Title\n<!-- results: {name} -->\nsomething stale\n<!-- end -->\nThe rest.\n"
    after = with_tables(before, results)
    assert after.startswith(f"# Title\n<!-- results: {name} -->\n")
    assert after.endswith("\n<!-- end -->\nThe rest.\n")
    assert "something stale" not in after
    assert all(row in after for row in [*ROWS[name], f"results/{name}.json", "a toaster"])
    assert with_tables(after, results) == after


@pytest.mark.parametrize("lower_bound", [{}, {"training seconds are a lower bound": True}])
def test_minutes_of_a_training_that_was_killed_on_the_way_are_a_lower_bound(lower_bound):
    figures = (*LABEL_FIGURES, "recall@5 (0 examples)", "recall@5 (1-10 examples)", "ECE@5")
    system = {
        **ON_A_CPU,
        **lower_bound,
        "seeds": [1],
        "figures": over_seeds(dict.fromkeys(figures, 0.5)),
        "training seconds": [90.0],
        "milliseconds per document": [2.0],
        "best rival": None,
    }
    record = {"systems": {"ours": system}, "ours": "ours", "command": "compare", "hardware": "a toaster"}
    assert ("| ≥ 1.5 | 2.0 |" if lower_bound else "| 1.5 | 2.0 |") in comparison_table("eurlex5k", record)


def test_the_command_line_writes_the_tables_into_every_page(results, tmp_path):
    for page in ("README.md", "docs/a.md", "docs/b.md"):
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).write_text("<!-- results: answer-selection -->\n<!-- end -->\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["readme", str(tmp_path)])
    assert result.exit_code == 0, result.exception
    assert [page.name for page in pages(tmp_path)] == ["README.md", "a.md", "b.md"]
    for page in pages(tmp_path):
        assert ROWS["answer-selection"][0] in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", pages(ROOT), ids=lambda page: page.name)
def test_the_projects_pages_agree_with_its_results(page):
    text = page.read_text(encoding="utf-8")
    assert text == with_tables(text, ROOT / "results"), "run: python -m benchmarks readme"


def test_every_table_is_shown_on_a_page():
    shown = "".join(page.read_text(encoding="utf-8") for page in pages(ROOT))
    missing = [name for name in [*RESULTS, "fusion", "summary"] if f"<!-- results: {name} -->" not in shown]
    assert not missing


def test_the_summary_has_few_rows_under_names_that_explain_themselves():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- results: summary -->\n(.*?)<!-- end -->", text, re.DOTALL)[1]
    rows = [line for line in block.splitlines() if line.startswith("| ")]
    assert 5 <= len(rows) - 1 <= 8
    assert any("the default" in row and "91.27" in row for row in rows)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 160
