"""Every setting there is; files and `--set` are checked against it.

A configuration has four sections: `text`, `model`, `training`, `inference`. What a system's own settings are
depends on its name; they are in the system's file, which `nlpcapsule.registry` finds. Those of an
encoder are in the encoder's file.
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
