"""The plots of an evaluation, each as the text of an SVG file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nlpcapsule.diagnostics.plots import BLUE, ORANGE, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def calibration_plot(curve: np.ndarray) -> str:
    """Plot the share of right labels by their probability.

    Args:
        curve: (bins, 3) mean probability, share that is right, number of labels.
    """

    def draw(axes: Axes) -> None:
        axes.plot([0, 100], [0, 100], color="#777777", linestyle="--", label="calibrated")
        axes.plot(100 * curve[:, 0], 100 * curve[:, 1], color=BLUE, marker="o", label="this model")
        axes.set(
            title="Calibration of the first five labels",
            xlabel="stated probability (%)",
            ylabel="share that is right (%)",
        )
        axes.grid()
        axes.legend(frameon=False)

    return svg(draw, integer_axis=False)


def frequency_plot(recall: Mapping[str, float]) -> str:
    """Plot recall@5 by the number of training documents of labels.

    Args:
        recall: Band → recall.
    """

    def draw(axes: Axes) -> None:
        bars = axes.bar(list(recall), [100 * value for value in recall.values()], width=0.6, color=BLUE)
        axes.bar_label(bars, fmt="%.1f", padding=2)
        axes.set_ylim(0, 100)
        axes.set(
            title="Labels found, by their training documents",
            xlabel="training documents of a label",
            ylabel="recall@5 (%)",
        )
        axes.grid(axis="y")

    return svg(draw, integer_axis=False)


def agreement_plot(agreement: np.ndarray) -> str:
    """Plot the agreement score by routing iteration: mean over documents that are still routed.

    Args:
        agreement: (N, T), NaN once a document has stopped.
    """
    routed = ~np.isnan(agreement)  # (N, T)
    width = int(routed.any(axis=0).sum())
    numbers = np.arange(1, width + 1)
    means = [agreement[routed[:, step], step].mean() for step in range(width)]
    shares = 100 * routed[:, :width].mean(axis=0)

    def draw(axes: Axes) -> None:
        axes.plot(numbers, means, color=BLUE, marker="o", label="agreement score")
        axes.set(title="Agreement by iteration", xlabel="routing iteration", ylabel="agreement score (NAS)")
        right = axes.twinx()
        right.plot(numbers, shares, color=ORANGE, linestyle="--", marker="s", label="documents still routed")
        right.set_ylabel("documents still routed (%)")
        right.set_ylim(0, 105)
        lines = [*axes.get_lines(), *right.get_lines()]
        axes.legend(lines, [str(line.get_label()) for line in lines], frameon=False)

    return svg(draw)
