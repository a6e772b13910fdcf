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
