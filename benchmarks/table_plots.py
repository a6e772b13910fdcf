"""Plots of the tables: dots for systems, lines for training fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nlpcapsule.report.plots import ORANGE, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Interval = tuple[float, float, float]  # value, low, high


def systems_plot(title: str, axis: str, ours: Mapping[str, Interval], paper: Mapping[str, float]) -> str:
    """Plot a dot per system with its interval, next to the paper's value.

    Args:
        title: The heading.
        axis: The label of the axis.
        ours: System → value and interval, in the order from top to bottom.
        paper: System → the paper's value.
    """
    names = list(ours)

    def draw(axes: Axes) -> None:
        places = range(len(names))
        values = [ours[name][0] for name in names]
        below = [ours[name][0] - ours[name][1] for name in names]
        above = [ours[name][2] - ours[name][0] for name in names]
        axes.errorbar(values, places, xerr=[below, above], fmt="o", capsize=3, label="here")
        printed = [(paper[name], place) for name, place in zip(names, places, strict=True) if name in paper]
        if printed:
            printed_values, rows = zip(*printed, strict=True)
            axes.plot(
                printed_values, rows, "s", color=ORANGE, fillstyle="none", label="the paper, on its data"
            )
            below_the_axis = (0.5, -0.7 / (0.32 * len(names) + 0.9))  # placed where no system is
            axes.legend(loc="upper center", bbox_to_anchor=below_the_axis, ncols=2)
        axes.set_yticks(list(places), names)
        axes.invert_yaxis()
        axes.grid(axis="x")
        axes.set(title=title, xlabel=axis)

    return svg(draw, width=8.6, height=1.8 + 0.32 * len(names), integer_axis=False)


def fractions_plot(title: str, axis: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Plot a line per system over the fraction of training documents used.

    Args:
        title: The heading.
        axis: The label of the axis.
        lines: System → (fraction, value) pairs.
    """

    def draw(axes: Axes) -> None:
        for name, points in lines.items():
            parts, values = zip(*sorted(points), strict=True)
            axes.plot([100 * part for part in parts], values, markersize=5, label=name)
        used = sorted({100 * part for points in lines.values() for part, _ in points})
        axes.set(title=title, xlabel="part of the training documents (%)", ylabel=axis, xticks=used)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))  # placed where no line is

    return svg(draw, width=7.4, height=3.6 + 0.25 * len(lines), integer_axis=False)
