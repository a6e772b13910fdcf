"""A table keeps the rows of its earlier results file that hold still, and no others."""

import json
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest
from made_up_cells import write_cell

from benchmarks.label_tables import make_from_plan
from benchmarks.pecos import PECOS
from benchmarks.plan import read_plan
from benchmarks.summary import summarise
from benchmarks.table import Options
from nlpcapsule.registry import find_system

RESULTS = Path(__file__).parents[2] / "results"
LEVELS = {"FastXML": 0.1, "CNN-Kim": 0.3, "XML-CNN": 0.6, "label-query": 0.9}
DATA = "eurlex15k"


def cells_of(plan, *systems):
    return [cell for cell in plan.cells() if cell.data == DATA and cell.system in systems]


@pytest.fixture
def plan():
    return read_plan("main-table")


@pytest.fixture
def earlier(plan, tmp_path):
    """The table of four systems whose cells are gone."""
    folder = tmp_path / "earlier"
    for cell in cells_of(plan, *LEVELS):
        write_cell(cell, folder, LEVELS[cell.system])
    record = summarise(plan, plan.cells(), folder)
    rmtree(folder)
    return json.loads(json.dumps(record))  # as it is read back


def rows_of(record):
    return record["results"].get(DATA, {}).get("1", {})


def with_setting(record, system, section, key, value):
    place = rows_of(record)[system]["config"]
    for name in section.split("."):
        place = place[name]
    place[key] = value
    return record


def test_rows_without_cells_stay_as_they_were(plan, earlier, tmp_path):
    again = summarise(plan, plan.cells(), tmp_path / "cells", earlier)
    assert again == earlier
    assert list(rows_of(again)) == list(LEVELS)


def test_without_an_earlier_file_there_are_the_finished_cells_alone(plan, tmp_path):
    assert summarise(plan, plan.cells(), tmp_path / "cells")["results"] == {}


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [("model", "embedding_size", 100), ("training", "learning_rate", 0.5), ("text", "max_tokens", 7)],
)
def test_a_row_is_dropped_where_the_plan_asks_for_other_settings(
    plan, earlier, tmp_path, section, key, value
):
    record = with_setting(earlier, "XML-CNN", section, key, value)
    kept = rows_of(summarise(plan, plan.cells(), tmp_path / "cells", record))
    assert list(kept) == ["FastXML", "CNN-Kim", "label-query"]


def test_a_row_is_dropped_where_the_plan_has_it_no_more(plan, earlier, tmp_path):
    fewer = replace(plan, systems=[row for row in plan.systems if row["name"] != "CNN-Kim"])
    kept = rows_of(summarise(fewer, fewer.cells(), tmp_path / "cells", earlier))
    assert list(kept) == ["FastXML", "XML-CNN", "label-query"]


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        pytest.param("training", "seed", 9, id="the seed, which is the cell's"),
        pytest.param("text", "vectors", "elsewhere.txt.gz", id="vectors, which are the data set's"),
        pytest.param("model", "a_setting_of_old", 3, id="a setting that there is no more"),
    ],
)
def test_what_says_nothing_of_the_outcome_drops_no_row(plan, earlier, tmp_path, section, key, value):
    record = with_setting(earlier, "label-query", section, key, value)
    assert "label-query" in rows_of(summarise(plan, plan.cells(), tmp_path / "cells", record))


def test_settings_of_an_encoder_matter_too(tmp_path):
    plan = read_plan("fusion")
    system = "hybrid on MiniLM"
    for cell in cells_of(plan, system):
        write_cell(cell, tmp_path / "earlier", 0.5)
    record = summarise(plan, plan.cells(), tmp_path / "earlier")
    assert system in rows_of(summarise(plan, plan.cells(), tmp_path / "cells", record))
    with_setting(record, system, "model.network.encoder", "encoder_learning_rate", 0.5)
    assert system not in rows_of(summarise(plan, plan.cells(), tmp_path / "cells", record))


def test_files_are_told_by_their_names(tmp_path):
    plan = read_plan("fusion")
    system = "hybrid with label names"
    for cell in cells_of(plan, system):
        write_cell(cell, tmp_path / "earlier", 0.5)
    record = summarise(plan, plan.cells(), tmp_path / "earlier")
    name = rows_of(record)[system]["config"]["text"]["label_names"]
    with_setting(record, system, "text", "label_names", f"/data/elsewhere/{name}")
    assert system in rows_of(summarise(plan, plan.cells(), tmp_path / "cells", record))
    with_setting(record, system, "text", "label_names", "others.json")
    assert system not in rows_of(summarise(plan, plan.cells(), tmp_path / "cells", record))


def test_what_was_run_again_replaces_what_was_there(plan, earlier, tmp_path):
    for cell in cells_of(plan, "XML-CNN"):
        write_cell(cell, tmp_path / "cells", 0.1)
    own = summarise(plan, plan.cells(), tmp_path / "cells")
    again = rows_of(summarise(plan, plan.cells(), tmp_path / "cells", earlier))
    assert list(again) == list(LEVELS)  # in the plan's order
    assert again["XML-CNN"] == rows_of(own)["XML-CNN"] != rows_of(earlier)["XML-CNN"]
    for system in ("FastXML", "CNN-Kim", "label-query"):
        assert again[system]["figures"] == rows_of(earlier)[system]["figures"]


def test_a_row_that_stays_is_not_compared_with_one_that_does_not(plan, earlier, tmp_path):
    before = rows_of(earlier)
    assert before["label-query"]["best rival"] == "XML-CNN"
    assert before["FastXML"]["best rival"] == "label-query"
    for cell in cells_of(plan, "XML-CNN"):
        write_cell(cell, tmp_path / "cells", 0.1)
    again = rows_of(summarise(plan, plan.cells(), tmp_path / "cells", earlier))
    assert again["label-query"]["best rival"] is None  # it was compared with another XML-CNN
    assert again["label-query"]["difference to the best rival"] is None
    assert again["FastXML"] == {**before["FastXML"], "difference to peers": {}}  # the peer is XML-CNN


def test_leads_over_peers_that_are_gone_are_gone_too(tmp_path):
    plan = read_plan("fusion")
    systems = ("one-vs-rest", "Omikuji", "label-query")
    for cell in cells_of(plan, *systems):
        write_cell(cell, tmp_path / "earlier", 0.5)
    record = summarise(plan, plan.cells(), tmp_path / "earlier")
    assert rows_of(record)["label-query"]["difference to peers"].keys() == {"one-vs-rest", "Omikuji"}
    with_setting(record, "Omikuji", "text", "max_tokens", 7)
    kept = rows_of(summarise(plan, plan.cells(), tmp_path / "cells", record))
    assert list(kept) == ["one-vs-rest", "label-query"]
    assert kept["label-query"]["difference to peers"].keys() == {"one-vs-rest"}


def test_the_command_reads_the_file_that_it_wrote_before(plan, earlier, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "main-table.json").write_text(json.dumps(earlier), encoding="utf-8")
    options = Options(out, run=False, commit="abc123")
    for cell in cells_of(plan, "XML-CNN"):
        write_cell(cell, options.cells, 0.1)
    assert list(rows_of(make_from_plan("main-table", options))) == list(LEVELS)


@pytest.mark.parametrize("table", ["main-table", "low-resource", "fusion"])
def test_the_published_rows_of_lexical_systems_stay_under_todays_plan(table, tmp_path):
    published = json.loads((RESULTS / f"{table}.json").read_text(encoding="utf-8"))
    plan = read_plan(table)
    kept = summarise(plan, plan.cells(), tmp_path, published)["results"]
    lexical = [
        row["name"]
        for row in plan.systems
        if row["model"] == PECOS or find_system(row["model"]).lexical is not None
    ]
    found = 0
    for data, parts in published["results"].items():
        for part, systems in parts.items():
            for name in systems.keys() & set(lexical):
                assert kept[data][part][name]["figures"] == systems[name]["figures"]
                found += 1
    assert found
