"""The page of networks joined with words: every system beside every peer, in each data set and fraction."""

import json
import xml.etree.ElementTree as ET

import pytest
from test_summary_and_tables import made_up, rows_of

from benchmarks.cell import cell_path
from benchmarks.fusion_table import FUSION, fusion_markdown
from benchmarks.plan import read_plan
from benchmarks.readme import fusion_table
from benchmarks.summary import summarise

LEVELS = {"one-vs-rest": 0.5, "Omikuji": 0.4, "hybrid": 0.9}


@pytest.fixture
def record(tmp_path):
    return made_up("fusion", tmp_path, LEVELS, data=["eurlex15k"])


def test_systems_are_compared_with_every_peer_that_was_run_on_the_same_documents(record):
    systems = record["results"]["eurlex15k"]["1"]
    ours = systems["hybrid"]
    assert set(ours["difference to peers"]) == {"one-vs-rest", "Omikuji"}  # PECOS was not run
    for figure in ("P@1", "P@3", "P@5", "nDCG@5"):
        found = ours["difference to peers"]["Omikuji"][figure]
        mean = ours["figures"][figure]["mean"] - systems["Omikuji"]["figures"][figure]["mean"]
        assert found["difference"] == pytest.approx(mean)
        assert 0 < found["low"] < found["difference"] < found["high"]
    assert "difference to peers" not in systems["one-vs-rest"]


def test_the_page_has_figures_and_leads_of_all_documents_and_of_half(record):
    page = fusion_markdown(record).replace("\n### ", "\n## ")
    whole = rows_of(page, "eurlex15k")
    half = rows_of(page, "eurlex15k, 50% of the training documents")
    for rows in (whole, half):
        assert {"one-vs-rest", "Omikuji", "hybrid"} == set(rows)
    assert page.count("## How far ahead") == 2
    leads = rows_of(page, "How far ahead, with 95% intervals")
    assert set(leads) == {f"hybrid of {peer}" for peer in ("one-vs-rest", "Omikuji")}
    mean = record["results"]["eurlex15k"]["0.5"]["one-vs-rest"]["figures"]["P@1"]["mean"]
    assert half["one-vs-rest"]["P@1"] == f"{100 * mean:.2f}"
    assert "±" in whole["hybrid"]["P@1"]


@pytest.mark.parametrize("with_threshold", [(1, 2, 3), (), (1, 3)])
def test_a_network_alone_has_f1_only_where_all_seeds_have_a_threshold_of_its_own(tmp_path, with_threshold):
    made_up("fusion", tmp_path, LEVELS, data=["eurlex15k"], fractions={1.0})
    plan = read_plan("fusion")
    for cell in plan.cells():
        path = cell_path(cell, tmp_path)
        if cell.system == "hybrid" and path.exists():
            record = json.loads(path.read_text(encoding="utf-8"))
            record["network alone"] = {**record["figures"], "micro-F1": 0.5, "macro-F1": 0.25}
            if cell.seed in with_threshold:
                record["network alone"]["threshold"] = 0.3
            path.write_text(json.dumps(record), encoding="utf-8")
    record = {"command": "python -m benchmarks reproduce fusion", **summarise(plan, plan.cells(), tmp_path)}
    page = fusion_markdown(record).replace("\n### ", "\n## ")
    row = rows_of(page, "eurlex15k")["hybrid: its network alone"]
    assert row["micro-F1"] == ("50.00 ± 0.00" if len(with_threshold) == 3 else "")
    assert row["P@1"] != ""
    assert ("| 50.00 ± 0.00 |" in fusion_table(record)) is (len(with_threshold) == 3)
    alone = record["results"]["eurlex15k"]["1"]["hybrid"]["network alone"]
    assert ("macro-F1" in alone) is (len(with_threshold) == 3)


def test_the_larger_data_set_is_run_once_and_on_all_its_documents(tmp_path):
    results = made_up("fusion", tmp_path, LEVELS, data=["eurlex57k"])["results"]
    assert list(results) == ["eurlex57k"]
    assert list(results["eurlex57k"]) == ["1"]
    assert results["eurlex57k"]["1"]["hybrid"]["seeds"] == [1]


def test_the_picture_is_of_all_training_documents(record):
    pictures = FUSION.plots(record)
    assert set(pictures) == {"fusion-eurlex15k"}
    assert ET.fromstring(pictures["fusion-eurlex15k"]) is not None


def test_a_record_of_half_the_documents_alone_has_no_picture(tmp_path):
    record = made_up("fusion", tmp_path, LEVELS, fractions={0.5})
    assert FUSION.plots(record) == {}
    assert "50% of the training documents" in fusion_markdown(record)
