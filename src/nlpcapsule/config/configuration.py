"""A whole configuration, built from defaults, a TOML file and single settings, and validated."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from pydantic import SerializeAsAny, ValidationError, field_validator, model_validator

from nlpcapsule.config import nesting, settings
from nlpcapsule.config.checks import check_together, check_values
from nlpcapsule.config.nesting import DEFAULT_NETWORK, DEFAULT_SYSTEM, SECTIONS, complete_model
from nlpcapsule.config.settings import Settings, SystemSettings
from nlpcapsule.errors import ConfigError, cut, did_you_mean, quoted
from nlpcapsule.registry import find_system, system_names

PRESETS = ("small",)
LONGEST_FILE = 1_000_000  # maximum bytes of a TOML file; /dev/zero has more


class Config(Settings):
    """A whole configuration, as saved in a model folder."""

    task: settings.Task
    text: settings.TextSettings
    model: SerializeAsAny[SystemSettings]
    training: settings.TrainingSettings
    inference: settings.InferenceSettings

    SECTIONS: ClassVar[tuple[str, ...]] = SECTIONS

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, data: Any) -> Any:
        """Fill in missing settings: the system's defaults for the task, then those of the section."""
        if not isinstance(data, Mapping):
            return data
        task = data.get("task", "labels")
        given = {section: data.get(section, {}) for section in cls.SECTIONS}
        if isinstance(given["model"], SystemSettings):
            given["model"] = given["model"].model_dump()
        given["model"] = complete_model(given["model"], task)
        defaults = nesting.defaults_of(given["model"], task)
        for section, values in given.items():
            if isinstance(values, Mapping):
                given[section] = nesting.merge(defaults.get(section, {}), values)
        return {**data, "task": task, **given}

    @field_validator("model", mode="before")
    @classmethod
    def _of_the_system(cls, value: Any) -> Any:
        """Validate the section with the settings class of the system it names."""
        return find_system(value["name"]).settings.model_validate(value)

    @property
    def network(self) -> SystemSettings:
        """The settings of the network: a hybrid's network, or the system itself."""
        return getattr(self.model, "network", self.model)

    @property
    def lexical(self) -> str | None:
        """The lexical system that a hybrid joins with its network ("auto" chooses one); None without one."""
        return getattr(self.model, "lexical", None)

    @property
    def transformer(self) -> str | None:
        """The pretrained transformer that reads the texts, a folder or a hub id; None without one."""
        return self.network.transformer

    def with_network(self, network: SystemSettings) -> Config:
        """Return the configuration with other settings of its network."""
        model = network
        if self.network is not self.model:
            model = self.model.model_copy(update={"network": network})
        return self.model_copy(update={"model": model})

    @classmethod
    def build(
        cls,
        task: str = "labels",
        model: str | None = None,
        file: str | Path | None = None,
        assignments: Iterable[str] = (),
        overrides: Mapping[str, Any] | None = None,
        preset: str | None = None,
    ) -> Config:
        """Build a configuration from the system's defaults, a preset, a TOML file and single settings.

        Without a model's name the file's is used, or `hybrid` (answers: `label-query`). Single settings are
        texts such as "training.epochs=5" or, in short, "epochs=5", or a mapping to Python values.

        Example:
            >>> Config.build(assignments=["network=paper", "routing=em"]).network.routing
            'em'
        """
        if task not in ("labels", "answers"):
            raise ConfigError(f"unknown task {quoted(task)}: expected 'labels' or 'answers'")
        sections = _read_toml(Path(file)) if file else {}
        prepared = {} if preset is None else _read_preset(preset)
        pairs = {**dict(_parse_assignment(text) for text in assignments), **(overrides or {})}
        name = _model_name(task, model, sections, pairs)
        if task not in find_system(name).tasks:
            fitting = ", ".join(system_names(task))
            raise ConfigError(f"the model {name!r} does not rank {task}: use one of {fitting}")
        given: dict[str, Any] = {section: {} for section in cls.SECTIONS}
        given["model"] = complete_model({"name": name}, task)
        for source in (prepared, sections, {"model": nesting.nested_choices(name, pairs)}):
            for section, values in source.items():
                if section in given and isinstance(values, dict):
                    given[section] = nesting.merge(given[section], values)
            given["model"] = complete_model({**given["model"], "name": name}, task)
        if preset is not None and given["model"].get("network", {}).get("name") != DEFAULT_NETWORK:
            meant = f"hybrid of {DEFAULT_NETWORK}, not {name} on {task}"
            raise ConfigError(f"the preset {preset!r} is for {meant}")
        known = nesting.known_settings(given["model"])
        where = f"{file}: " if file else ""
        problems = nesting.unknown_sections(sections, where) + nesting.unknown_settings(given, known, where)
        for key, value in pairs.items():
            path, problem = nesting.resolve(key, known)
            if problem:
                problems.append(problem)
                continue
            for part in reversed(path.split(".")):
                value = {part: value}
            given = nesting.merge(given, value)
        if problems:
            raise ConfigError("\n".join(problems))
        with _worded_errors():
            config = cls.model_validate({"task": task, **given})
        check_values(config)
        check_together(config)
        return config

    @staticmethod
    def has_setting(task: str, model: str, key: str) -> bool:
        """Return whether a system has a setting of this full or short name."""
        return nesting.resolve(key, nesting.known_settings(complete_model({"name": model}, task)))[1] is None

    @classmethod
    def from_json(cls, text: str) -> Config:
        """Parse the output of `model_dump_json`."""
        with _worded_errors():
            return cls.model_validate_json(text)


def _model_name(task: str, model: str | None, sections: Mapping[str, Any], pairs: dict[str, Any]) -> str:
    """Return the system's name: a single setting (removed from `pairs`), the argument, or the file's."""
    section = sections.get("model")
    in_file = section.get("name") if isinstance(section, dict) else None
    single = [pairs.pop(key) for key in ("name", "model.name") if key in pairs]
    name = next((choice for choice in (*single, model, in_file) if choice is not None), DEFAULT_SYSTEM[task])
    if not isinstance(name, str):
        raise ConfigError(f"unknown model {quoted(name)}: {did_you_mean(quoted(name), system_names())}")
    return find_system(name).name


def _parse_assignment(text: str) -> tuple[str, Any]:
    """Split "key=value"; a value is parsed as TOML (numbers, true/false, lists) or taken as a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text!r}: expected key=value, for example training.epochs=5")
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")
    except (ValueError, RecursionError):  # not TOML, a number of thousands of digits, deeply nested lists
        parsed = {}
    # A text of several lines may contain other keys.
    return key.strip(), parsed["value"] if len(parsed) == 1 else value.strip()


def _read_preset(name: str) -> dict[str, Any]:
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {quoted(name)}: {did_you_mean(name, PRESETS)}")
    text = files("nlpcapsule.config").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
        if len(content) > LONGEST_FILE:
            raise ConfigError(f"{path}: not a configuration file: it is longer than {LONGEST_FILE:,} bytes")
        return tomllib.loads(content.decode())
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such configuration file") from None
    except (OSError, ValueError, RecursionError) as error:  # ValueError: not TOML, not UTF-8, NUL in the name
        raise ConfigError(f"{path}: not a readable TOML file: {error}") from None


@contextmanager
def _worded_errors() -> Iterator[None]:
    """Turn pydantic's errors into a ConfigError with a line for each."""
    try:
        yield
    except ValidationError as error:
        raise ConfigError("\n".join(_worded(problem) for problem in error.errors())) from None


def _worded(problem: Any) -> str:
    own = problem.get("ctx", {}).get("error")
    if isinstance(own, ConfigError):  # pydantic wraps what a validator raises
        return str(own)
    place, message = cut(".".join(map(str, problem["loc"]))), problem["msg"]
    return f"{place}={quoted(problem['input'])}: {message[0].lower()}{message[1:]}"
