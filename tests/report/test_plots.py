"""Figures as SVG text."""

from __future__ import annotations

import sys
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import matplotlib
import numpy as np
import pytest

from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.report.iteration_effects import Changes
from nlpcapsule.report.plots import (
    changes_bars,
    instance_curve,
    iterations_histogram,
    probability_lines,
    system_curve,
    training_curves,
)

HISTORIES = {
    "label-query": [{"epoch": 1, "loss": 3.0, "P@5": 0.4}, {"epoch": 2, "loss": 2.0, "P@5": 0.5}],
    "kim-cnn": [{"epoch": 1, "loss": 4.0, "P@5": 0.3}],
}
CHANGES = {2: Changes(1500, 40, 10, 4, 300, 90, 70), 3: Changes(12, 0, 0, 0, 0, 0, 0)}
PROBABILITIES = {"trade": np.array([0.8, 0.9]), "_" + "x" * 60: np.array([np.nan, 0.1])}
PLOTS: dict[str, Callable[[], str]] = {
    "histogram": lambda: iterations_histogram(np.array([2, 2, 3, 5])),
    "instance": lambda: instance_curve(np.log(np.arange(1, 11)), 4, 10),
    "system": lambda: system_curve({1: 3.5, 2: 2.25, 3: 2.5}),
    "changes": lambda: changes_bars(CHANGES),
    "probabilities": lambda: probability_lines(PROBABILITIES),
    "training": lambda: training_curves(HISTORIES, "P@5"),
}


def texts_in(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(element.itertext()).strip() for element in root.iter() if element.tag.endswith("text")]


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS.keys())
def test_same_numbers_give_the_same_bytes_whatever_the_users_settings(plot: Callable[[], str]) -> None:
    first = plot()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.hashsalt": "mine"}):
        assert plot() == first
    assert "<metadata>" not in first


def test_plots_do_not_use_pyplot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it is now an error
    for plot in PLOTS.values():
        plot()


@pytest.mark.parametrize(
    ("plot", "words"),
    [
        ("histogram", ["Routing iterations per document", "routing iterations", "documents"]),
        ("instance", ["Agreement of one document", "routing iteration", "agreement score (NAS)"]),
        ("system", ["Loss with a fixed number of iterations", "loss per document"]),
        ("training", ["P@5 on held-out documents by epoch", "epoch", "P@5 (%)", "label-query", "kim-cnn"]),
    ],
)
def test_title_and_axes_are_named(plot: str, words: list[str]) -> None:
    assert set(words) <= set(texts_in(PLOTS[plot]()))


def test_histogram_counts_documents() -> None:
    texts = texts_in(iterations_histogram(np.repeat([2, 3, 5], [1234, 70, 7])))
    assert {"1,234", "70", "7"} <= set(texts)


@pytest.mark.parametrize(
    ("stop", "most", "words"),
    [(4, 10, "stopped after iteration 4"), (4, 4, "reached the maximum, iteration 4")],
)
def test_instance_curve_tells_a_stop_from_the_bound(stop: int, most: int, words: str) -> None:
    assert words in texts_in(instance_curve(np.log(np.arange(1, 11)), stop, most))


def test_instance_curve_without_a_stop_says_nothing_of_one() -> None:
    assert not any(
        "stopped" in text or "maximum" in text for text in texts_in(instance_curve(np.arange(10.0), None))
    )


def test_system_curve_names_the_lowest_loss() -> None:
    assert "lowest: 2.25 with 2 iterations" in texts_in(system_curve({1: 3.5, 2: 2.25, 3: 2.5}))


def test_losses_that_hardly_differ_are_drawn_flat() -> None:
    """Otherwise rounding fills the whole height and looks like a finding."""
    labels = texts_in(system_curve({1: 8.0000001, 2: 8.0000002, 3: 8.0000001}))
    assert not any(text.startswith("8.00000") for text in labels)


def test_names_of_systems_are_shown_as_they_are() -> None:
    histories = dict.fromkeys(("a $x^2$ <b>&", "_hidden"), HISTORIES["kim-cnn"])
    assert {"a $x^2$ <b>&", "_hidden"} <= set(texts_in(training_curves(histories, "P@5")))


def test_missing_figure_is_an_error() -> None:
    with pytest.raises(NlpCapsuleError, match="'nDCG@5'"):
        training_curves(HISTORIES, "nDCG@5")


def test_bars_of_changes_say_of_how_many_documents() -> None:
    texts = texts_in(changes_bars(CHANGES))
    assert "300 of 1,500" in texts
    assert "0 of 12" in texts
    assert "fewer true labels" in texts


def test_probability_lines_name_labels_and_cut_long_names() -> None:
    texts = texts_in(probability_lines(PROBABILITIES))
    assert "trade" in texts
    assert "_" + "x" * 38 + "…" in texts


def test_labels_in_characters_that_the_font_lacks_stay_and_nobody_is_warned() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = texts_in(probability_lines({"日本語の法律": np.array([0.8, 0.9])}))
    assert "日本語の法律" in texts


@pytest.mark.parametrize(
    "name", ["bell \x07 and null \x00", "half an emoji \ud83d", "no character \ufffe", "line\nend"]
)
def test_a_name_with_characters_that_xml_cannot_hold_is_drawn_without_them(name: str) -> None:
    for figure in (
        probability_lines({name: np.array([0.8, 0.9])}),
        training_curves({name: HISTORIES["kim-cnn"]}, "loss"),
    ):
        ElementTree.fromstring(figure.encode())
        assert ("\ufffd" in figure) == (name != "line\nend")
