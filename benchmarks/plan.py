"""The plan of a table: systems, data sets, seeds and training fractions, read from a TOML file.

title = "…"                          kind = "labels" or "answers"
data = ["eurlex15k"]                 seeds = 3                 fractions = [0.5, 1.0]
differs = "…"                        a sentence on how our data differ from the paper's

peers = ["…"]                        systems that all others are compared with

[seeds-on]                           data sets on which fewer seeds are run
reuters = 1

[fractions-on]                       data sets on which fewer parts are trained on
eurlex57k = [1.0]

[[systems]]
name = "XML-CNN"                     model = "xml-cnn"         settings = { … }
seeds = 1                            where a system needs no more
data = ["…"]                         where it is not run on all data sets
fractions = [1.0]                    where it is not trained on all parts
paper = { "EUR-Lex" = [75.65, 61.81, 50.90] }                  what the paper printed, in percent
smoke = { … }                        settings that the small system keeps

[smoke]                              the same systems, small, on the embedded sample
settings = { … }                     for all of them
models.paper = { … }                 for those of this network
skip = ["…"]                         systems that need more than is embedded
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cell import Cell
from nlpcapsule.errors import ConfigError, did_you_mean

SAMPLE = "sample"
_PLANS = Path(__file__).with_name("plans")


@dataclass(frozen=True)
class Plan:
    """A table's plan.

    Attributes:
        name: The table's name.
        title: Its heading.
        kind: "labels" or "answers".
        data: Data sets.
        systems: The systems' rows as the file has them.
        seeds: Seeds per system, unless it says otherwise.
        fractions: Parts of the training documents.
        differs: How the data differ from the paper's.
        is_smoke: Whether this is the small plan on the embedded sample.
        paper_data: Data set → the paper's data set to compare with.
        paper_fractions: Parts of the training documents that the paper's lists are of.
        seeds_on: Data sets on which fewer seeds are run, unless more are asked for.
        fractions_on: Data sets on which fewer parts of the training documents are used.
        peers: Systems that all others are compared with, by a paired test.
    """

    name: str
    title: str
    kind: str
    data: tuple[str, ...]
    systems: list[dict[str, Any]]
    seeds: int = 3
    fractions: tuple[float, ...] = (1.0,)
    differs: str = ""
    is_smoke: bool = False
    paper_data: dict[str, str] = field(default_factory=dict)
    paper_fractions: tuple[float, ...] = (1.0,)
    seeds_on: dict[str, int] = field(default_factory=dict)
    fractions_on: dict[str, list[float]] = field(default_factory=dict)
    peers: tuple[str, ...] = ()

    def systems_on(self, data: str) -> list[str]:
        """Return the names of the systems that are run on a data set."""
        return [row["name"] for row in self.systems if data in row.get("data", self.data)]

    def cells(self, seeds: int | None = None, only: Sequence[str] = ()) -> list[Cell]:
        """Return all cells, seed by seed, so that a run that is stopped has every system early."""
        known = [row["name"] for row in self.systems]
        for name in only:
            if name not in known:
                raise ConfigError(f"{self.name} has no system {name!r}: {did_you_mean(name, known)}")
        wanted = self.seeds if seeds is None else seeds
        fewer = self.seeds_on if seeds is None else {}
        return [
            Cell(self.kind, data, row["name"], row["model"], _settings_on(row, data), seed, fraction)
            for seed in range(1, wanted + 1)
            for data in self.data
            for fraction in self.fractions_on.get(data, self.fractions)
            for row in self.systems
            if data in row.get("data", self.data)
            and fraction in row.get("fractions", self.fractions)
            and seed <= min(row.get("seeds", wanted), fewer.get(data, wanted))
            and (not only or row["name"] in only)
        ]


def read_plan(name: str, budget: str = "full") -> Plan:
    """Read the plan of a table.

    Args:
        name: The table's name.
        budget: "full", or "smoke" for small systems on the embedded sample.
    """
    table = tomllib.loads((_PLANS / f"{name}.toml").read_text(encoding="utf-8"))
    smoke = table.pop("smoke")
    systems = table.pop("systems")
    plan = Plan(
        name,
        table["title"],
        table["kind"],
        tuple(table["data"]),
        systems,
        table["seeds"],
        tuple(table.get("fractions", (1.0,))),
        table["differs"],
        paper_data=table.get("paper-data", {}),
        paper_fractions=tuple(table.get("fractions", (1.0,))),
        seeds_on=table.get("seeds-on", {}),
        fractions_on=table.get("fractions-on", {}),
        peers=tuple(table.get("peers", ())),
    )
    if budget == "full":
        return plan
    return Plan(
        name,
        plan.title,
        plan.kind,
        (SAMPLE,),
        [_small(row, smoke) for row in systems if row["name"] not in smoke.get("skip", ())],
        seeds=1,
        fractions=tuple(smoke.get("fractions", plan.fractions)),
        differs="Small systems on the embedded sample: this shows that the table can be made, no more.",
        is_smoke=True,
        paper_data={SAMPLE: next(iter(plan.paper_data.values()), "")},
        paper_fractions=plan.paper_fractions,
        peers=plan.peers,
    )


def _settings_on(row: dict[str, Any], data: str) -> dict[str, Any]:
    return {**row.get("settings", {}), **row.get("on", {}).get(data, {})}


def _small(row: dict[str, Any], smoke: dict[str, Any]) -> dict[str, Any]:
    network = row.get("settings", {}).get("network", "label-query")
    own = smoke.get("models", {}).get(network if row["model"] == "hybrid" else row["model"], {})
    small = {**row.get("settings", {}), **smoke["settings"], **own, **row.get("smoke", {})}
    return {**row, "on": {}, "data": (SAMPLE,), "settings": small}
