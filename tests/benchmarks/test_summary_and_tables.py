"""Finished cells are put together faithfully; pages and pictures say what was found and printed."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from made_up_cells import DOCUMENTS, write_cell

from benchmarks.answer_tables import ANSWER_SELECTION, answers_markdown, answers_plots
from benchmarks.label_tables import (
    FIGURES,
    LOW_RESOURCE,
    MAIN_TABLE,
    fractions_markdown,
    fractions_plots,
    make_from_plan,
    systems_markdown,
    systems_plots,
)
from benchmarks.plan import read_plan
from benchmarks.summary import summarise
from benchmarks.table import Options
from nlpcapsule.compare.record import LOWER_BOUND
from nlpcapsule.errors import NlpCapsuleError


def made_up(table, folder, levels, data=None, fractions=None, budget="full"):
    """The record of a table of which only some systems have been run."""
    plan = read_plan(table, budget)
    for cell in plan.cells():
        wanted = data is None or cell.data in data
        if cell.system in levels and wanted and (fractions is None or cell.fraction in fractions):
            write_cell(cell, folder, levels[cell.system] * (0.8 + 0.2 * cell.fraction))
    summary = summarise(plan, plan.cells(), folder)
    return {"table": table, "command": f"python -m benchmarks reproduce {table}", **summary}


def rows_of(page, heading):
    """First column → cells, of the table under a heading."""
    lines = page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0].splitlines()
    table = [
        [field.strip() for field in line.strip("|").split("|")] for line in lines if line.startswith("|")
    ]
    columns = table[0]
    return {row[0]: dict(zip(columns, row, strict=True)) for row in table[2:]}


LABELS = {"FastXML": 0.55, "XML-CNN": 0.7, "label-query": 0.8}
ANSWERS = {"BM25": 0.5, "label-query": 0.8}
AS_PRINTED = "NLP-Capsule, KDE (paper)"


@pytest.fixture(scope="module")
def main_table(tmp_path_factory):
    return made_up("main-table", tmp_path_factory.mktemp("cells"), LABELS, data=["eurlex15k", "reuters"])


@pytest.fixture(scope="module")
def low_resource(tmp_path_factory):
    levels = {AS_PRINTED: 0.6, "XML-CNN": 0.7}
    return made_up("low-resource", tmp_path_factory.mktemp("cells"), levels, fractions=[0.6, 1.0])


@pytest.fixture(scope="module")
def answer_selection(tmp_path_factory):
    return made_up("answer-selection", tmp_path_factory.mktemp("cells"), ANSWERS)


def test_means_and_deviations_over_seeds(tmp_path):
    plan = read_plan("main-table")
    cells = [cell for cell in plan.cells() if cell.system == "XML-CNN" and cell.data == "eurlex15k"]
    means = [
        float(write_cell(cell, tmp_path, level)[0].mean())
        for cell, level in zip(cells, (0.2, 0.5, 0.9), strict=True)
    ]
    found = summarise(plan, plan.cells(), tmp_path)["results"]["eurlex15k"]["1"]["XML-CNN"]
    assert found["seeds"] == [1, 2, 3]
    assert found["figures"]["P@1"]["mean"] == pytest.approx(sum(means) / 3)
    square = sum((mean - sum(means) / 3) ** 2 for mean in means) / 2
    assert found["figures"]["P@1"]["deviation"] == pytest.approx(square**0.5)
    assert found["loss by epoch"] == [[2.0, 1.0]] * 3
    assert found["training seconds"] == [1.5] * 3
    assert found["best rival"] is None
    assert found["difference to the best rival"] is None


def test_seconds_are_a_lower_bound_where_those_of_any_seed_are(tmp_path):
    plan = read_plan("main-table")
    cells = [cell for cell in plan.cells() if cell.system == "XML-CNN" and cell.data == "eurlex15k"]
    for cell in cells:
        write_cell(cell, tmp_path, 0.5)
    assert LOWER_BOUND not in summarise(plan, cells, tmp_path)["results"]["eurlex15k"]["1"]["XML-CNN"]
    path = tmp_path / f"{cells[1].name}.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**record, LOWER_BOUND: True}), encoding="utf-8")
    assert summarise(plan, cells, tmp_path)["results"]["eurlex15k"]["1"]["XML-CNN"][LOWER_BOUND] is True


def test_the_difference_to_the_best_rival_is_paired_over_documents(tmp_path):
    plan = read_plan("main-table")
    scores = {
        (cell.system, cell.seed): write_cell(cell, tmp_path, LABELS[cell.system])
        for cell in plan.cells()
        if cell.system in LABELS and cell.data == "eurlex15k"
    }
    systems = summarise(plan, plan.cells(), tmp_path)["results"]["eurlex15k"]["1"]
    assert {name: system["best rival"] for name, system in systems.items()} == {
        "FastXML": "label-query",
        "XML-CNN": "label-query",
        "label-query": "XML-CNN",
    }
    ours, theirs = (
        np.mean([scores[name, seed] for seed in (1, 2, 3)], axis=0) for name in ("label-query", "XML-CNN")
    )
    paired = ours - theirs  # (4, documents)
    draws = np.random.default_rng(5).choice(paired, size=(4_000, DOCUMENTS), axis=1).mean(axis=2)
    for row, figure in enumerate(("P@1", "P@3", "P@5", "nDCG@5")):
        found = systems["label-query"]["difference to the best rival"][figure]
        assert found["difference"] == pytest.approx(paired[row].mean(), abs=1e-6)
        low, high = np.percentile(draws[row], [2.5, 97.5])
        assert (found["low"], found["high"]) == pytest.approx((low, high), abs=0.02)


def test_a_cell_with_other_settings_does_not_count(tmp_path):
    plan = read_plan("main-table")
    cell = next(cell for cell in plan.cells() if cell.system == "XML-CNN")
    write_cell(replace(cell, settings={"filters": 1}), tmp_path, 0.5)
    assert summarise(plan, plan.cells(), tmp_path)["results"] == {}


def test_the_main_table_has_a_row_for_every_planned_system_and_data_set(main_table):
    page = systems_markdown(main_table)
    plan = read_plan("main-table")
    wide = "XML-CNN, twice as wide"
    assert wide in plan.systems_on("eurlex15k")
    assert wide not in plan.systems_on("reuters")
    for data in ("eurlex15k", "microthesauri", "reuters"):
        rows = rows_of(page, data)
        assert list(rows) == plan.systems_on(data)
        for name in rows:
            ran = name in LABELS and data != "microthesauri"
            assert (rows[name]["P@1"] == "not run") is not ran
    found = main_table["results"]["eurlex15k"]["1"]["XML-CNN"]["figures"]
    row = rows_of(page, "eurlex15k")["XML-CNN"]
    for figure in FIGURES:
        assert row[figure] == f"{100 * found[figure]['mean']:.2f} ± {100 * found[figure]['deviation']:.2f}"
    assert row["seeds"] == "3"
    alone = main_table["results"]["reuters"]["1"]["FastXML"]["figures"]["P@1"]["mean"]
    assert rows_of(page, "reuters")["FastXML"]["P@1"] == f"{100 * alone:.2f}"  # one seed has no deviation
    assert row["P@1 against the best rival"].endswith("(label-query)")
    assert "Made by `python -m benchmarks reproduce main-table` on a toaster." in page


def test_the_papers_figures_stand_beside_ours(main_table):
    page = systems_markdown(main_table)
    eurlex, reuters = rows_of(page, "eurlex15k"), rows_of(page, "reuters")
    assert [eurlex["XML-CNN"][f"EUR-Lex P@{k} in the paper"] for k in (1, 3, 5)] == [
        "75.65",
        "61.81",
        "50.90",
    ]
    assert [reuters["XML-CNN"][f"RCV1 P@{k} in the paper"] for k in (1, 3, 5)] == ["96.86", "81.11", "56.07"]
    assert eurlex["Cap-Zhao A"]["EUR-Lex P@1 in the paper"] == "out of memory"
    assert eurlex["label-query"]["EUR-Lex P@1 in the paper"] == ""


def test_training_fractions_have_a_column_each_and_the_papers_row(low_resource):
    page = fractions_markdown(low_resource)
    for figure in ("P@1", "nDCG@5"):
        rows = rows_of(page, f"eurlex15k, {figure}")
        for row in read_plan("low-resource").systems:
            ran = row["name"] in (AS_PRINTED, "XML-CNN")
            for column in ("50%", "60%", "70%", "80%", "90%", "100%"):
                is_missing = rows[row["name"]][column] == "not run"
                assert is_missing is not (ran and column in ("60%", "100%"))
        for fraction, column in (("0.6", "60%"), ("1", "100%")):
            mean = low_resource["results"]["eurlex15k"][fraction]["XML-CNN"]["figures"][figure]["mean"]
            assert rows["XML-CNN"][column] == f"{100 * mean:.2f}"
    printed = rows_of(page, "eurlex15k, P@1")[f"{AS_PRINTED}, EUR-Lex in the paper"]
    assert list(printed.values())[1:] == ["73.69", "74.83", "77.26", "77.68", "79.45", "80.20"]


def test_fewer_fractions_keep_the_papers_figures_in_their_columns(tmp_path):
    record = made_up("low-resource", tmp_path, {"XML-CNN": 0.7}, budget="smoke")
    printed = rows_of(fractions_markdown(record), "sample, P@1")[f"{AS_PRINTED}, EUR-Lex in the paper"]
    assert list(printed.items())[1:] == [("50%", "73.69"), ("100%", "80.20")]


def test_answer_rankers_have_map_with_its_interval_and_mrr(answer_selection):
    rows = rows_of(answers_markdown(answer_selection), "trecqa")
    assert list(rows) == [row["name"] for row in read_plan("answer-selection").systems]
    clean = answer_selection["results"]["trecqa"]["1"]["BM25"]["figures"]["dev-clean"]
    value, low, high = (100 * clean[key]["mean"] for key in ("MAP", "MAP 95% low", "MAP 95% high"))
    assert rows["BM25"]["dev-clean MAP"] == f"{value:.1f} [{low:.1f}, {high:.1f}]"
    assert rows["BM25"]["dev-raw MAP"].startswith(f"{value / 2:.1f} ")
    assert rows["BM25"]["dev-clean MRR"] == "50.0"
    assert rows["BM25"]["dev-clean MAP against the best rival"].endswith("(label-query)")
    assert rows["HD-LSTM"]["dev-clean MAP"] == "not run"
    assert (rows["HD-LSTM"]["MAP in the paper"], rows["HD-LSTM"]["MRR in the paper"]) == ("67.44", "75.11")


def shown_by(picture):
    """The words in a well-formed SVG."""
    root = ET.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return " ".join("".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text"))


def test_plots_name_every_system_that_was_run(main_table, answer_selection):
    pictures = systems_plots(main_table)
    assert pictures.keys() == {"main-table-eurlex15k", "main-table-reuters"}
    for picture in pictures.values():
        words = shown_by(picture)
        assert all(name in words for name in LABELS)
        assert "the paper, on its data" in words
    pictures = answers_plots(answer_selection)
    assert pictures.keys() == {"answer-selection-trecqa"}
    assert all(name in shown_by(pictures["answer-selection-trecqa"]) for name in ANSWERS)


def test_the_fractions_plot_has_a_line_for_the_paper(low_resource):
    words = shown_by(fractions_plots(low_resource)["low-resource-eurlex15k"])
    assert all(name in words for name in (AS_PRINTED, "XML-CNN", f"{AS_PRINTED}, EUR-Lex in the paper"))


@pytest.mark.parametrize(
    ("table", "name"),
    [(MAIN_TABLE, "main_table"), (LOW_RESOURCE, "low_resource"), (ANSWER_SELECTION, "answer_selection")],
)
def test_the_same_record_gives_the_same_bytes(table, name, request):
    record = request.getfixturevalue(name)
    again = json.loads(json.dumps(record))  # as it is read back
    assert table.markdown(again) == table.markdown(record)
    assert table.plots(again) == table.plots(record)


def test_nothing_finished_cannot_be_put_together(tmp_path):
    with pytest.raises(NlpCapsuleError, match=r"no cell of main-table is finished .*leave --no-run out"):
        make_from_plan("main-table", Options(tmp_path, run=False))


def test_a_record_says_how_it_was_made(tmp_path):
    options = Options(tmp_path, data=tmp_path, seeds=1, run=False, commit="abc123")
    cell = read_plan("main-table").cells()[0]
    write_cell(cell, options.cells, 0.5)
    record = make_from_plan("main-table", options)
    assert record["command"] == "python -m benchmarks reproduce main-table --data DIR --seeds 1"
    assert record["commit"] == "abc123"
    assert str(tmp_path) not in json.dumps(record)
