"""The load test counts what was answered, what failed, and what was lost."""

import sys

import pytest

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")

from benchmarks import load
from benchmarks.load import _percentiles, _request, batch_costs, load_test
from nlpcapsule import CapsuleClassifier
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.sample import load_documents


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rows = load_documents("train")[:60]
    place = tmp_path_factory.mktemp("model") / "letters"
    CapsuleClassifier("one-vs-rest").fit([row.text for row in rows], [row.labels for row in rows]).save(place)
    return place


@pytest.mark.slow
def test_a_service_under_load_loses_nothing(folder):
    texts = [row.text for row in load_documents("test-seen")[:20]]
    found = load_test(folder, texts, callers=8, seconds=5, workers=1)
    assert found["errors"] == 0
    assert found["feedback lost"] == 0
    assert found["feedback acknowledged"] > 0
    assert found["requests"] == sum(row["requests"] for row in found["latency"].values())


def test_a_service_that_does_not_start_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "module_command", lambda _: [sys.executable, "-c", "exit('no model there')"])
    with pytest.raises(NlpCapsuleError, match=r"(?s)did not start.*no model there"):
        load_test(tmp_path, ["a"], callers=1, seconds=1, workers=1)


def test_the_cost_of_a_batch_is_per_document(folder):
    model = CapsuleClassifier.load(folder).model_
    costs = batch_costs(model, ["rain", "snow"])
    assert set(costs) == {"alone ms", "in a batch of 32 ms", "batch / alone", "added by the batcher ms"}
    assert costs["in a batch of 32 ms"] > 0


def test_callers_send_everything_and_mostly_labels():
    paths = [_request("a", number, turn)[0] for number in range(50) for turn in range(50)]
    assert paths.count("/v1/labels") > paths.count("/v1/feedback") > paths.count("/v1/explain") > 0


def test_percentiles():
    assert _percentiles([0.001] * 99 + [0.1]) == {
        "requests": 100,
        "p50 ms": 1.0,
        "p99 ms": pytest.approx(2, abs=1),
    }
