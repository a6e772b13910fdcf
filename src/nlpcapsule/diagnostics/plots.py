"""The plots of an inspection and of a report, each returned as the text of an SVG file.

The same numbers give the same bytes: there is no date and no random identifier, and the user's matplotlib
settings are ignored. Text stays text, so that a plot can be searched and read aloud.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nlpcapsule.diagnostics.iteration_effects import TOP, Changes
from nlpcapsule.errors import NlpCapsuleError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, _INK = "#1f5fa8", "#b5460f", "#333333"  # dark enough to read on white
# Lines differ in colour, dash and marker, so that colour is never the only difference.
LINES = (
    (BLUE, "-", "o"),
    (ORANGE, "--", "s"),
    ("#1b7a4b", "-.", "^"),
    ("#7a3e9d", ":", "D"),
    ("#8a6d00", "-", "v"),
    ("#555555", "--", "x"),
)
_STYLE = {
    "svg.hashsalt": "nlpcapsule",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a system's name may contain a dollar sign
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#dddddd",
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.12,
}
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not allowed in XML
_MOST_BAR_LABELS = 12
_LONGEST_NAME = 40  # maximum characters of a legend's entry
_LEAST_SPREAD = 1e-3  # losses with a smaller relative difference are drawn as a flat line


def iterations_histogram(iterations: np.ndarray) -> str:
    """Plot how many documents took how many routing iterations.

    Args:
        iterations: (N,) iterations of each document.
    """
    counts = np.bincount(iterations)  # (most + 1,)
    numbers = np.arange(1, len(counts))

    def draw(axes: Axes) -> None:
        bars = axes.bar(numbers, counts[1:], width=0.7, color=BLUE)
        if len(numbers) <= _MOST_BAR_LABELS:
            axes.bar_label(bars, labels=[f"{count:,}" if count else "" for count in counts[1:]], padding=2)
        axes.margins(y=0.12)
        axes.set_xlim(0.3, len(counts) - 0.3)
        axes.set(title="Routing iterations per document", xlabel="routing iterations", ylabel="documents")

    return svg(draw)


def instance_curve(agreement: np.ndarray, stop: int | None, most_iterations: int | None = None) -> str:
    """Plot the agreement score of one document that was routed beyond its stop (instance level).

    Args:
        agreement: (T,) its score after each iteration; NaN leaves a gap.
        stop: The iteration after which it stopped; None if iterations are fixed.
        most_iterations: The maximum iterations, to distinguish a stop from the bound.
    """

    def draw(axes: Axes) -> None:
        axes.plot(
            np.arange(1, len(agreement) + 1), agreement, color=BLUE, marker="o", label="agreement score"
        )
        if stop is not None:
            at_bound = most_iterations is not None and stop >= most_iterations
            what = "reached its bound," if at_bound else "stopped by itself after"
            axes.axvline(stop, color=ORANGE, linestyle="--", label=f"{what} iteration {stop}")
        axes.set(
            title="Agreement of one document", xlabel="routing iteration", ylabel="agreement score (NAS)"
        )
        axes.legend(frameon=False)

    return svg(draw)


def system_curve(loss_by_iterations: Mapping[int, float]) -> str:
    """Plot the loss of a trained network by the number of iterations of all documents (system level).

    Args:
        loss_by_iterations: Iterations → loss per document.
    """
    numbers = sorted(loss_by_iterations)
    losses = [loss_by_iterations[number] for number in numbers]

    def draw(axes: Axes) -> None:
        axes.plot(numbers, losses, color=BLUE, marker="o")
        best = min(numbers, key=loss_by_iterations.__getitem__)
        axes.plot(
            best,
            loss_by_iterations[best],
            color=ORANGE,
            marker="s",
            markersize=10,
            linestyle="",
            label=f"lowest: {loss_by_iterations[best]:.4g} with {best} iteration{'' if best == 1 else 's'}",
        )
        centre, half = (min(losses) + max(losses)) / 2, 0.55 * (max(losses) - min(losses))
        half = max(half, _LEAST_SPREAD * abs(centre), 1e-12)
        axes.set_ylim(centre - half, centre + half)
        axes.set(
            title="Loss with a fixed number of iterations",
            xlabel="routing iterations, the same for all documents",
            ylabel="loss per document",
        )
        axes.legend(frameon=False)

    return svg(draw)


def changes_bars(changes: Mapping[int, Changes]) -> str:
    """Plot what each iteration changed in the first labels of the documents that took it.

    Args:
        changes: Iteration, from 2 → what it changed.
    """
    numbers = sorted(changes)
    better = np.array([changes[number].first_labels_better for number in numbers])
    worse = np.array([changes[number].first_labels_worse for number in numbers])
    other = np.array([changes[number].first_labels for number in numbers]) - better - worse
    parts = (
        ("more true labels", better, "#1b7a4b", ""),
        ("other labels, as many true", other, BLUE, "//"),
        ("fewer true labels", worse, ORANGE, "xx"),
    )

    def draw(axes: Axes) -> None:
        below = np.zeros(len(numbers), dtype=np.int64)
        for label, counts, color, hatch in parts:
            axes.bar(
                numbers,
                counts,
                width=0.7,
                bottom=below,
                color=color,
                label=label,
                hatch=hatch,
                edgecolor="white",
            )
            below = below + counts
        for number, height in zip(numbers, below, strict=True):
            axes.annotate(
                f"{height:,} of {changes[number].documents:,}",
                (number, height),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=9,
            )
        axes.set_ylim(0, 1.15 * max(1, below.max()))
        axes.set_xlim(numbers[0] - 0.7, numbers[-1] + 0.7)
        axes.set(
            title=f"Documents whose first {TOP} labels an iteration changed",
            xlabel="routing iteration",
            ylabel="documents",
        )
        axes.legend(frameon=False)

    return svg(draw)


def probability_lines(probabilities: Mapping[str, np.ndarray]) -> str:
    """Plot the probabilities of one document's labels if it had stopped after each iteration.

    Args:
        probabilities: Label → (T,) its probability; NaN where it was not among the first.
    """

    def draw(axes: Axes) -> None:
        for position, (label, values) in enumerate(probabilities.items()):
            color, dash, marker = LINES[position % len(LINES)]
            numbers = np.arange(1, len(values) + 1)
            axes.plot(numbers, values, color=color, linestyle=dash, marker=marker, label=_shown(label))
        axes.set(
            title=f"First {TOP} labels of one document",
            xlabel="stopped after iteration",
            ylabel="probability",
        )
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg(draw, width=7.6)


def training_curves(histories: Mapping[str, Sequence[Mapping[str, Any]]], metric: str) -> str:
    """Plot a metric of each epoch, one line per system.

    Args:
        histories: System → records of its epochs, as in `metrics.jsonl`.
        metric: The metric; "loss" is drawn as is, all others as percentages.

    Raises:
        NlpCapsuleError: If no record has the metric.
    """
    scale = 1.0 if metric == "loss" else 100.0
    curves = {
        system: [(record["epoch"], scale * record[metric]) for record in records if metric in record]
        for system, records in histories.items()
    }
    curves = {system: points for system, points in curves.items() if points}
    if not curves:
        raise NlpCapsuleError(f"no training record has the figure {metric!r}, so there is no curve to draw")

    def draw(axes: Axes) -> None:
        for position, (system, points) in enumerate(curves.items()):
            color, dash, marker = LINES[position % len(LINES)]
            epochs, values = zip(*points, strict=True)
            axes.plot(
                epochs, values, color=color, linestyle=dash, marker=marker, markersize=4, label=_shown(system)
            )
        what = "Training loss" if metric == "loss" else f"{metric} on held-out documents"
        axes.set(title=f"{what} by epoch", xlabel="epoch", ylabel=metric if scale == 1.0 else f"{metric} (%)")
        axes.legend(frameon=False)

    return svg(draw)


def _shown(name: str) -> str:
    """Return a name for a legend, shortened if long; matplotlib hides names with a leading underscore."""
    name = _NO_XML.sub("\ufffd", name)
    name = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return f" {name}" if name.startswith("_") else name


def svg(
    draw: Callable[[Axes], None], width: float = 6.4, height: float = 3.8, integer_axis: bool = True
) -> str:
    """Return a plot as the text of an SVG file.

    Args:
        draw: Draws into the axes.
        width: In inches.
        height: In inches.
        integer_axis: Whether the horizontal axis counts something.
    """
    from matplotlib import style
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with style.context(["default", _STYLE]):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        axes = figure.add_subplot()
        draw(axes)
        if integer_axis:
            axes.grid(axis="y")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        text = io.StringIO()
        with warnings.catch_warnings():
            # Text stays text: the reader's font has the characters that this one lacks.
            warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
            figure.savefig(text, format="svg", metadata=_NO_METADATA)
    return _NO_XML.sub("\ufffd", text.getvalue())
