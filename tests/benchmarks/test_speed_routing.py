"""The benchmark of routing: each network is timed with its reference, on what the plan says."""

from dataclasses import replace

import pytest
import torch

from benchmarks.speed import routing
from benchmarks.speed.routing import CASES, Batches, speed_of_routing
from nlpcapsule.config import Config
from nlpcapsule.export.masked_routing import route_labels_masked
from nlpcapsule.networks.build import build_network

BATCHES = Batches(documents=3, tokens=20, labels=40)


def test_ratios_are_to_the_reference_of_the_same_run(monkeypatch):
    reference = CASES["xml-cnn"]
    rows = {"few": routing.Case("xml-cnn", "xml-cnn", settings={"filters": 8}), "xml-cnn": reference}
    monkeypatch.setattr(routing, "CASES", rows)
    found = {row["system"]: row for row in speed_of_routing(BATCHES, bf16=False, compiled=False, rounds=1)}
    assert found["xml-cnn"]["launched_ratio"] == 1
    shares = found["few"]["launched_milliseconds"] / found["xml-cnn"]["launched_milliseconds"]
    assert found["few"]["launched_ratio"] == pytest.approx(shares)
    assert found["few"]["peak_memory_mib"] > 0


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_case_is_routed_to_its_labels(case):
    tokens, outputs, targets = BATCHES.draw(replace(case, labels=case.labels and 7))
    assert tokens.shape == (3, 20)
    assert targets.shape == (3, 7 if case.labels else 40)
    if case.labels:
        assert outputs.shape == ((7,) if case.shared else (3, 7))
        assert all(len(set(row)) == 7 for row in outputs.reshape(-1, 7).tolist())


def test_routing_that_never_waits_gives_the_same_logits():
    config = Config.build("labels", "label-query", overrides={"condensed": 8, "max_tokens": 20})
    network = build_network(config, 50, label_count=30).eval()
    tokens, outputs = torch.randint(2, 50, (4, 20)), torch.arange(9)
    with torch.no_grad():
        expected = network(tokens, outputs).logits
        network.route_labels = route_labels_masked
        found = network(tokens, outputs).logits
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_the_released_network_convolves_as_released_and_gives_the_same_logits(monkeypatch):
    called, logits = [], {}
    convolve = torch.nn.Conv1d.forward
    monkeypatch.setattr(
        torch.nn.Conv1d, "forward", lambda layer, words: called.append(1) or convolve(layer, words)
    )
    loss = routing.label_loss
    for as_released in (True, False):
        monkeypatch.setattr(
            routing,
            "label_loss",
            lambda kind, found, *rest, key=as_released: (
                logits.setdefault(key, found) is None or loss(kind, found, *rest)
            ),
        )
        case = replace(CASES["released-xml-cnn"], as_released=as_released)
        routing._step(case, BATCHES, bf16=False, compiled=False)()
        assert len(called) == 3  # one per width, and none more
    torch.testing.assert_close(logits[True], logits[False], atol=1e-4, rtol=1e-4)


def test_a_second_ratio_is_to_the_reference_with_the_same_convolution(monkeypatch):
    some = {"filters": 4, "embedding_size": 20}
    cases = {
        "released": routing.Case(None, "released-xml-cnn", settings=some, as_released=True),
        "faster": routing.Case("released", "released-xml-cnn", settings=some),
        "other": routing.Case("released", "released-xml-cnn", settings=some, alike="faster"),
    }
    monkeypatch.setattr(routing, "CASES", cases)
    rows = {row["system"]: row for row in speed_of_routing(BATCHES, bf16=False, compiled=False, rounds=1)}
    shares = rows["other"]["launched_milliseconds"] / rows["faster"]["launched_milliseconds"]
    assert rows["other"]["launched_ratio_alike"] == pytest.approx(shares)
    assert "launched_ratio_alike" not in rows["faster"]
