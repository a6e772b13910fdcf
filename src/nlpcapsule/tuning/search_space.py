"""The few settings that are searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nlpcapsule.config import Config
from nlpcapsule.lexical.ranker import LexicalSettings

if TYPE_CHECKING:
    from optuna import Trial


@dataclass(frozen=True)
class Range:
    """Numbers between two bounds.

    Attributes:
        low: The lowest.
        high: The highest.
        log: Whether ratios matter, not differences.
    """

    low: float
    high: float
    log: bool = False

    def suggest(self, trial: Trial, name: str) -> float:
        """Choose a number for a trial."""
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]

    def suggest(self, trial: Trial, name: str) -> Any:
        """Choose a value for a trial."""
        return trial.suggest_categorical(name, self.values)


# Short names of settings; a system is searched over those that it has.
SPACE: dict[str, Range | Choice] = {
    "learning_rate": Range(3e-4, 5e-3, log=True),
    "word_dropout": Range(0.0, 0.3),
    "token_dropout": Range(0.0, 0.5),
    "capsule_dropout": Range(0.0, 0.6),
    "condensed": Choice((32, 64, 128)),
    "C": Range(0.1, 10.0, log=True),
}


def searched_settings(config: Config, fixed: set[str]) -> dict[str, Range | Choice]:
    """Return the settings to search for a system, without those that the user has fixed.

    Args:
        config: The configuration to start from.
        fixed: Names of settings that the user gave, full or short.
    """
    left_out = {name.rpartition(".")[2] for name in fixed}
    if isinstance(config.model, LexicalSettings):
        left_out.add("learning_rate")  # of the training section, which it does not use
    return {
        name: values
        for name, values in SPACE.items()
        if name not in left_out and Config.has_setting(config.task, config.model.name, name)
    }


def setting_value(config: Config, name: str) -> Any:
    """Return the value of a setting, wherever it is nested; None if it has none."""
    return _find(config.model_dump(include=set(Config.SECTIONS)), name)


def _find(values: dict[str, Any], name: str) -> Any:
    if name in values and not isinstance(values[name], dict):
        return values[name]
    nested = (_find(value, name) for value in values.values() if isinstance(value, dict))
    return next((value for value in nested if value is not None), None)
