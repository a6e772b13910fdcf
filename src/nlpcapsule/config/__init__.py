"""The configuration: all settings, and the checks of files and `--set`.

A configuration has four sections: `text`, `model`, `training`, `inference`. The settings of a system or an
encoder are defined in its file, which `nlpcapsule.registry` finds by name.
"""

from nlpcapsule.config.configuration import PRESETS, Config
from nlpcapsule.config.nesting import DEFAULT_SYSTEM
from nlpcapsule.config.settings import InferenceSettings, Settings, TextSettings, TrainingSettings

__all__ = [
    "DEFAULT_SYSTEM",
    "PRESETS",
    "Config",
    "InferenceSettings",
    "Settings",
    "TextSettings",
    "TrainingSettings",
]
