"""The systems that can be compared, their settings, and the packages they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from nlpcapsule.compare.pecos_settings import PECOS, PecosSettings
from nlpcapsule.config import DEFAULT_SYSTEM, Config
from nlpcapsule.errors import ConfigError, MissingExtraError, did_you_mean
from nlpcapsule.registry import system_names

DEFAULT_SYSTEMS = {
    "labels": (DEFAULT_SYSTEM["labels"], "one-vs-rest", "omikuji", PECOS, "fasttext", "xml-cnn"),
    "answers": (DEFAULT_SYSTEM["answers"], "bm25", "bi-encoder"),
}
EVERY_SYSTEM = "all"  # in --set: a setting of each system that has it

# System → the package it needs, and the extra that installs it.
_EXTRAS = {
    "omikuji": ("omikuji", "omikuji"),
    "fasttext": ("fasttext", "fasttext"),
    "fast-xml": ("numba", "trees"),
    "pd-sparse": ("numba", "trees"),
    "bi-encoder": ("transformers", "transformers"),
    "cross-encoder": ("transformers", "transformers"),
    "transformer-linear": ("transformers", "transformers"),
    "embedding-linear": ("transformers", "transformers"),
}


def known_systems(kind: str) -> list[str]:
    """Return the systems for labels, or for answers."""
    return [*system_names(kind), *([PECOS] if kind == "labels" else [])]


def chosen_systems(wanted: str | None, kind: str) -> list[str]:
    """Parse the systems a user names, separated by commas; the default ones if none is named."""
    if wanted is None:
        return list(DEFAULT_SYSTEMS[kind])
    names = list(dict.fromkeys(name.strip() for name in wanted.split(",") if name.strip()))
    if not names:
        raise ConfigError(f"--systems names no system: expected some of {', '.join(known_systems(kind))}")
    for name in names:
        if name not in known_systems(kind):
            expected = did_you_mean(name, known_systems(kind))
            raise ConfigError(f"--systems: there is no system {name!r} for {kind}: {expected}")
    return names


def system_settings(
    systems: Sequence[str], kind: str, assignments: Sequence[str], preset: str | None = None
) -> dict[str, Any]:
    """Return each system's non-default settings, as "section.key" → value.

    Args:
        systems: The systems compared.
        kind: "labels" or "answers".
        assignments: Texts such as "hybrid.epochs=5" or "all.max_tokens=200".
        preset: The preset of the default system.
    """
    ours = DEFAULT_SYSTEM[kind]
    if preset is not None and ours not in systems:
        raise ConfigError(f"--preset {preset} is for {ours}, which is not among the systems compared")
    own: dict[str, list[str]] = {name: [] for name in systems}
    for text in assignments:
        name, dot, assignment = text.partition(".")
        if not dot or "=" not in assignment:
            raise ConfigError(f"--set {text!r}: expected SYSTEM.key=value, for example {ours}.epochs=5")
        if name == EVERY_SYSTEM:
            takers = [system for system in systems if _has(system, kind, assignment)]
            if not takers:
                _changed(systems[0], kind, [assignment])  # raises a message about the problem
        elif name in own:
            takers = [name]
        else:
            expected = did_you_mean(name, [*own, EVERY_SYSTEM])
            raise ConfigError(f"--set {text!r}: {name!r} is not among the systems compared: {expected}")
        for taker in takers:
            own[taker].append(assignment)
    return {
        name: _changed(name, kind, texts, preset if name == ours else None) for name, texts in own.items()
    }


def missing_package(system: str) -> str | None:
    """Return why a system cannot run here, or None if it can."""
    package, extra = _EXTRAS.get(system, (None, ""))
    if package is None or find_spec(package) is not None:
        return None
    return str(MissingExtraError(package, extra))


def _has(system: str, kind: str, assignment: str) -> bool:
    """Return whether a system has the setting, for any value."""
    key = assignment.partition("=")[0].strip()
    if system == PECOS:
        return key.removeprefix("model.").removeprefix("text.") in PecosSettings.model_fields
    return Config.has_setting(kind, system, key)


def _changed(system: str, kind: str, assignments: Sequence[str], preset: str | None = None) -> dict[str, Any]:
    """Validate settings; equivalent settings give equal results."""
    if system == PECOS:
        return PecosSettings.parse(assignments).model_dump(exclude_defaults=True)
    try:
        settled = Config.build(kind, system, assignments=assignments, preset=preset).model_dump(mode="json")
    except ConfigError as error:
        raise ConfigError(f"--set, {system}: {error}") from None
    usual = Config.build(kind, system).model_dump(mode="json")
    if settled["model"]["name"] != system:
        raise ConfigError(f"--set, {system}: name the systems with --systems")
    return {
        key: value
        for section in Config.SECTIONS
        for key, value in _differences(settled[section], usual[section], section)
    }


def _differences(
    settled: Mapping[str, Any], usual: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, Any]]:
    """Yield the settings that differ; for a different network or encoder, the whole section."""
    for key, value in settled.items():
        before = usual.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping) and value["name"] == before["name"]:
            yield from _differences(value, before, f"{prefix}.{key}")
        elif value != before:
            yield f"{prefix}.{key}", value
