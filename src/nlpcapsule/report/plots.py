"""The plots of inspections and reports, each returned as the text of an SVG file.

The same numbers give the same bytes: there is no date and no random identifier, and the user's matplotlib
settings are ignored. Text stays text, so that a plot can be searched and read aloud.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.report.iteration_effects import TOP, Changes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

P = ParamSpec("P")

BLUE, ORANGE, GREEN = "C0", "C1", "C2"  # of the style
_STYLE = Path(__file__).with_name("plots.mplstyle")
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not allowed in XML
_MOST_BAR_LABELS = 12
_LONGEST_NAME = 40  # maximum characters of a legend's entry
_LEAST_SPREAD = 1e-3  # losses with a smaller relative difference are drawn as a flat line


def svg(
    draw: Callable[[Axes], None], width: float = 6.4, height: float = 3.8, integer_axis: bool = True
) -> str:
    """Return a plot, sized in inches, as the text of an SVG file; its horizontal axis may count something."""
    from matplotlib import style
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with style.context(["default", _STYLE]), warnings.catch_warnings():
        # Text stays text: the reader's font has the characters that this one lacks.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        axes = figure.add_subplot()
        draw(axes)
        if integer_axis:
            axes.grid(axis="y")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata=_NO_METADATA)
    return _NO_XML.sub("\ufffd", text.getvalue())


def _plot(draw: Callable[Concatenate[Axes, P], None]) -> Callable[P, str]:
    """Turn a function that draws into axes into one that returns an SVG."""

    @wraps(draw)
    def plotted(*args: P.args, **kwargs: P.kwargs) -> str:
        return svg(lambda axes: draw(axes, *args, **kwargs))

    return plotted


@_plot
def iterations_histogram(axes: Axes, iterations: np.ndarray) -> None:
    """Plot how many documents took how many routing iterations, given as (N,)."""
    counts = np.bincount(iterations)  # (most + 1,)
    bars = axes.bar(np.arange(1, len(counts)), counts[1:], width=0.7)
    if len(counts) <= _MOST_BAR_LABELS + 1:
        axes.bar_label(bars, labels=[f"{count:,}" if count else "" for count in counts[1:]], padding=2)
    axes.margins(y=0.12)
    axes.set_xlim(0.3, len(counts) - 0.3)
    axes.set(title="Routing iterations per document", xlabel="routing iterations", ylabel="documents")


@_plot
def instance_curve(
    axes: Axes, agreement: np.ndarray, stop: int | None, most_iterations: int | None = None
) -> None:
    """Plot the agreement score (T,) of one document that was routed beyond its stop (instance level).

    `stop` is None if iterations are fixed. With the maximum, a stop is distinguished from the bound.
    """
    axes.plot(np.arange(1, len(agreement) + 1), agreement, label="agreement score")
    if stop is not None:
        at_bound = most_iterations is not None and stop >= most_iterations
        what = "reached the maximum," if at_bound else "stopped after"
        axes.axvline(stop, color=ORANGE, linestyle="--", label=f"{what} iteration {stop}")
    axes.set(title="Agreement of one document", xlabel="routing iteration", ylabel="agreement score (NAS)")
    axes.legend()


@_plot
def system_curve(axes: Axes, loss_by_iterations: Mapping[int, float]) -> None:
    """Plot the loss per document of a trained network by the iterations of all documents (system level)."""
    numbers, losses = zip(*sorted(loss_by_iterations.items()), strict=True)
    axes.plot(numbers, losses)
    best = min(numbers, key=loss_by_iterations.__getitem__)
    lowest = f"lowest: {loss_by_iterations[best]:.4g} with {best} iteration{'' if best == 1 else 's'}"
    axes.plot(best, loss_by_iterations[best], "s", markersize=10, label=lowest)
    centre, half = (min(losses) + max(losses)) / 2, 0.55 * (max(losses) - min(losses))
    half = max(half, _LEAST_SPREAD * abs(centre), 1e-12)
    axes.set_ylim(centre - half, centre + half)
    xlabel = "routing iterations, the same for all documents"
    axes.set(title="Loss with a fixed number of iterations", xlabel=xlabel, ylabel="loss per document")
    axes.legend()


@_plot
def changes_bars(axes: Axes, changes: Mapping[int, Changes]) -> None:
    """Plot what each iteration, from 2 on, changed in the first labels of the documents that took it."""
    numbers = sorted(changes)
    better = np.array([changes[number].first_labels_better for number in numbers])
    worse = np.array([changes[number].first_labels_worse for number in numbers])
    changed = np.array([changes[number].first_labels for number in numbers])
    stack = partial(axes.bar, numbers, width=0.7, edgecolor="white")
    stack(better, color=GREEN, label="more true labels")
    same = changed - better - worse
    stack(same, bottom=better, color=BLUE, hatch="//", label="other labels, as many true")
    bars = stack(worse, bottom=better + same, color=ORANGE, hatch="xx", label="fewer true labels")
    totals = [f"{changes[number].first_labels:,} of {changes[number].documents:,}" for number in numbers]
    axes.bar_label(bars, totals, padding=2, fontsize=9)
    axes.set_ylim(0, 1.15 * max(1, changed.max()))
    axes.set_xlim(numbers[0] - 0.7, numbers[-1] + 0.7)
    title = f"Documents whose first {TOP} labels an iteration changed"
    axes.set(title=title, xlabel="routing iteration", ylabel="documents")
    axes.legend()


@_plot
def probability_lines(axes: Axes, probabilities: Mapping[str, np.ndarray]) -> None:
    """Plot the probabilities of one document's labels if it had stopped after each iteration.

    They are label → (T,), NaN where the label was not among the first.
    """
    for label, values in probabilities.items():
        axes.plot(np.arange(1, len(values) + 1), values, label=_shown(label))
    title = f"First {TOP} labels of one document"
    axes.set(title=title, xlabel="stopped after iteration", ylabel="probability")
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))


@_plot
def training_curves(axes: Axes, histories: Mapping[str, Sequence[Mapping[str, Any]]], metric: str) -> None:
    """Plot a metric by epoch, from `metrics.jsonl`, on held-out documents, in percent, a line per system."""
    for system, records in histories.items():
        points = [(record["epoch"], 100 * record[metric]) for record in records if metric in record]
        if points:
            axes.plot(*zip(*points, strict=True), markersize=4, label=_shown(system))
    if not axes.lines:
        raise NlpCapsuleError(f"no training record has the figure {metric!r}, so there is no curve to draw")
    axes.set(title=f"{metric} on held-out documents by epoch", xlabel="epoch", ylabel=f"{metric} (%)")
    axes.legend()


def calibration_plot(curve: np.ndarray) -> str:
    """Plot the share of right labels by their probability.

    The curve is (bins, 3): mean probability, share that is right, number of labels.
    """

    def draw(axes: Axes) -> None:
        axes.plot([0, 100], [0, 100], color="#777777", linestyle="--", label="calibrated")
        axes.plot(100 * curve[:, 0], 100 * curve[:, 1], color=BLUE, marker="o", label="this model")
        title, xlabel = "Calibration of the first five labels", "stated probability (%)"
        axes.set(title=title, xlabel=xlabel, ylabel="share that is right (%)")
        axes.grid()
        axes.legend()

    return svg(draw, integer_axis=False)


def frequency_plot(recall: Mapping[str, float]) -> str:
    """Plot recall@5 by the number of training documents of labels, given as band → recall."""

    def draw(axes: Axes) -> None:
        bars = axes.bar(list(recall), [100 * value for value in recall.values()], width=0.6, color=BLUE)
        axes.bar_label(bars, fmt="%.1f", padding=2)
        axes.set_ylim(0, 100)
        title, xlabel = "Labels found, by their training documents", "training documents of a label"
        axes.set(title=title, xlabel=xlabel, ylabel="recall@5 (%)")
        axes.grid(axis="y")

    return svg(draw, integer_axis=False)


@_plot
def agreement_plot(axes: Axes, agreement: np.ndarray) -> None:
    """Plot the agreement score by routing iteration: mean over documents that are still routed.

    The agreement is (N, T), NaN once a document has stopped.
    """
    routed = ~np.isnan(agreement)  # (N, T)
    width = int(routed.any(axis=0).sum())
    numbers = np.arange(1, width + 1)
    means = [agreement[routed[:, step], step].mean() for step in range(width)]
    axes.plot(numbers, means, color=BLUE, marker="o", label="agreement score")
    axes.set(title="Agreement by iteration", xlabel="routing iteration", ylabel="agreement score (NAS)")
    right = axes.twinx()
    shares = 100 * routed[:, :width].mean(axis=0)
    right.plot(numbers, shares, color=ORANGE, linestyle="--", marker="s", label="documents still routed")
    right.set_ylabel("documents still routed (%)")
    right.set_ylim(0, 105)
    lines = [*axes.get_lines(), *right.get_lines()]
    axes.legend(lines, [str(line.get_label()) for line in lines])


def _shown(name: str) -> str:
    """Return a name for a legend, shortened if long; matplotlib hides names with a leading underscore."""
    name = _NO_XML.sub("\ufffd", name)
    name = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return f" {name}" if name.startswith("_") else name
