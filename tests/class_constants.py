"""Settings whose class constants, which no configuration can change, have other values for a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from nlpcapsule.config import Config, Settings
from nlpcapsule.registry import find_system

AnySettings = TypeVar("AnySettings", bound=Settings)


def settings_of(kind: type[AnySettings], **values: Any) -> AnySettings:
    """Settings of a class, constants among the values."""
    constants = {key: value for key, value in values.items() if key in kind.__class_vars__}
    return kind(**{key: value for key, value in values.items() if key not in constants}).model_copy(
        update=constants
    )


def config_of(task: str, model: str, values: Mapping[str, Any]) -> Config:
    """A configuration, constants of its network among the values."""
    network = values.get("network", "label-query") if model == "hybrid" else model
    names = find_system(network).settings.__class_vars__
    constants = {key: value for key, value in values.items() if key in names}
    config = Config.build(
        task, model, overrides={key: value for key, value in values.items() if key not in constants}
    )
    return config.with_network(config.network.model_copy(update=constants))
