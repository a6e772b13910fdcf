"""The cost table: measured system by system in processes of their own, kept, and put together."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks import cost, cost_cell
from benchmarks.cost import COST, cost_specs
from benchmarks.cost_cell import asked_for, measure
from benchmarks.cost_record import CostRecord
from benchmarks.run_missing import Run
from benchmarks.table import Options
from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError, NlpCapsuleError

SPECS = {spec.system: spec for spec in cost_specs("smoke")}


def canned(spec, milliseconds=10.0, place="a machine"):
    """The record of a system that nobody measured."""
    return {
        "spec": json.loads(json.dumps(spec.__dict__)),
        "parameters": 2_000_000,
        "parameters without word vectors": 500_000,
        "training": {"milliseconds": milliseconds, "batches": 3},
        "inference": {"milliseconds": milliseconds / 2, "batches": 3},
        "peak memory MiB": 100.0,
        "routing iterations": None,
        "hardware": place,
        "nlpcapsule": "0",
        "commit": "abc",
    }


def keep(options, record):
    folder = options.cells / "cost"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{record['spec']['system']}.json").write_text(json.dumps(record), encoding="utf-8")


@pytest.fixture
def options(tmp_path):
    return Options(output=tmp_path, budget="smoke", run=False, commit="abc")


@pytest.fixture
def unlimited(monkeypatch):
    """Measures in this process, where a limit on memory would outlive the test."""
    monkeypatch.setattr(cost_cell, "refuse_more_memory_than_there_is", lambda: None)


@pytest.mark.parametrize("budget", ["smoke", "full"])
def test_every_system_has_settings_that_can_be_built(budget):
    configs = {
        spec.system: Config.build(spec.kind, spec.model, overrides=spec.settings)
        for spec in cost_specs(budget)
    }
    assert len(configs) == 12
    both = configs["paper-class-without-both"]
    assert (both.model.condensed, both.training.negatives, both.inference.candidates) == (0, "all", 0)
    for name, config in configs.items():
        if config.model.name == "paper":
            assert config.model.votes == ("class" if "class" in name else "pair"), name
    partial = configs["paper"]
    assert partial.model.condensed
    assert partial.training.negatives == "batch"
    assert partial.inference.candidates
    assert configs["label-query"].training.negatives == "all"
    assert configs["label-query-partial-routing"].training.negatives == "uniform"


def test_the_full_budget_has_the_sizes_of_the_papers_data():
    spec = next(spec for spec in cost_specs() if spec.system == "paper")
    assert (spec.vocabulary, spec.labels, spec.own_labels, spec.batch) == (50_000, 3_956, 5, 32)
    assert (spec.settings["embedding_size"], spec.settings["max_tokens"]) == (300, 500)


@pytest.mark.parametrize("system", ["xml-cnn", "paper", "paper-class-without-both", "label-query", "hd-lstm"])
@pytest.mark.usefixtures("unlimited")
def test_a_measurement_counts_weights_and_times_batches(system):
    spec = SPECS[system]
    record = measure(spec)
    words = spec.vocabulary * spec.settings["embedding_size"]
    assert record.parameters - record.parameters_without_word_vectors in (words, 2 * words)
    assert record.training["milliseconds"] > 0
    assert record.inference["milliseconds"] > 0
    assert record.training["batches"] == spec.repeats
    assert (record.routing_iterations is not None) == (
        system in ("paper", "paper-class-without-both", "label-query")
    )
    assert CostRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


@pytest.mark.usefixtures("unlimited")
def test_parameters_are_those_of_the_papers_chain():
    spec, settings = SPECS["paper"], SPECS["paper"].settings
    filters, size = settings["filters"], 16
    maps = [(settings["embedding_size"] - width) // 2 + 1 for width in (2, 4, 8)]
    expected = filters * (settings["max_tokens"] * (2 + 4 + 8) + 3)  # filters over all tokens, biases
    expected += 3 * filters * 2 * size  # each filter's w and bias
    expected += filters * sum(maps) * settings["condensed"]  # compression
    expected += spec.labels * settings["condensed"] * size**2  # a matrix per label and condensed capsule
    assert measure(spec).parameters_without_word_vectors == expected


@pytest.mark.usefixtures("unlimited")
def test_slow_batches_are_cut_short():
    record = measure(replace(SPECS["xml-cnn"], repeats=50, seconds=0.0))
    assert record.training["batches"] == 3


@pytest.mark.usefixtures("unlimited")
def test_a_system_too_large_for_memory_is_a_result(monkeypatch):
    error = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 3221225472 bytes."

    def fail(*_):
        raise RuntimeError(error)

    monkeypatch.setattr(cost_cell, "label_loss", fail)
    record = measure(SPECS["xml-cnn"])
    assert record.training == {"out of memory": "asked for 3.00 GiB"}
    assert record.peak_memory_mib is None
    assert record.inference["milliseconds"] > 0
    assert record.parameters > 0


@pytest.mark.usefixtures("unlimited")
def test_another_error_is_not_taken_for_want_of_memory(monkeypatch):
    monkeypatch.setattr(cost_cell, "label_loss", lambda *_: torch.zeros(2) @ torch.zeros(3))
    with pytest.raises(RuntimeError, match="size"):
        measure(SPECS["xml-cnn"])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 6.73 GiB. GPU 0 has"),
            "asked for 6.73 GiB",
        ),
        (MemoryError("Unable to allocate 1.50 GiB for an array with shape (3,)"), "asked for 1.5 GiB"),
        (MemoryError(), "asked for more than there is"),
        (RuntimeError("an illegal memory access was encountered"), None),
    ],
)
def test_what_was_asked_for_is_read_from_the_error(error, words):
    assert asked_for(error) == words


def test_allocations_beyond_the_machine_fail_in_the_measuring_process():
    program = (
        "from benchmarks import cost_cell\nimport torch\n"
        "cost_cell._MEMORY_SHARE = 2e9 / 2**40\ncost_cell.refuse_more_memory_than_there_is()\n"
        "try:\n    torch.empty(2**40)\nexcept RuntimeError as error:\n    print(cost_cell.asked_for(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "asked for 4096.00 GiB"


def test_systems_are_measured_beside_and_only_once(options, monkeypatch):
    wanted = replace(options, run=True, systems=("xml-cnn",))
    ballast = torch.ones(400 * 2**18)  # 400 MiB in this process, which do not count
    record = COST.make(wanted)
    del ballast
    assert record["systems"].keys() == {"xml-cnn"}
    assert record["systems"]["xml-cnn"]["commit"] == "abc"
    assert record["systems"]["xml-cnn"]["ratios"]["training"] == 1
    assert 1 < record["systems"]["xml-cnn"]["peak memory MiB"] < 350
    monkeypatch.setattr(Run, "start", lambda *_: pytest.fail("measured again"))
    again = COST.make(wanted)
    assert again["systems"] == record["systems"]


def test_a_measurement_of_other_sizes_does_not_count(options):
    keep(options, canned(replace(SPECS["xml-cnn"], batch=99)))
    assert COST.make(options)["systems"] == {}


def test_failures_are_named_and_the_others_kept(options, monkeypatch):
    keep(options, canned(SPECS["released-xml-cnn"]))
    monkeypatch.setattr(cost, "checkout_command", lambda *_: [sys.executable, "-c", "exit('it broke')"])
    wanted = replace(options, run=True, systems=("xml-cnn", "released-xml-cnn"))
    with pytest.raises(NlpCapsuleError, match=r"xml-cnn: it broke.*xml-cnn\.log"):
        COST.make(wanted)
    assert COST.make(options)["systems"].keys() == {"released-xml-cnn"}


def test_a_killed_process_is_a_result(options, monkeypatch):
    killed = [sys.executable, "-c", "import os, sys; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(cost, "checkout_command", lambda *_: killed)
    record = COST.make(replace(options, run=True, systems=("paper-class-without-both",)))
    assert "out of memory (killed by the operating system)" in COST.markdown(record)


@pytest.mark.parametrize("name", ["cost", "cost-cpu"])
def test_the_published_records_are_read_and_written_as_they_are(name):
    path = Path(__file__).parents[2] / "results" / f"{name}.json"
    for values in json.loads(path.read_text(encoding="utf-8"))["systems"].values():
        written = CostRecord.from_json(values).to_json()
        assert written == {key: values[key] for key in written}


def test_an_unknown_system_is_refused(options):
    with pytest.raises(ConfigError, match=r"cost has no system 'papper'.*paper"):
        COST.make(replace(options, systems=("papper",)))


def test_ratios_are_to_the_base_of_the_same_machine(options):
    keep(options, canned(SPECS["xml-cnn"], 10.0))
    keep(options, canned(SPECS["paper"], 25.0))
    keep(options, canned(SPECS["label-query"], 40.0, place="another machine"))
    systems = COST.make(options)["systems"]
    assert systems["paper"]["ratios"]["training"] == 2.5
    assert systems["paper"]["paper's ratios"]["seconds"] == pytest.approx(3.12)
    assert systems["label-query"]["ratios"] == {}


def test_the_page_has_ours_beside_the_papers(options):
    keep(options, canned(SPECS["xml-cnn"], 10.0))
    keep(options, canned(SPECS["paper"], 25.0))
    record = COST.make(options)
    assert (record["command"], record["commit"]) == (
        "python -m benchmarks reproduce cost --budget smoke",
        "abc",
    )
    page = COST.markdown(record)
    row = next(line for line in page.splitlines() if line.startswith("| paper |"))
    assert "| 25.0 ms (2.5×) | 12.5 ms (2.5×) | 100 MiB (1×) |" in row
    assert row.endswith("| 14.06M (0.62×) | 0.25 s (3.12×) |")
    assert "| hd-lstm | not measured |" in page
    assert "hardware and batch size" in page
    assert "xml-cnn" in COST.plots(record)["cost-labels"]
