"""The systems that can be compared, their configurations, and the packages they need."""

from collections.abc import Sequence
from importlib.util import find_spec

from nlpcapsule.config import DEFAULT_SYSTEM, Config
from nlpcapsule.errors import ConfigError, MissingExtraError, did_you_mean
from nlpcapsule.registry import find_system, system_names

DEFAULT_SYSTEMS = {
    "labels": (DEFAULT_SYSTEM["labels"], "one-vs-rest", "omikuji", "fasttext", "xml-cnn"),
    "answers": (DEFAULT_SYSTEM["answers"], "bm25", "bi-encoder"),
}
EVERY_SYSTEM = "all"  # in --set: a setting of each system that has it
_PACKAGES = {"trees": "numba"}  # extra → its package, if they have different names


def chosen_systems(wanted: str | None, kind: str) -> list[str]:
    """Parse the systems a user names, separated by commas; the default ones if none is named."""
    if wanted is None:
        return list(DEFAULT_SYSTEMS[kind])
    known = system_names(kind)
    names = list(dict.fromkeys(name.strip() for name in wanted.split(",") if name.strip()))
    if not names:
        raise ConfigError(f"--systems names no system: expected some of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise ConfigError(
                f"--systems: there is no system {name!r} for {kind}: {did_you_mean(name, known)}"
            )
    return names


def system_configs(
    systems: Sequence[str], kind: str, assignments: Sequence[str], preset: str | None = None, seed: int = 1
) -> dict[str, Config]:
    """Return the configuration of each system; the preset is for the default system only.

    Assignments are texts such as "hybrid.epochs=5" or "all.max_tokens=200".
    """
    ours = DEFAULT_SYSTEM[kind]
    if preset is not None and ours not in systems:
        raise ConfigError(f"--preset {preset} is for {ours}, which is not among the systems compared")
    own: dict[str, list[str]] = {name: [] for name in systems}
    for text in assignments:
        name, dot, assignment = text.partition(".")
        if not dot or "=" not in assignment:
            raise ConfigError(f"--set {text!r}: expected SYSTEM.key=value, for example {ours}.epochs=5")
        if name not in (*own, EVERY_SYSTEM):
            expected = did_you_mean(name, [*own, EVERY_SYSTEM])
            raise ConfigError(f"--set {text!r}: {name!r} is not among the systems compared: {expected}")
        key = assignment.partition("=")[0].strip()
        takers = [name]
        if name == EVERY_SYSTEM:  # if none has the setting, the first one's error describes the problem
            takers = [system for system in systems if Config.has_setting(kind, system, key)] or [systems[0]]
        for taker in takers:
            own[taker].append(assignment)
    configs = {}
    for name, texts in own.items():
        chosen = preset if name == ours else None
        try:
            configs[name] = Config.build(kind, name, None, texts, {"training.seed": seed}, chosen)
        except ConfigError as error:
            raise ConfigError(f"--set, {name}: {error}") from None
        if configs[name].model.name != name:
            raise ConfigError(f"--set, {name}: name the systems with --systems")
    return configs


def missing_package(system: str) -> str | None:
    """Return why a system cannot run here, or None if it can."""
    extra = find_system(system).extra
    if extra is None or find_spec(package := _PACKAGES.get(extra, extra)) is not None:
        return None
    return str(MissingExtraError(package, extra))
