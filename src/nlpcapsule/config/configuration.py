"""A whole configuration, put together from defaults, a TOML file and single settings, and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from pydantic import SerializeAsAny, ValidationError, field_validator, model_validator

from nlpcapsule.config.nesting import (
    DEFAULT_NETWORK,
    DEFAULT_SYSTEM,
    NESTED,
    choose,
    complete_model,
    defaults_of,
    expand,
    merge,
    section_classes,
)
from nlpcapsule.config.settings import (
    InferenceSettings,
    Settings,
    SystemSettings,
    Task,
    TextSettings,
    TrainingSettings,
)
from nlpcapsule.errors import ConfigError, did_you_mean
from nlpcapsule.registry import LABEL_LOSSES, find_system, system_names

PRESETS = ("small",)
# Where a short name is looked for first: `epochs` is a system's own where it has one, else the training's.
_SHORT_NAMES = ("model", "training", "inference", "text")


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
        given = {section: data.get(section, {}) for section in cls.SECTIONS}
        model = given["model"]
        if isinstance(model, SystemSettings):
            defaults = defaults_of(complete_model(model.model_dump(), task), task)
        else:
            given["model"] = complete_model(model, task)
            defaults = defaults_of(given["model"], task)
        filled = {
            section: merge(defaults.get(section, {}), values) if isinstance(values, Mapping) else values
            for section, values in given.items()
        }
        return {**data, "task": task, **filled}

    @field_validator("model", mode="before")
    @classmethod
    def _of_the_system(cls, value: Any) -> Any:
        """Validates the section with the settings of the system that it names."""
        return find_system(value["name"]).settings.model_validate(value) if isinstance(value, dict) else value

    @property
    def network(self) -> SystemSettings:
        """The settings of the network: those of a hybrid's, or of the system itself."""
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
        """Puts a configuration together: the system's defaults, a preset, a TOML file, single settings.

        Args:
            task: "labels" or "answers".
            model: The system's name; None takes the file's `[model] name`, or `hybrid` (answers:
                `label-query`).
            file: A TOML file with any of the four sections.
            assignments: Texts such as "training.epochs=5" or, in short, "epochs=5".
            overrides: The same as a mapping whose values are Python values.
            preset: One of `PRESETS`, for hybrid.

        Example:
            >>> Config.build(assignments=["network=paper", "routing=em"]).network.routing
            'em'
        """
        if task not in ("labels", "answers"):
            raise ConfigError(f"unknown task {task!r}: expected 'labels' or 'answers'")
        sections = _read_toml(Path(file)) if file else {}
        prepared = {} if preset is None else _read_preset(preset)
        pairs = {**dict(_parse_assignment(text) for text in assignments), **(overrides or {})}
        name = _model_name(task, model, sections, pairs)
        if task not in find_system(name).tasks:
            fitting = ", ".join(system_names(task))
            raise ConfigError(f"the model {name!r} does not rank {task}: use one of {fitting}")
        given: dict[str, Any] = {section: {} for section in cls.SECTIONS}
        for source in (prepared, sections):
            for section, values in source.items():
                if section == "model" and isinstance(values, dict):
                    given[section] = choose(name, given[section], values)
                elif section in given and isinstance(values, dict):
                    given[section].update(values)
        given["model"] = choose(name, {**given["model"], "name": name}, _nested_choices(name, pairs))
        completed = complete_model(given["model"], task)
        if preset is not None and completed.get("network", {}).get("name") != DEFAULT_NETWORK:
            raise ConfigError(
                f"the preset {preset!r} is for hybrid of {DEFAULT_NETWORK}, not {name} on {task}"
            )
        known = _known_settings(completed)
        where = f"{file}: " if file else ""
        problems = [*_unknown_sections(sections, where), *_unknown_settings(given, known, where)]
        for key, value in pairs.items():
            path, problem = _resolve(key, known)
            if problem:
                problems.append(problem)
            else:
                _put(given, path, value)
        if problems:
            raise ConfigError("\n".join(problems))
        return _checked(cls._validate(task, given))

    @staticmethod
    def has_setting(task: str, model: str, key: str) -> bool:
        """Return whether a system has a setting of this full or short name."""
        return _resolve(key, _known_settings(complete_model({"name": model}, task)))[1] is None

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


def _model_name(task: str, model: str | None, sections: Mapping[str, Any], pairs: dict[str, Any]) -> str:
    """The system's name: a single setting (taken out of `pairs`), else the argument, else the file's."""
    section = sections.get("model")
    in_file = section.get("name") if isinstance(section, dict) else None
    single = [pairs.pop(key) for key in ("name", "model.name") if key in pairs]
    name = next((choice for choice in (*single, model, in_file) if choice is not None), DEFAULT_SYSTEM[task])
    if not isinstance(name, str):
        raise ConfigError(f"unknown model {name!r}: {did_you_mean(str(name), system_names())}")
    return find_system(name).name


def _nested_choices(system: str, pairs: dict[str, Any]) -> dict[str, Any]:
    """Take what chooses a network or an encoder out of the single settings, and return it as a section."""
    chosen: dict[str, dict[str, Any]] = {key: {} for key in NESTED}
    for given in list(pairs):
        parts = given.split(".")
        key = parts[-2] if parts[-1] == "name" and len(parts) > 1 else parts[-1]
        before = parts[: parts.index(key)] if key in NESTED else None
        if before is None or before not in ([], ["model"], ["network"], ["model", "network"]):
            continue
        value = pairs.pop(given)
        if not isinstance(value, str | Mapping):
            raise ConfigError(f"{given}={value!r}: expected a name, or a section of settings")
        chosen[key] = chosen[key] | ({"name": value} if parts[-1] == "name" else expand(key, value))
    fields = find_system(system).settings.model_fields
    for key in NESTED:
        inside = key == "encoder" and "network" in fields
        if chosen[key] and key not in fields and not inside:
            raise ConfigError(f"unknown setting {key!r}: {system!r} has no {key} to choose")
    network, encoder = chosen["network"], {"encoder": chosen["encoder"]} if chosen["encoder"] else {}
    if "network" not in fields:
        return encoder
    return {"network": {**network, **encoder}} if network or encoder else {}


def _checked(config: Config) -> Config:
    """Refuses settings that are each possible and impossible together."""
    for_labels = dict.fromkeys(["bce", "margin", "spread", *LABEL_LOSSES])
    losses = tuple(for_labels) if config.task == "labels" else ("pointwise", "pairwise")
    network, training = config.network, config.training
    if training.loss not in losses:
        raise ConfigError(
            f"training.loss={training.loss!r} does not go with task {config.task!r}: "
            f"expected one of: {', '.join(losses)}"
        )
    if not network.routes_to_chosen and training.negatives != "all":
        raise ConfigError(
            f"training.negatives={training.negatives!r} needs a network that routes to chosen labels; "
            f"{network.name!r} scores all labels at once: leave it at 'all'"
        )
    if not network.scores_candidates and config.inference.candidates:
        raise ConfigError(
            f"inference.candidates needs a network that routes to chosen labels, not {network.name!r}"
        )
    if config.task == "answers" and (training.negatives != "all" or config.inference.candidates):
        raise ConfigError("training.negatives and inference.candidates are for task 'labels', not 'answers'")
    if config.task == "labels" and getattr(network, "overlap", False):
        raise ConfigError("model.overlap compares questions with answers: it is not for task 'labels'")
    _check_label_names(config)
    config.model.check(config)
    return config


def _check_label_names(config: Config) -> None:
    """Which networks can make something of names."""
    if config.text.label_names is None:
        return
    if config.task != "labels":
        raise ConfigError("text.label_names is for task 'labels', not 'answers'")
    if not config.network.takes_label_names:
        raise ConfigError(
            f"text.label_names is for 'hybrid' and 'label-query', not {config.network.name!r}, which learns "
            "labels from examples alone: leave it out, or choose --model hybrid"
        )
    nominated = config.inference.candidates or config.training.negatives == "hard"
    if nominated and config.lexical is None:
        raise ConfigError(
            "text.label_names does not go with candidates that a Kim-CNN nominates, which knows no label "
            "without examples: choose --model hybrid, or set inference.candidates=0 and other negatives"
        )


def _known_settings(model: Mapping[str, Any]) -> list[str]:
    """All settings that a complete model section leaves to choose, by their full names."""
    classes: dict[str, type[Settings]] = {
        "text": TextSettings,
        **dict(section_classes(model)),
        "training": TrainingSettings,
        "inference": InferenceSettings,
    }
    return [f"{section}.{name}" for section, settings in classes.items() for name in settings.model_fields]


def _unknown_sections(sections: Mapping[str, Any], where: str) -> list[str]:
    problems = []
    for section, values in sections.items():
        if section not in Config.SECTIONS:
            problems.append(f"{where}unknown section [{section}]: {did_you_mean(section, Config.SECTIONS)}")
        elif not isinstance(values, dict):
            problems.append(f"{where}[{section}] must be a section of key = value lines")
    return problems


def _unknown_settings(
    section: Mapping[str, Any], known: list[str], where: str, prefix: str = ""
) -> list[str]:
    problems = []
    for key, value in section.items():
        path = f"{prefix}{key}"
        inside = [name for name in known if name.startswith(f"{path}.")]
        if inside and isinstance(value, Mapping):
            problems += _unknown_settings(value, known, where, f"{path}.")
        elif path not in known:
            problems.append(f"{where}unknown setting {path}: {_suggestion(key, known)}")
    return problems


def _resolve(key: str, known: list[str]) -> tuple[str, str | None]:
    """Return the full name of a setting whose sections may be left out, or word the problem."""
    found = [path for path in known if _is_short_for(key.split("."), path.split("."))]
    for section in _SHORT_NAMES:
        here = [path for path in found if path.startswith(f"{section}.")]
        if len(here) == 1:
            return here[0], None
        if here:
            return "", f"{key!r} could be {' or '.join(here)}: say which"
    return "", f"unknown setting {key!r}: {_suggestion(key.split('.')[-1], known)}"


def _is_short_for(key: list[str], path: list[str]) -> bool:
    """Whether a name is a setting's full name with some of its sections left out."""
    rest = iter(path[:-1])
    return key[-1] == path[-1] and all(part in rest for part in key[:-1])


def _suggestion(word: str, known: list[str]) -> str:
    """Suggest full names of settings whose last part is like a word."""
    settings = [path for path in known if not path.endswith(".name")]
    by_last = {path.split(".")[-1]: path for path in reversed(settings)}
    close = get_close_matches(word, by_last, n=1)
    return f"did you mean {by_last[close[0]]!r}?" if close else f"expected one of: {', '.join(settings)}"


def _put(sections: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        sections = sections.setdefault(parent, {})
    sections[last] = value


def _parse_assignment(text: str) -> tuple[str, Any]:
    """Splits "key=value"; a value is read as TOML (numbers, true/false, lists), else taken as a word."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text!r}: expected key=value, for example training.epochs=5")
    try:
        return key.strip(), tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _read_preset(name: str) -> dict[str, Any]:
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {name!r}: {did_you_mean(name, PRESETS)}")
    text = files("nlpcapsule.config").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such configuration file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: not a readable TOML file: {error}") from None


def _worded(error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"])
        lines.append(f"{place}={problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}")
    return lines
