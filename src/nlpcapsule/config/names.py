"""Names of settings: full names, short names, and messages about unknown ones."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from nlpcapsule.config.nesting import NESTED, expand, section_classes
from nlpcapsule.config.settings import InferenceSettings, Settings, TextSettings, TrainingSettings
from nlpcapsule.errors import ConfigError, cut, did_you_mean, quoted
from nlpcapsule.registry import find_system

SECTIONS = ("text", "model", "training", "inference")
# Where a short name is looked up first: `epochs` is the system's setting if it has one, else the training's.
_SHORT_NAMES = ("model", "training", "inference", "text")


def known_settings(model: Mapping[str, Any]) -> list[str]:
    """Return all settings of a complete model section, by their full names."""
    classes: dict[str, type[Settings]] = {
        "text": TextSettings,
        **dict(section_classes(model)),
        "training": TrainingSettings,
        "inference": InferenceSettings,
    }
    return [f"{section}.{name}" for section, settings in classes.items() for name in settings.model_fields]


def unknown_sections(sections: Mapping[str, Any], where: str) -> list[str]:
    """Return a message about unknown sections of a file."""
    problems = []
    for section, values in sections.items():
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
    chosen: dict[str, dict[str, Any]] = {key: {} for key in NESTED}
    for given in list(pairs):
        parts = given.split(".")
        key = parts[-2] if parts[-1] == "name" and len(parts) > 1 else parts[-1]
        before = parts[: parts.index(key)] if key in NESTED else None
        if before is None or before not in ([], ["model"], ["network"], ["model", "network"]):
            continue
        value = pairs.pop(given)
        if not isinstance(value, str | Mapping):
            raise ConfigError(f"{given}={quoted(value)}: expected a name, or a section of settings")
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
