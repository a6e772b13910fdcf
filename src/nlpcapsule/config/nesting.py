"""Names of settings, and sections inside the `model` section: a hybrid's network, a network's encoder.

A nested section is chosen by its `name`. A string is the short form: the name or, for an encoder, also the
folder or the hub id of a pretrained transformer.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, SerializeAsAny

from nlpcapsule.config import settings as sections
from nlpcapsule.config.settings import EncoderSettings, Settings, SystemSettings
from nlpcapsule.errors import ConfigError, cut, did_you_mean, quoted
from nlpcapsule.registry import ENCODERS, find_system

DEFAULT_SYSTEM = {"labels": "hybrid", "answers": "label-query"}
DEFAULT_NETWORK = "label-query"
TRANSFORMER = "transformer"
NESTED = ("network", "encoder")
SECTIONS = ("text", "model", "training", "inference")
# Settings that choose a section, such as `network` or `model.encoder.name`.
_CHOICE = re.compile(r"(?:model\.)?(?:network\.(?=encoder))?(network|encoder)(?:\.name)?")
# Where a short name is looked up first: `epochs` is the system's setting if it has one, else the training's.
_SHORT_NAMES = ("model", "training", "inference", "text")

Values: TypeAlias = dict[str, Any]


def _read_section(key: str, value: Any) -> Any:
    """Validate a nested section, or its short form, with the class that its name chooses."""
    if not isinstance(value, str | Mapping):
        return value
    section = expand(key, value)
    name = section["name"]
    settings: Any = find_system(name).settings if key == "network" else ENCODERS[name].settings_type
    return settings.model_validate(section)


# The types of the nested sections: any registered encoder, and any system that can be part of a hybrid.
AnyEncoder = Annotated[SerializeAsAny[EncoderSettings], BeforeValidator(partial(_read_section, "encoder"))]
AnyNetwork = Annotated[SerializeAsAny[SystemSettings], BeforeValidator(partial(_read_section, "network"))]
# A string in place of the section of an encoder that cannot be chosen.
EncoderShorthand = BeforeValidator(
    lambda value: expand("encoder", value) if isinstance(value, str) else value
)


def expand(key: str, value: Any) -> Values:
    """Return a nested section in full, expanding the short form."""
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, str):
        raise ConfigError(f"{key}={quoted(value)}: expected a name, or a section of settings")
    if key == "network" or value in ENCODERS.names:
        return {"name": value}
    return {"name": TRANSFORMER, "path": value}


def complete_model(model: Mapping[str, Any], task: str, section: str = "model") -> Values:
    """Return a model section in which every nested section is present and named."""
    name = model.get("name", DEFAULT_SYSTEM.get(task, DEFAULT_NETWORK))
    if not isinstance(name, str):
        raise ConfigError(f"{section}.name={quoted(name)}: expected the name of a system")
    fields = find_system(name).settings.model_fields
    filled: Values = {**model, "name": name}
    for key in NESTED:
        if key not in fields:
            continue
        given = expand(key, model.get(key, {}))
        if key == "network":
            filled[key] = complete_model({"name": DEFAULT_NETWORK, **given}, task, key)
        else:
            filled[key] = {"name": default_encoder(name), **given}
            _check_encoder(name, filled[key]["name"])
    return filled


def default_encoder(system: str) -> str:
    """Return the name of a system's default encoder."""
    field = find_system(system).settings.model_fields["encoder"]
    return field.get_default(call_default_factory=True).name


def _check_encoder(system: str, name: Any) -> None:
    """Reject an encoder that a system does not support."""
    if not isinstance(name, str):
        raise ConfigError(f"encoder.name={quoted(name)}: expected the name of an encoder")
    only = find_system(system).settings.model_fields["encoder"].annotation
    if only is EncoderSettings or name == default_encoder(system):
        return
    expected = "a pretrained transformer, its folder or its id on the Hugging Face hub"
    if default_encoder(system) != TRANSFORMER:
        expected = f"the encoder {default_encoder(system)!r}"
    raise ConfigError(f"encoder={quoted(name)}: {system!r} needs {expected}")


def section_classes(model: Mapping[str, Any], prefix: str = "model") -> Iterator[tuple[str, type[Settings]]]:
    """Yield the dotted name and the class of a complete model section and its nested sections."""
    settings: type[Any] = find_system(model["name"]).settings
    yield prefix, settings
    if "network" in settings.model_fields:
        yield from section_classes(model["network"], f"{prefix}.network")
    if "encoder" in settings.model_fields:
        only: type[Any] = settings.model_fields["encoder"].annotation
        is_free = only is EncoderSettings
        yield f"{prefix}.encoder", ENCODERS[model["encoder"]["name"]].settings_type if is_free else only


def defaults_of(model: Mapping[str, Any], task: str) -> dict[str, Values]:
    """Return the defaults of a complete model section that differ from those of its classes.

    They are section → setting → value; those of a hybrid's network are in `model.network`.
    """
    system = find_system(model["name"])
    merged: dict[str, Values] = {}
    if "network" in system.settings.model_fields:
        inner = defaults_of(model["network"], task)
        merged = {**inner, "model": {"network": inner.get("model", {})}}
    merged = merge(merged, system.defaults.get(task, {}))
    if model.get("encoder", {}).get("name") == TRANSFORMER:
        merged = merge(merged, system.pretrained_defaults.get(task, {}))
    own = merged.get("model", {}).get("encoder")
    if own:  # a system's defaults name settings of several encoders
        fields = dict(section_classes(model))["model.encoder"].model_fields
        fitting = {key: value for key, value in own.items() if key in fields}
        merged = {**merged, "model": {**merged["model"], "encoder": fitting}}
    return merged


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Values:
    """Merge two configurations, section by section; `upper` wins, and replaces a section of another name."""
    merged = dict(lower)
    for key, value in upper.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and key in NESTED and isinstance(value, str):
            value = expand(key, value)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        is_same = both and before.get("name") in (None, value.get("name", before.get("name")))  # type: ignore[union-attr]
        merged[key] = merge(before, value) if is_same else value  # type: ignore[arg-type]
    return merged


def flatten(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted names and the values of a section and its nested sections."""
    for key, value in section.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, Mapping):
            yield from flatten(value, path)
        else:
            yield path, value


def known_settings(model: Mapping[str, Any]) -> list[str]:
    """Return all settings of a complete model section, by their full names."""
    classes: dict[str, type[Settings]] = {
        "text": sections.TextSettings,
        **dict(section_classes(model)),
        "training": sections.TrainingSettings,
        "inference": sections.InferenceSettings,
    }
    return [f"{section}.{name}" for section, settings in classes.items() for name in settings.model_fields]


def unknown_sections(given: Mapping[str, Any], where: str) -> list[str]:
    """Return a message about unknown sections of a file."""
    problems = []
    for section, values in given.items():
        if section not in SECTIONS:
            problems.append(f"{where}unknown section [{cut(section)}]: {did_you_mean(section, SECTIONS)}")
        elif not isinstance(values, dict):
            problems.append(f"{where}[{section}] must be a section of key = value lines")
    return problems


def unknown_settings(section: Mapping[str, Any], known: list[str], where: str, prefix: str = "") -> list[str]:
    """Return a message about unknown names in a section and its nested sections."""
    problems = []
    for key, value in section.items():
        path = f"{prefix}{key}"
        inside = [name for name in known if name.startswith(f"{path}.")]
        if inside and isinstance(value, Mapping):
            problems += unknown_settings(value, known, where, f"{path}.")
        elif path not in known:
            problems.append(f"{where}unknown setting {cut(path)}: {_suggestion(key, known)}")
    return problems


def resolve(key: str, known: list[str]) -> tuple[str, str | None]:
    """Return the full name of a setting whose sections may be left out, or a message about the problem."""
    found = [path for path in known if _is_short_for(key.split("."), path.split("."))]
    for section in _SHORT_NAMES:
        here = [path for path in found if path.startswith(f"{section}.")]
        if len(here) == 1:
            return here[0], None
        if here:
            return "", f"{key!r} could be {' or '.join(here)}: say which"
    return "", f"unknown setting {quoted(key)}: {_suggestion(key.split('.')[-1], known)}"


def _is_short_for(key: list[str], path: list[str]) -> bool:
    """Return whether a name is a setting's full name with some of its sections left out."""
    rest = iter(path[:-1])
    return key[-1] == path[-1] and all(part in rest for part in key[:-1])


def _suggestion(word: str, known: list[str]) -> str:
    """Suggest full names of settings whose last part is similar to a word."""
    settings = [path for path in known if not path.endswith(".name")]
    by_last = {path.split(".")[-1]: path for path in reversed(settings)}
    close = get_close_matches(word, by_last, n=1)
    return f"did you mean {by_last[close[0]]!r}?" if close else f"expected one of: {', '.join(by_last)}"


def nested_choices(system: str, pairs: dict[str, Any]) -> dict[str, Any]:
    """Remove the choice of a network or encoder from the single settings, and return it as a section."""
    chosen: dict[str, Values] = {key: {} for key in NESTED}
    for given in list(pairs):
        if named := _CHOICE.fullmatch(given):
            key, value = named[1], pairs.pop(given)
            chosen[key] |= {"name": value} if given.endswith(".name") else expand(key, value)
    fields = find_system(system).settings.model_fields
    for key in NESTED:
        inside = key == "encoder" and "network" in fields
        if chosen[key] and key not in fields and not inside:
            raise ConfigError(f"unknown setting {key!r}: {system!r} has no {key} to choose")
    encoder = {"encoder": chosen["encoder"]} if chosen["encoder"] else {}
    return {"network": chosen["network"] | encoder} if "network" in fields else encoder
