"""A whole configuration, put together from defaults, a TOML file and single settings, and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, SerializeAsAny, ValidationError, field_validator, model_validator

from nlpcapsule.config.settings import (
    WORD_ENCODERS,
    InferenceSettings,
    Settings,
    SystemSettings,
    Task,
    TextSettings,
    TrainingSettings,
)
from nlpcapsule.errors import ConfigError, cut, did_you_mean, quoted
from nlpcapsule.registry import LABEL_LOSSES, System, find_system, system_names

DEFAULT_SYSTEM = "label-query"
PRESETS = ("small",)
LONGEST_FILE = 1_000_000  # bytes of a TOML file; /dev/zero has more
LARGEST_NUMBER = 2**31 - 1  # seeds and sizes beyond it do not fit into the libraries' own numbers


class Config(Settings):
    """A whole configuration, as it is saved in a model folder."""

    task: Task
    text: TextSettings
    model: SerializeAsAny[SystemSettings]
    training: TrainingSettings
    inference: InferenceSettings

    SECTIONS: ClassVar[tuple[str, ...]] = ("text", "model", "training", "inference")

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, data: Any) -> Any:
        """Fills in what is not given: the system's defaults for the task, then those of the section."""
        if not isinstance(data, Mapping):
            return data
        task = data.get("task", "labels")
        model = data.get("model", {})
        name = (
            model.get("name", DEFAULT_SYSTEM) if isinstance(model, Mapping) else getattr(model, "name", None)
        )
        if not isinstance(name, str):
            raise ConfigError(f"model.name={quoted(name)}: expected the name of a system")
        defaults = _own_defaults(find_system(name), task, model)
        filled = {**data, "task": task}
        for section in cls.SECTIONS:
            given = data.get(section, {})
            if isinstance(given, Mapping):
                own = {"name": name} if section == "model" else {}
                filled[section] = {**own, **defaults.get(section, {}), **given}
        return filled

    @field_validator("model", mode="before")
    @classmethod
    def _of_the_system(cls, value: Any) -> Any:
        """Validates the section with the settings of the system that it names."""
        return find_system(value["name"]).settings.model_validate(value) if isinstance(value, dict) else value

    @property
    def transformer(self) -> str | None:
        """The pretrained transformer that reads the texts, a folder or a hub id; None without one."""
        return self.model.transformer

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
        """Puts a configuration together: the network's defaults, a preset, a TOML file, single settings.

        Args:
            task: "labels" or "answers".
            model: The network's name; None takes the file's `[model] name`, or `label-query`.
            file: A TOML file with any of the four sections.
            assignments: Texts such as "training.epochs=5" or, where only one section has it, "epochs=5".
            overrides: The same as a mapping whose values are Python values.
            preset: One of `PRESETS`, for label-query on labels.

        Example:
            >>> Config.build(model="paper", assignments=["routing=em"]).model.routing
            'em'
        """
        if task not in ("labels", "answers"):
            raise ConfigError(f"unknown task {quoted(task)}: expected 'labels' or 'answers'")
        sections = _read_toml(Path(file)) if file else {}
        prepared = {} if preset is None else _read_preset(preset)
        pairs = {**dict(_parse_assignment(text) for text in assignments), **(overrides or {})}
        name = _model_name(model, sections, pairs)
        if task not in find_system(name).tasks:
            fitting = ", ".join(system_names(task))
            raise ConfigError(f"the model {name!r} does not rank {task}: use one of {fitting}")
        if preset is not None and (task, name) != ("labels", "label-query"):
            raise ConfigError(f"the preset {preset!r} is for label-query on labels, not {name} on {task}")
        known = _known_keys(name)
        problems = _unknown_keys(sections, known, f"{file}: ")
        given: dict[str, dict[str, Any]] = {section: {} for section in cls.SECTIONS}
        for section, values in prepared.items():
            given[section].update(values)
        for section, values in sections.items():
            if section in given and isinstance(values, dict):
                given[section].update(values)
        given["model"]["name"] = name
        for key, value in pairs.items():
            section, field, problem = _resolve(key, known)
            if problem:
                problems.append(problem)
            else:
                given[section][field] = value
        if problems:
            raise ConfigError("\n".join(problems))
        return _checked(cls._validate(task, given))

    @classmethod
    def _validate(cls, task: str, settings: dict[str, dict[str, Any]]) -> Config:
        try:
            return cls.model_validate({"task": task, **settings})
        except ValidationError as error:
            raise ConfigError("\n".join(_worded(error))) from None

    @classmethod
    def from_json(cls, text: str) -> Config:
        """Reads what `model_dump_json` wrote."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise ConfigError("\n".join(_worded(error))) from None


def _model_name(model: str | None, sections: Mapping[str, Any], pairs: dict[str, Any]) -> str:
    """The network's name: a single setting (taken out of `pairs`), else the argument, else the file's."""
    section = sections.get("model")
    in_file = section.get("name") if isinstance(section, dict) else None
    single = [pairs.pop(key) for key in ("name", "model.name") if key in pairs]
    name = next((choice for choice in (*single, model, in_file) if choice is not None), DEFAULT_SYSTEM)
    if not isinstance(name, str):
        raise ConfigError(f"unknown model {quoted(name)}: {did_you_mean(quoted(name), system_names())}")
    return find_system(name).name


def _own_defaults(system: System, task: str, model: Any) -> dict[str, dict[str, Any]]:
    """Where the system's defaults differ from the sections', section by section."""
    encoder = model.get("encoder") if isinstance(model, Mapping) else getattr(model, "encoder", None)
    sources = [system.defaults.get(task, {})]
    if encoder is not None and encoder not in WORD_ENCODERS:
        sources.append(system.pretrained_defaults.get(task, {}))
    merged: dict[str, dict[str, Any]] = {}
    for source in sources:
        for section, values in source.items():
            merged.setdefault(section, {}).update(values)
    return merged


def _checked(config: Config) -> Config:
    """Refuses settings that are each possible and impossible together."""
    _check_values(config)
    for_labels = dict.fromkeys(["bce", "margin", "spread", *LABEL_LOSSES])
    losses = tuple(for_labels) if config.task == "labels" else ("pointwise", "pairwise")
    if config.training.loss not in losses:
        raise ConfigError(
            f"training.loss={quoted(config.training.loss)} does not go with task {config.task!r}: "
            f"expected one of: {', '.join(losses)}"
        )
    if not config.model.routes_to_chosen and config.training.negatives != "all":
        raise ConfigError(
            f"training.negatives={config.training.negatives!r} needs a network that routes to chosen labels; "
            f"{config.model.name!r} scores all labels at once: leave it at 'all'"
        )
    if not config.model.scores_candidates and config.inference.lexical != "none":
        raise ConfigError(
            f"inference.lexical={config.inference.lexical!r} needs a network that routes to chosen labels, "
            f"not {config.model.name!r}"
        )
    if not config.model.scores_candidates and config.inference.candidates:
        raise ConfigError(
            f"inference.candidates needs a network that routes to chosen labels, not {config.model.name!r}"
        )
    only_for_labels = (
        config.training.negatives != "all",
        config.inference.candidates,
        config.inference.lexical != "none",
    )
    if config.task == "answers" and any(only_for_labels):
        raise ConfigError(
            "training.negatives, inference.candidates and inference.lexical are for task 'labels', "
            "not 'answers'"
        )
    if config.task == "labels" and getattr(config.model, "overlap", False):
        raise ConfigError("model.overlap compares questions with answers: it is not for task 'labels'")
    usual = type(config.inference).model_fields["wanted_precision"].default
    if config.inference.wanted_precision != usual and config.inference.threshold_for != "precision":
        raise ConfigError(
            f"inference.wanted_precision={config.inference.wanted_precision} is for a threshold that is "
            "tuned for it: set inference.threshold_for=precision, too"
        )
    _check_label_names(config)
    config.model.check(config)
    return config


def _check_values(config: Config) -> None:
    """Refuses values that no setting can have, whatever its own bounds."""
    for section in Config.SECTIONS:
        for name, value in getattr(config, section).model_dump().items():
            for part in value if isinstance(value, tuple) else (value,):
                _check_value(f"{section}.{name}", part)


def _check_value(name: str, value: Any) -> None:
    if isinstance(value, int) and value > LARGEST_NUMBER:
        raise ConfigError(f"{name}={quoted(value)}: expected at most {LARGEST_NUMBER:,}")
    try:
        str(value).encode()
    except UnicodeEncodeError:  # a file whose name is not UTF-8; the model folder could not name it
        raise ConfigError(f"{name}={value!r}: expected UTF-8; rename the file") from None


def _check_label_names(config: Config) -> None:
    """Which networks can make something of names."""
    if config.text.label_names is None:
        return
    if config.task != "labels":
        raise ConfigError("text.label_names is for task 'labels', not 'answers'")
    if not config.model.takes_label_names:
        raise ConfigError(
            f"text.label_names is for the model 'label-query', not {config.model.name!r}, which learns "
            "labels from examples alone: leave it out, or choose --model label-query"
        )
    nominated = config.inference.candidates or config.training.negatives == "hard"
    if nominated and config.inference.lexical == "none":
        raise ConfigError(
            "text.label_names does not go with candidates that a Kim-CNN nominates, which knows no label "
            "without examples: set inference.lexical=auto, or inference.candidates=0 and other negatives"
        )


def _known_keys(model: str) -> dict[str, list[str]]:
    classes: dict[str, type[BaseModel]] = {
        "text": TextSettings,
        "model": find_system(model).settings,
        "training": TrainingSettings,
        "inference": InferenceSettings,
    }
    return {section: list(settings.model_fields) for section, settings in classes.items()}


def _unknown_keys(sections: Mapping[str, Any], known: dict[str, list[str]], where: str) -> list[str]:
    problems = []
    for section, values in sections.items():
        if section not in known:
            problems.append(f"{where}unknown section [{cut(section)}]: {did_you_mean(section, known)}")
        elif not isinstance(values, dict):
            problems.append(f"{where}[{section}] must be a section of key = value lines")
        else:
            for key in values:
                if key not in known[section]:
                    problems.append(
                        f"{where}unknown setting {section}.{cut(key)}: {did_you_mean(key, known[section])}"
                    )
    return problems


def _resolve(key: str, known: dict[str, list[str]]) -> tuple[str, str, str | None]:
    """Finds the section of a setting; the third value words the problem if there is none."""
    if "." in key:
        section, field = key.split(".", 1)
        if section in known and field in known[section]:
            return section, field, None
    else:
        homes = [section for section, fields in known.items() if key in fields]
        if len(homes) == 1:
            return homes[0], key, None
        if homes:
            return "", "", f"{key!r} could be {' or '.join(f'{home}.{key}' for home in homes)}: say which"
    full = [f"{section}.{field}" for section, fields in known.items() for field in fields]
    short = key.split(".")[-1]
    names = [name.split(".")[1] for name in full]
    suggestion = did_you_mean(short, names)
    return "", "", f"unknown setting {quoted(key)}: {suggestion}"


def _parse_assignment(text: str) -> tuple[str, Any]:
    """Splits "key=value"; a value is read as TOML (numbers, true/false, lists), else taken as a word."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text!r}: expected key=value, for example training.epochs=5")
    return key.strip(), toml_value(value.strip())


def toml_value(text: str) -> Any:
    """Return what TOML makes of a value: a number, true or false, a list; else the text itself."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # no TOML, a number of thousands of digits, lists in lists in lists
        return text
    return parsed["value"] if len(parsed) == 1 else text  # a text of several lines may hold further keys


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
    except (OSError, ValueError, RecursionError) as error:  # ValueError: no TOML, no UTF-8, a NUL in the name
        raise ConfigError(f"{path}: not a readable TOML file: {error}") from None


def _worded(error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors():
        own = problem.get("ctx", {}).get("error")
        if isinstance(own, ConfigError):  # pydantic wraps what a validator raises
            lines.append(str(own))
            continue
        place = ".".join(str(part) for part in problem["loc"])
        lines.append(f"{place}={quoted(problem['input'])}: {problem['msg'][0].lower()}{problem['msg'][1:]}")
    return lines
