"""What a table is made of: systems, data sets, seeds and training fractions, read from a TOML file.

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
smoke = { … }                        settings that the small system keeps of its own

[smoke]                              the same systems, small, on the embedded sample
settings = { … }                     for all of them
models.paper = { … }                 for those of this model
skip = ["…"]                         systems that need more than is embedded
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError, did_you_mean

SAMPLE = "sample"


def by_itself(kind: str) -> dict[str, Any]:
    """What a cell's settings start from: a network by itself, unless they say what it is joined with."""
    return {"inference.lexical": "none"} if kind == "labels" else {}


@dataclass(frozen=True)
class Cell:
    """One training: a system on a data set with a seed.

    Attributes:
        kind: "labels" or "answers".
        data: The data set's name.
        system: The system's name in the table.
        model: The model's name in the configuration.
        settings: Settings that differ from the model's defaults.
        seed: The seed.
        fraction: Part of the training documents that is used.
        files: Tells apart what the files hold that settings name; "" where the paths say enough.
    """

    kind: str
    data: str
    system: str
    model: str
    settings: dict[str, Any]
    seed: int
    fraction: float = 1.0
    files: str = ""

    @property
    def config(self) -> Config:
        """The whole configuration."""
        given = {**by_itself(self.kind), **self.settings, "training.seed": self.seed}
        return Config.build(self.kind, self.model, overrides=given)

    @property
    def title(self) -> str:
        """What a person calls it."""
        part = "" if self.fraction == 1.0 else f"{self.fraction:.0%} of "
        return f"{self.system} on {part}{self.data}, seed {self.seed}"

    @property
    def name(self) -> str:
        """Where it is kept, relative to the folder of cells and without an ending.

        What a table calls the system has no part in it, so two tables share a training that is the same.
        """
        part = "" if self.fraction == 1.0 else f"-{100 * self.fraction:.0f}percent"
        return f"{self.data}/{self.model}{part}-{self.fingerprint}-seed{self.seed}"

    @property
    def fingerprint(self) -> str:
        """Tells trainings of one model with other settings apart; checkpoints change no outcome."""
        settings = {key: value for key, value in self.settings.items() if key != "checkpoint_epochs"}
        told = [self.kind, settings, *([self.files] if self.files else [])]
        text = json.dumps(told, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


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
        paper_data: Data set → the paper's data set that its figures stand beside.
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

    def cells(self, seeds: int | None = None, only: Sequence[str] = ()) -> list[Cell]:
        """All trainings of the table: seed by seed, so that a stopped run has every system early."""
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
    """The plan of a table.

    Args:
        name: The table's name.
        budget: "full", or "smoke" for small systems on the embedded sample.
    """
    text = files("nlpcapsule.experiments").joinpath("plans", f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
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
    own = smoke.get("models", {}).get(row["model"], {})
    small = {**row.get("settings", {}), **smoke["settings"], **own, **row.get("smoke", {})}
    return {**row, "on": {}, "data": (SAMPLE,), "settings": small}
