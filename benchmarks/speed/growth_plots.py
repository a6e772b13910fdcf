"""Plots of how time and memory grow, from results/speed-*.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlpcapsule.report.plots import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Line = Sequence[tuple[float, float]]
_DASHED: dict[str, Any] = {"linestyle": "--", "color": "gray", "linewidth": 1, "marker": ""}


def growth_plots(results: Path) -> dict[str, str]:
    """Return the plots whose results are there: file name → SVG."""
    drawn: dict[str, str] = {}
    labels = {
        f"{_device(record)}, batches of {record['batch_size']}": record
        for record in (_read(path) for path in sorted(results.glob("speed-labels*.json")))
    }
    if labels:
        lines = {
            _timed(name, record): _line(record, "labels", _time(record)) for name, record in labels.items()
        }
        drawn["scale-labels.svg"] = growth_plot("A training step", "labels", "ms", lines)
        lines = {name: _line(record, "labels", "peak_memory_mib", 2**10) for name, record in labels.items()}
        drawn["scale-label-memory.svg"] = growth_plot("Memory of a training step", "labels", "GiB", lines)
    held = "peak_memory_mib"
    for name, of, what, field, title, unit, share in (
        ("tokens", "tokens", "tokens", "", "A training step", "ms", 1),
        ("token-memory", "tokens", "tokens", held, "Memory of a training step", "GiB", 2**10),
        ("documents", "memory", "documents", "cpu_seconds", "CPU time of training with 20 steps", "s", 1),
        ("memory", "memory", "documents", held, "Peak memory of training with 20 steps", "GiB", 2**10),
        ("processes", "processes", "processes", "seconds", "An epoch", "s", 1),
        ("process-memory", "processes", "processes", held, "Memory of all processes", "GiB", 2**10),
    ):
        path = results / f"speed-{of}.json"
        if path.exists():
            record = _read(path)
            device = _device(record)
            line = _line(record, what, field or _time(record), share)
            lines = {device if field else _timed(device, record): line}
            power = -1 if name == "processes" else 1
            drawn[f"scale-{name}.svg"] = growth_plot(title, what, unit, lines, power)
    return drawn


def growth_plot(title: str, axis: str, unit: str, lines: Mapping[str, Line], power: int = 1) -> str:
    """Plot lines on two logarithmic axes, where a dashed line shows what grows or falls in proportion.

    Args:
        title: What is measured.
        axis: What grows.
        unit: The unit of the measure.
        lines: Name → points.
        power: 1: the dashed line grows with the axis; -1: it falls.
    """

    def draw(axes: Axes) -> None:
        for name, points in lines.items():
            x, y = zip(*points, strict=True)
            axes.plot(x, y, marker="o", markersize=5, label=name)
            axes.plot([x[0], x[-1]], [y[0], y[0] * (x[-1] / x[0]) ** power], zorder=0, **_DASHED)
        axes.plot([], [], label="in proportion", **_DASHED)
        used = sorted({x for points in lines.values() for x, _ in points})
        highest = max(y for points in lines.values() for _, y in points)
        lowest = min(y for points in lines.values() for _, y in points)
        axes.set(xscale="log", yscale="log", title=f"{title}, by {axis}", xlabel=axis, ylabel=unit)
        axes.set_ylim(lowest / 2, highest * 3)
        # The name of a point that is close before the next one would run into that one's.
        following = [*used[1:], used[-1] * 10]
        far = {x for x, other in zip(used, following, strict=True) if other > 1.8 * x}
        axes.set_xticks(used, [f"{x:,.0f}" if x in far else "" for x in used])
        axes.minorticks_off()
        ticks = [number * 10**power for power in range(-3, 7) for number in (1, 2, 5)]
        ticks = [tick for tick in ticks if lowest / 2 <= tick <= highest * 3]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.grid(axis="y")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))

    return svg(draw, width=7.4, height=3.6 + 0.25 * len(lines), integer_axis=False)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _line(record: Mapping[str, Any], x: str, y: str, divisor: float = 1) -> Line:
    return [(row[x], row[y] / divisor) for row in record["rows"]]


def _time(record: Mapping[str, Any]) -> str:
    """Return the field of a step's time: CPU time on a CPU, which other processes change little."""
    return "cpu_milliseconds" if "CPU" in record["hardware"] else "milliseconds"


def _device(record: Mapping[str, Any]) -> str:
    """Return the device of a record."""
    return str(record["hardware"]).split(",")[0]


def _timed(name: str, record: Mapping[str, Any]) -> str:
    """Return the name of a line of times, which says where they are CPU times."""
    return f"{name}, CPU time" if _time(record) == "cpu_milliseconds" else name
