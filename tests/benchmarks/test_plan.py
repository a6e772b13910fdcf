"""Every table's plan can be read and run, and has the paper's figures as the paper printed them."""

import re
from dataclasses import replace

import pytest

from benchmarks.cell import Cell
from benchmarks.pecos import PECOS, PecosSettings
from benchmarks.plan import read_plan
from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError

TABLES = ("main-table", "low-resource", "routing-comparison", "paper-parts", "fusion", "answer-selection")
BUDGETS = ("full", "smoke")

XML_CNN = {"EUR-Lex": [75.65, 61.81, 50.90], "RCV1": [96.86, 81.11, 56.07]}
CAP_ZHAO = {"EUR-Lex": "out of memory", "RCV1": [96.63, 81.02, 56.12]}
PRINTED = {
    "main-table": {
        "FastXML": {"EUR-Lex": [68.12, 57.93, 48.97], "RCV1": [94.62, 78.40, 54.82]},
        "PD-Sparse": {"EUR-Lex": [72.10, 57.74, 47.48], "RCV1": [95.16, 79.46, 55.61]},
        "fastText": {"EUR-Lex": [71.51, 60.37, 50.41], "RCV1": [95.40, 79.96, 55.64]},
        "Bow-CNN": {"EUR-Lex": [64.99, 51.68, 42.32], "RCV1": [96.40, 81.17, 56.74]},
        "CNN-Kim": {"EUR-Lex": [68.35, 54.45, 44.07], "RCV1": [93.54, 76.15, 52.94]},
        "XML-CNN": XML_CNN,
        "XML-CNN as released, linear": XML_CNN,
        "Cap-Zhao A": CAP_ZHAO,
        "Cap-Zhao B": CAP_ZHAO,
        "NLP-Capsule, KDE (paper)": {"EUR-Lex": [80.20, 65.48, 52.83], "RCV1": [97.05, 81.27, 56.33]},
        "NLP-Capsule, adaptive KDE (paper)": {"EUR-Lex": [80.62, 65.61, 53.66]},
    },
    "low-resource": {
        "NLP-Capsule, KDE (paper)": {"EUR-Lex": [73.69, 74.83, 77.26, 77.68, 79.45, 80.20]},
    },
    "routing-comparison": {
        "paper, dynamic (Sabour)": {"EUR-Lex": [79.14, 64.33, 51.85]},
        "paper, KDE (Zhang)": {"EUR-Lex": [80.20, 65.48, 52.83]},
        "paper, adaptive KDE": {"EUR-Lex": [80.62, 65.61, 53.66]},
    },
    "answer-selection": {
        "CNN+LR, unigram": {"TREC QA": [54.70, 63.29]},
        "CNN+LR, bigram": {"TREC QA": [56.93, 66.13]},
        "CNN (Severyn)": {"TREC QA": [66.91, 68.80]},
        "CNTN": {"TREC QA": [65.80, 69.78]},
        "LSTM, one layer": {"TREC QA": [62.04, 66.85]},
        "LSTM, two layers": {"TREC QA": [59.75, 65.33]},
        "MV-LSTM": {"TREC QA": [64.88, 68.24]},
        "NTN-LSTM": {"TREC QA": [63.40, 67.72]},
        "HD-LSTM": {"TREC QA": [67.44, 75.11]},
        "Capsule-Zhao": {"TREC QA": [73.63, 70.12]},
        "NLP-Capsule (paper)": {"TREC QA": [77.73, 74.16]},
    },
}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("table", TABLES)
def test_every_cell_has_a_valid_configuration(table, budget):
    plan = read_plan(table, budget)
    cells = plan.cells()
    assert {cell.system for cell in cells} == {row["name"] for row in plan.systems}
    for cell in cells:
        if cell.model == PECOS:
            assert PecosSettings.model_validate(cell.settings)
            continue
        assert cell.config.model.name == cell.model
        assert cell.config.training.seed == cell.seed


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("table", TABLES)
def test_names_of_cells_are_unique_and_safe_as_file_names(table, budget):
    names = [cell.name for cell in read_plan(table, budget).cells()]
    assert len({name.lower() for name in names}) == len(names)  # some file systems do not see the case
    for name in names:
        assert re.fullmatch(r"[a-z0-9]+/[A-Za-z0-9][A-Za-z0-9._-]*", name), name


@pytest.mark.parametrize("table", TABLES)
def test_a_smoke_run_needs_no_data_and_one_seed(table):
    plan = read_plan(table, "smoke")
    assert plan.is_smoke
    assert {(cell.data, cell.seed) for cell in plan.cells()} == {("sample", 1)}


def test_a_smoke_run_leaves_out_only_what_the_package_does_not_bring():
    for table in TABLES:
        full, smoke = ({row["name"] for row in read_plan(table, budget).systems} for budget in BUDGETS)
        needs_more = {
            "MiniLM bi-encoder, not trained further",
            "MiniLM cross-encoder",
            "MiniLM embeddings with logistic regression",
            "hybrid of MiniLM with a linear head",
            "label-query on MiniLM",
            "hybrid on MiniLM",
            "PECOS",  # another Python
            "hybrid with label names",
            "hybrid on MiniLM with label names",
        }
        assert full - smoke == full & needs_more


def test_the_main_table_has_three_data_sets_and_three_seeds_where_seeds_matter():
    plan = read_plan("main-table")
    cells = plan.cells()
    assert {cell.data for cell in cells} == {"eurlex15k", "microthesauri", "reuters"}

    def seeds(system):
        return {cell.seed for cell in cells if cell.system == system}

    varying = (
        "XML-CNN",
        "XML-CNN, twice as wide",
        "NLP-Capsule, KDE (paper)",
        "NLP-Capsule, adaptive KDE (paper)",
        "NLP-Capsule, adaptive KDE (as released)",
        "label-query",
    )
    for system in varying:
        assert seeds(system) == {1, 2, 3}, system
    assert seeds("FastXML") == seeds("Cap-Zhao A") == seeds("one-vs-rest") == {1}
    # One seed of all on each data set, two more of these; one of them is on the first data set alone.
    assert len(cells) == 3 * (17 + 2 * len(varying)) - 2 * 3
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)  # every system early


def test_training_fractions_go_from_half_to_all():
    assert {cell.fraction for cell in read_plan("low-resource").cells()} == {0.5, 0.6, 0.7, 0.8, 0.9, 1.0}
    smoke = read_plan("low-resource", "smoke")
    assert smoke.fractions == (0.5, 1.0)
    assert smoke.paper_fractions == (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    for table in set(TABLES) - {"low-resource", "fusion"}:
        assert {cell.fraction for cell in read_plan(table).cells()} == {1.0}


def test_a_row_may_keep_to_some_fractions():
    by_system = {}
    for cell in read_plan("fusion").cells():
        by_system.setdefault(cell.system, set()).add(cell.fraction)
    assert by_system["one-vs-rest"] == {0.5, 1.0}
    assert by_system["label-query"] == {1.0}


def test_rows_of_the_fusion_table_are_hybrids_where_they_say_so():
    for cell in read_plan("fusion").cells():
        if cell.model != "pecos":
            is_hybrid = cell.system.startswith("hybrid")
            assert (cell.model == "hybrid") == is_hybrid
            assert cell.config.lexical == ("one-vs-rest" if is_hybrid else None)
    networks = {cell.system: cell.config.network.name for cell in read_plan("fusion", "smoke").cells()}
    assert networks["hybrid"] == networks["label-query"] == "label-query"
    assert networks["hybrid of paper"] == "paper"


def test_a_small_hybrid_is_as_small_as_its_network():
    small = {cell.system: cell.config for cell in read_plan("fusion", "smoke").cells()}
    assert small["hybrid"].network == small["label-query"].network
    assert small["hybrid of paper"].network.capsule_size == 8


def test_a_transformer_on_answers_is_measured_with_the_defaults_it_brings():
    measured = read_plan("answer-selection").cells(only=["label-query on MiniLM"])[0].config
    given = {"encoder": measured.transformer, "loss": "pairwise", "training.seed": measured.training.seed}
    assert measured == Config.build("answers", overrides=given)


def test_rows_of_the_routing_comparison_differ_in_the_routing_or_in_what_they_say_alone():
    systems = read_plan("routing-comparison").systems
    for model in ("paper", "label-query"):
        rows = [row for row in systems if row["model"] == model]
        for row in rows:
            dropped = {row["settings"].pop(key, None) for key in ("word_dropout", "token_dropout")}
            assert dropped == ({0.1, 0.2} if "less dropout" in row["name"] else {None}), row["name"]
            row["settings"].pop("checkpoint_epochs", None)
            if "learning rate" in row["name"]:
                assert row["name"].endswith(f"{row['settings'].pop('learning_rate')}")
        less = [row["settings"] for row in rows if "less dropout" in row["name"]]
        rows = [row["settings"] for row in rows if "less dropout" not in row["name"]]
        assert all(settings in rows for settings in less)
        varied = ("routing", "iterations", "condensed")
        rest = [{key: row[key] for key in row if key not in varied} for row in rows]
        assert all(row == rest[0] for row in rest)
        assert len({tuple(row.get(key) for key in varied) for row in rows}) == len(rows) > 4


def test_each_part_of_paper_is_changed_by_itself():
    whole, *changed = read_plan("paper-parts").cells()
    assert whole.config.model.votes == "pair"
    differences = {}
    for cell in changed:
        differences[cell.system] = {
            f"{section}.{key}"
            for section in Config.SECTIONS
            for key, value in getattr(cell.config, section)
            if value != getattr(getattr(whole.config, section), key)
        }
    assert all(differences.values())
    two = differences.pop(
        "one matrix per label"
    )  # which starts long: with long capsules, so would every label
    assert two == {"model.votes", "model.condensed_length"}
    assert all(len(changes) == 1 for changes in differences.values()), differences


def test_a_small_system_keeps_what_its_row_says_it_must():
    small = read_plan("routing-comparison", "smoke").systems
    condensed = {row["name"]: row["settings"]["condensed"] for row in small}
    assert condensed["label-query, KDE, without compression"] == 0
    assert condensed["label-query, KDE"] == 16


def test_seeds_and_systems_can_be_asked_for():
    cells = read_plan("routing-comparison").cells(seeds=2, only=["label-query, KDE"])
    assert [(cell.system, cell.seed) for cell in cells] == [("label-query, KDE", 1), ("label-query, KDE", 2)]


def test_an_unknown_system_is_refused_with_a_suggestion():
    with pytest.raises(ConfigError, match=r"main-table has no system 'XML-CN': did you mean 'XML-CNN'\?"):
        read_plan("main-table").cells(only=["XML-CN"])


@pytest.mark.parametrize("table", TABLES)
def test_the_plan_has_the_figures_that_the_paper_printed(table):
    systems = read_plan(table).systems
    assert {row["name"]: row["paper"] for row in systems if "paper" in row} == PRINTED.get(table, {})


@pytest.mark.parametrize(
    ("table", "length"),
    [("main-table", 3), ("routing-comparison", 3), ("low-resource", 6), ("answer-selection", 2)],
)
def test_printed_figures_belong_to_a_known_data_set_and_fill_its_columns(table, length):
    plan = read_plan(table)
    assert plan.paper_data.keys() == set(plan.data)
    for row in plan.systems:
        for where, printed in row.get("paper", {}).items():
            assert where in plan.paper_data.values()
            assert isinstance(printed, str) or len(printed) == length


def test_the_fingerprint_tells_settings_apart_and_not_the_order_they_are_written_in():
    def cell(**settings):
        return Cell("labels", "sample", "XML-CNN", "xml-cnn", settings, 1)

    assert cell(filters=8, bottleneck=4).fingerprint == cell(bottleneck=4, filters=8).fingerprint
    assert cell(filters=8).fingerprint != cell(filters=9).fingerprint
    assert cell(filters=8).name != cell(filters=9).name


def test_fewer_seeds_may_be_run_on_a_data_set_unless_more_are_asked_for():
    plan = replace(read_plan("main-table"), seeds_on={"reuters": 1})

    def seeds_of(cells, data):
        return {cell.seed for cell in cells if cell.data == data and cell.system == "label-query"}

    assert seeds_of(plan.cells(), "eurlex15k") == {1, 2, 3}
    assert seeds_of(plan.cells(), "reuters") == {1}
    assert seeds_of(plan.cells(seeds=2), "reuters") == {1, 2}


def test_a_plan_says_on_which_data_sets_fewer_seeds_are_run():
    plan = read_plan("fusion")
    assert plan.seeds_on
    for data, seeds in plan.seeds_on.items():
        assert {cell.seed for cell in plan.cells() if cell.data == data} == set(range(1, seeds + 1))
