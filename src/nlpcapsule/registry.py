"""The registry of systems: networks, lexical systems and the baselines they are compared with.

A system is one file. It holds the system's settings and its class, and registers both with `register`: what
it builds for which task, where its defaults differ, and the extra it needs. The tables below map names to
modules, so that only the system in use is imported. A package outside this one adds
systems with the entry-point group `nlpcapsule.systems` (name → module), or by calling `register` itself.

Example:
    >>> find_system("xml-cnn").tasks
    ('labels',)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from nlpcapsule.errors import ConfigError, did_you_mean, quoted

if TYPE_CHECKING:
    import numpy as np


ENTRY_POINTS = "nlpcapsule.systems"

LABEL_SYSTEMS = {
    "hybrid": "nlpcapsule.networks.hybrid",
    "label-query": "nlpcapsule.networks.label_query",
    "paper": "nlpcapsule.networks.paper",
    "official": "nlpcapsule.baselines.official",
    "kim-cnn": "nlpcapsule.networks.kim_cnn",
    "xml-cnn": "nlpcapsule.baselines.xml_cnn",
    "bow-cnn": "nlpcapsule.baselines.bow_cnn",
    "released-xml-cnn": "nlpcapsule.baselines.released_xml_cnn",
    "cap-zhao": "nlpcapsule.baselines.cap_zhao",
    "convolution-linear": "nlpcapsule.baselines.convolution_linear",
    "transformer-linear": "nlpcapsule.baselines.transformer_linear",
    "embedding-linear": "nlpcapsule.baselines.embedding_linear",
    "one-vs-rest": "nlpcapsule.lexical.one_vs_rest",
    "omikuji": "nlpcapsule.lexical.omikuji",
    "fast-xml": "nlpcapsule.baselines.fast_xml",
    "pd-sparse": "nlpcapsule.baselines.pd_sparse",
    "fasttext": "nlpcapsule.baselines.fast_text",
}

ANSWER_SYSTEMS = {
    "label-query": "nlpcapsule.networks.label_query",
    "paper": "nlpcapsule.networks.paper",
    "cap-zhao": "nlpcapsule.baselines.cap_zhao",
    "cnn-lr": "nlpcapsule.baselines.answers.cnn_lr",
    "severyn-cnn": "nlpcapsule.baselines.answers.severyn_cnn",
    "cntn": "nlpcapsule.baselines.answers.cntn",
    "lstm": "nlpcapsule.baselines.answers.lstm",
    "mv-lstm": "nlpcapsule.baselines.answers.mv_lstm",
    "ntn-lstm": "nlpcapsule.baselines.answers.ntn_lstm",
    "hd-lstm": "nlpcapsule.baselines.answers.hd_lstm",
    "bm25": "nlpcapsule.baselines.answers.bm25",
    "bi-encoder": "nlpcapsule.baselines.answers.bi_encoder",
    "cross-encoder": "nlpcapsule.baselines.answers.cross_encoder",
}

ENCODER_MODULES = {
    "convolution": "nlpcapsule.encoders.convolution",
    "bilstm": "nlpcapsule.encoders.bilstm",
    "transformer": "nlpcapsule.encoders.windowed_transformer",
}

Sections = Mapping[str, Mapping[str, Any]]  # section → setting → value

Item = TypeVar("Item")


class Registry(dict[str, Item]):
    """Interchangeable parts by name: routings, label losses, readers of documents, encoders.

    `modules` are name → module, which registers the part and is imported on first use.

    Example:
        >>> greetings = Registry("greeting")
        >>> @greetings.register("hello")
        ... def hello(): return "Hello"
        >>> greetings["hello"]()
        'Hello'
    """

    def __init__(self, what: str, modules: dict[str, str] | None = None) -> None:
        super().__init__()
        self.what, self.modules = what, modules or {}

    @property
    def names(self) -> list[str]:
        """All names, in the order of the modules."""
        return list(dict.fromkeys([*self.modules, *self]))

    def register(self, name: str) -> Callable[[Item], Item]:
        """Register a part under a name, as a decorator."""

        def add(item: Item) -> Item:
            self[name] = item
            return item

        return add

    def __missing__(self, name: str) -> Item:
        if name in self.modules:
            import_module(self.modules[name])
        if name not in self:
            raise ConfigError(f"unknown {self.what} {quoted(name)}: {did_you_mean(name, self.names)}")
        return self[name]


# logits (B, n), targets (B, n) → the loss of each pair (B, n). Here, since settings are checked against it;
# `networks.losses` fills it, and `@LABEL_LOSSES.register("name")` adds one.
LABEL_LOSSES: Registry[Callable[[Any, Any], Any]] = Registry("loss")

# Name → class; `@ENCODERS.register("name")` adds one.
ENCODERS: Registry[Any] = Registry("encoder", ENCODER_MODULES)


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """Sizes and starting values that networks and encoders are built from.

    With a pretrained transformer's configuration, its weights are loaded from a model folder later; otherwise
    the transformer that the settings name is read.
    """

    vocabulary_size: int  # V
    padding_id: int = 0
    length: int = 500  # l, maximum tokens of a text
    label_count: int = 0  # n; 0 for answers
    vectors: np.ndarray | None = None  # (V, v) initial word vectors; None for random ones
    idf: np.ndarray | None = None  # (V,) weights of words that question and answer share
    transformer: dict[str, Any] | None = None  # its configuration
    named: bool = False  # whether labels have names


@dataclass(frozen=True)
class System:
    """A system as its file registers it.

    `labels` and `answers` build its networks, if it has them, from its settings and `NetworkInputs`. Defaults
    are task → section → setting → default, where a task's default differs from the section's; those of its
    encoder are in `model.encoder`, and apply if the chosen encoder has the setting.
    """

    name: str
    settings: type[BaseModel]  # the class of its `[model]` section
    labels: Callable[[Any, NetworkInputs], Any] | None = None
    answers: Callable[[Any, NetworkInputs], Any] | None = None
    lexical: type | None = None  # the class of a lexical system for labels
    defaults: Mapping[str, Sections] = field(default_factory=dict)
    pretrained_defaults: Mapping[str, Sections] = field(default_factory=dict)  # with a pretrained transformer
    extra: str | None = None  # needed, as in `pip install 'nlpcapsule[EXTRA]'`

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks it supports."""
        parts = {"labels": self.labels or self.lexical, "answers": self.answers}
        return tuple(task for task, part in parts.items() if part is not None)

    @property
    def description(self) -> str:
        """A one-line description."""
        first = (self.settings.__doc__ or "").strip().splitlines()[0]
        return first.split(": ", 1)[-1]


SYSTEMS: Registry[System] = Registry("model", LABEL_SYSTEMS | ANSWER_SYSTEMS)


def register(system: System) -> System:
    """Register a system under its name."""
    SYSTEMS[system.name] = system
    return system


def find_system(name: str) -> System:
    """Return the system of this name, importing only the module that registers it."""
    if name not in SYSTEMS.names:
        SYSTEMS.modules.update(_entry_points() | SYSTEMS.modules)
    return SYSTEMS[name]


def system_names(task: str | None = None) -> list[str]:
    """Return the names of all systems, or of those for a task, importing only external ones."""
    known = LABEL_SYSTEMS | ANSWER_SYSTEMS
    names = {None: known, "labels": LABEL_SYSTEMS, "answers": ANSWER_SYSTEMS}[task]
    others = [name for name in [*SYSTEMS, *_entry_points()] if name not in known]
    others = [name for name in others if task is None or task in find_system(name).tasks]
    return list(dict.fromkeys([*names, *others]))


@cache
def _entry_points() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
