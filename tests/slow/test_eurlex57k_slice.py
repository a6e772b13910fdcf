"""Every network with every routing trains and evaluates on real documents, from the command line."""

import gzip
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

DATA = Path(os.environ.get("NLPCAPSULE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "eurlex57k"
CAPSULE_ROUTINGS = ("dynamic", "em", "kde", "kde-em", "adaptive-kde")
NETWORKS = [
    *(("paper", routing) for routing in CAPSULE_ROUTINGS),
    ("official", None),
    ("hybrid", "kde"),
    *(("label-query", routing) for routing in ("dot", "kde", "adaptive-kde")),
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"EURLEX57K is not at {DATA}"),
]


@pytest.fixture(scope="module")
def slices(tmp_path_factory):
    """1,000 training and 200 held-out documents, spread over the whole files."""
    folder = tmp_path_factory.mktemp("eurlex")
    for name, step, count in (("train", 45, 1000), ("dev", 30, 200)):
        with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as source:
            rows = list(islice(source, 0, step * count, step))
        assert len(rows) == count
        (folder / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8")
    return folder


def nlpcapsule(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "nlpcapsule.cli.app", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("network", "routing"), NETWORKS)
def test_network_and_routing_train_and_evaluate(network, routing, slices, tmp_path):
    model, figures = tmp_path / "model", tmp_path / "figures.json"
    settings = ["--set", "epochs=1", "--set", "max_tokens=200", "--quiet"]
    settings += [] if routing is None else ["--set", f"routing={routing}"]
    nlpcapsule("train", slices / "train.jsonl", "--output", model, "--model", network, *settings)
    nlpcapsule("evaluate", model, slices / "dev.jsonl", "--json", figures)
    measured = json.loads(figures.read_text())
    assert 0 <= measured["P@1"] <= 1
    assert measured["documents"] == 200
