"""Every setting there is; files and `--set` are checked against it.

A configuration has four sections: `text`, `model`, `training`, `inference`. What a network's own settings
are depends on its name, and some defaults of `training` and `inference` depend on the network too.
No torch here: a wrong option is reported before anything heavy is imported.
"""

from nlpcapsule.config.configuration import PRESETS, Config
from nlpcapsule.config.networks import ANSWER_MODELS, LABEL_MODELS, MODELS, ModelSettings
from nlpcapsule.config.settings import (
    BowCNNSettings,
    CapZhaoSettings,
    InferenceSettings,
    KimCNNSettings,
    LabelQuerySettings,
    OfficialSettings,
    PaperSettings,
    ReleasedXMLCNNSettings,
    Settings,
    TextSettings,
    TrainingSettings,
    XMLCNNSettings,
)

__all__ = [
    "ANSWER_MODELS",
    "LABEL_MODELS",
    "MODELS",
    "PRESETS",
    "BowCNNSettings",
    "CapZhaoSettings",
    "Config",
    "InferenceSettings",
    "KimCNNSettings",
    "LabelQuerySettings",
    "ModelSettings",
    "OfficialSettings",
    "PaperSettings",
    "ReleasedXMLCNNSettings",
    "Settings",
    "TextSettings",
    "TrainingSettings",
    "XMLCNNSettings",
]
