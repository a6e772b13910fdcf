"""Draw the pictures of docs/how-routing-works.md: a tiny example, routed by the package itself.

    python -m docs.draw_routing

The six capsules of the example are made up so that they can be drawn on paper; everything else is computed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from nlpcapsule.atomic_files import write_text
from nlpcapsule.capsules.routing.label_query import route_labels
from nlpcapsule.report.plots import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path(__file__).parent / "pictures"
WORDS = ("lamp", "street", "dark", "bin", "lorry", "week")
CAPSULES = [[-1.1, 0.0], [-0.9, 0.8], [-0.3, 0.6], [0.6, -0.1], [1.1, 0.6], [0.0, -0.7]]
LABELS = ("street-light-out", "bin-not-emptied")
FIRST = [[0.8, 0.3, 0.5, -0.4, 0.0, 0.3], [-0.2, 0.0, -0.3, 0.9, 0.5, 0.3]]  # what the labels' queries say
GATE = 0.2  # larger than in a network, so that four iterations are enough to see it
COLOURS = ("C0", "C1")
SPREADS = {"close together": 0.12, "apart": 0.8, "far apart": 1.25}  # by which the capsules are multiplied
EPSILON = 0.05


def couplings(iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the label capsules (2, 2) and couplings (2, 6) of the example after so many iterations."""
    routed = route_labels(
        torch.tensor([CAPSULES]),
        torch.tensor([FIRST]),
        agreement="kde",
        gate=GATE,
        iterations=iterations,
        keep_coupling=True,
    )
    assert routed.coupling is not None
    return routed.label_capsules[0].numpy(), routed.coupling[0].numpy()


def draw_iterations(axes: Axes, shown: tuple[int, ...] = (1, 2, 4)) -> None:
    """Draw capsules, label capsules and couplings after some iterations, side by side."""
    for place, iteration in enumerate(shown):
        shift = np.array([3.0 * place, 0.0])
        places = np.array(CAPSULES) + shift
        labels, coupling = couplings(iteration)
        for label, row, colour in zip(labels + shift, coupling, COLOURS, strict=True):
            for capsule, weight in zip(places, row, strict=True):
                axes.plot(
                    *zip(capsule, label, strict=True),
                    color=colour,
                    linewidth=12 * weight,
                    linestyle="-",
                    marker="",
                    alpha=0.45,
                    zorder=1,
                )
            axes.scatter(*label, marker="s", s=70, color=colour, zorder=3)
        axes.scatter(*places.T, s=36, color="0.25", zorder=2)
        for word, capsule in zip(WORDS, places, strict=True):
            down = capsule[1] < 0.5
            axes.annotate(
                word, capsule, (0, -15 if down else 7), textcoords="offset points", ha="center", zorder=4
            )
        axes.text(shift[0], -1.3, f"iteration {iteration}", ha="center", weight="bold")
    for name, colour in zip(LABELS, COLOURS, strict=True):
        axes.scatter([], [], marker="s", s=70, color=colour, label=name)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=2, frameon=False)
    axes.set(xlim=(-1.5, 7.5), ylim=(-1.4, 1.1), aspect="equal")
    axes.axis("off")


def agreement(scale: float) -> np.ndarray:
    """Return the agreement by iteration of the example with its capsules scaled, until it stops."""
    routed = route_labels(
        scale * torch.tensor([CAPSULES]), torch.tensor([FIRST]), gate=GATE, iterations=10, eps=EPSILON
    )
    scores = routed.agreement[0].numpy()
    return scores[np.isfinite(scores)]


def draw_agreement(axes: Axes) -> None:
    """Draw the agreement of three documents by iteration; each line ends where its document stops."""
    for colour, (name, scale) in zip(("C2", "C0", "C1"), SPREADS.items(), strict=True):
        scores = agreement(scale)
        iterations = np.arange(1, len(scores) + 1)
        axes.plot(
            iterations,
            scores,
            linestyle="-",
            marker="o",
            color=colour,
            label=f"{name}: stops after {len(scores)}",
        )
    axes.set(xlabel="iteration", ylabel="agreement (NAS)")
    axes.legend(loc="lower right")


def write_pictures(folder: Path = FOLDER) -> list[Path]:
    """Write all pictures and return their names."""
    pictures = {
        "routing-iterations.svg": svg(draw_iterations, 9.0, 3.2, integer_axis=False),
        "routing-agreement.svg": svg(draw_agreement, 6.4, 3.4),
    }
    for name, text in pictures.items():
        write_text(folder / name, text)
    return [folder / name for name in pictures]


if __name__ == "__main__":
    for path in write_pictures():
        print(path)
