"""A comparison as a page."""

from __future__ import annotations

import pytest

from nlpcapsule.compare.record import LOWER_BOUND
from nlpcapsule.compare.table import markdown


@pytest.mark.parametrize("lower_bound", [{}, {LOWER_BOUND: True}])
def test_seconds_of_a_training_that_was_killed_on_the_way_are_a_lower_bound(
    lower_bound: dict[str, bool],
) -> None:
    system = {
        **lower_bound,
        "figures": {"P@1": 0.5},
        "training seconds": 1234.5,
        "milliseconds per document": 2.0,
        "process memory GiB": 1.0,
        "model MiB": 3.0,
        "hardware": "a toaster",
    }
    record = {
        "kind": "labels",
        "data": "mine-12345678",
        "split": "trained on train.jsonl",
        "sizes": {"labels": 4},
        "seed": 1,
        "systems at a time": 1,
        "ours": "label-query",
        "systems": {"one-vs-rest": system},
        "not measured": {},
        "command": "nlpcapsule compare",
    }
    expected = "≥ 1,234.5" if lower_bound else "1,234.5"
    assert f"| one-vs-rest | {expected} | 2.00 | 1,024 | 3.0 |" in markdown(record)
