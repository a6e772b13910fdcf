"""The systems of the table `cost`, and the paper's figures."""

from __future__ import annotations

from typing import Any

from benchmarks.cost_record import Spec

_PER_CLASS = {"votes": "class"}
_NO_COMPRESSION = {"condensed": 0}
_NO_PARTIAL_ROUTING = {"negatives": "all", "candidates": 0}
# Kind, system, model, settings, and the paper's millions of parameters and seconds per batch.
SYSTEMS: tuple[tuple[str, str, str, dict[str, Any], dict[str, float]], ...] = (
    ("labels", "xml-cnn", "xml-cnn", {}, {"parameters": 22.52, "seconds": 0.08}),
    ("labels", "released-xml-cnn", "released-xml-cnn", {}, {}),
    ("labels", "paper", "paper", {}, {"parameters": 14.06, "seconds": 0.25}),
    ("labels", "paper-without-partial-routing", "paper", _NO_PARTIAL_ROUTING, {}),
    # A matrix per pair of 14,272 primary capsules and 3,956 labels would be 58 GB of weights.
    ("labels", "paper-class", "paper", _PER_CLASS, {}),
    ("labels", "paper-class-without-compression", "paper", {**_PER_CLASS, **_NO_COMPRESSION}, {}),
    (
        "labels",
        "paper-class-without-both",
        "paper",
        {**_PER_CLASS, **_NO_COMPRESSION, **_NO_PARTIAL_ROUTING},
        {"seconds": 1.7},
    ),
    ("labels", "label-query", "label-query", {}, {}),
    ("labels", "label-query-partial-routing", "label-query", {"negatives": "uniform", "candidates": 200}, {}),
    ("answers", "hd-lstm", "hd-lstm", {}, {"parameters": 34.51, "seconds": 0.03}),
    ("answers", "paper-answers", "paper", {}, {"parameters": 17.84, "seconds": 0.06}),
    ("answers", "paper-answers-without-compression", "paper", _NO_COMPRESSION, {"seconds": 0.12}),
)
BASES = {"labels": "xml-cnn", "answers": "hd-lstm"}  # the baseline of the comparison
PRINTED = {system: printed for _, system, _, _, printed in SYSTEMS}

_TOKENS = {"full": {"labels": 500, "answers": 64}, "smoke": {"labels": 40, "answers": 12}}
_VECTOR = {"full": 300, "smoke": 24}
_SMALL: dict[str, dict[str, dict[str, Any]]] = {
    "labels": {
        "xml-cnn": {"filters": 8, "bottleneck": 16},
        "released-xml-cnn": {"filters": 4, "bottleneck": 16},
        "paper": {"filters": 4, "condensed": 8, "negative_count": 10, "candidates": 10},
        "label-query": {"filters": 8, "capsule_size": 8, "condensed": 8, "negative_count": 10},
    },
    "answers": {"hd-lstm": {"state_size": 8}, "paper": {"filters": 4, "condensed": 8}},
}
_SMALL_SIZES = {"vocabulary": 300, "labels": 60, "own_labels": 3, "batch": 4, "warm_up": 1, "repeats": 3}


def cost_specs(budget: str = "full") -> list[Spec]:
    """Return all systems, in the table's order.

    Args:
        budget: "full", or "smoke" for the same systems, much smaller.
    """
    is_small = budget == "smoke"
    specs = []
    for kind, system, model, settings, _ in SYSTEMS:
        text = {"max_tokens": _TOKENS[budget][kind], "embedding_size": _VECTOR[budget]}
        own = _SMALL[kind][model] if is_small else {}
        sizes = _SMALL_SIZES if is_small else {}
        specs.append(Spec(system, kind, model, {**text, **own, **settings}, **sizes))
    return specs
