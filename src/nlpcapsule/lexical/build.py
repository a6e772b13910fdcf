"""Choose the class and settings of a lexical system from the configuration."""

from __future__ import annotations

from nlpcapsule.errors import ConfigError, quoted
from nlpcapsule.lexical.bag_of_words import LEAD_TOKENS
from nlpcapsule.lexical.omikuji import OmikujiSettings
from nlpcapsule.lexical.one_vs_rest import OneVsRestSettings
from nlpcapsule.lexical.ranker import LexicalRanker, LexicalSettings
from nlpcapsule.registry import find_system


def lexical_system(settings: LexicalSettings) -> type[LexicalRanker]:
    """Return the class that a configuration's model section names."""
    system = find_system(settings.name).lexical
    assert system is not None
    return system


def evidence_system(wanted: str) -> str:
    """Return the lexical system that is joined with a network: the wanted one, or what "auto" chooses.

    One-vs-rest gains half a point of P@1 over Omikuji in a hybrid (EURLEX57K). Where there are too many
    labels to train each on every document, its centroids nominate more of the true ones (docs/scale.md).
    """
    return "one-vs-rest" if wanted == "auto" else wanted


def evidence_settings(name: str) -> LexicalSettings:
    """Return the settings of a lexical system in a hybrid: its defaults, with separate lead features."""
    types = {"one-vs-rest": OneVsRestSettings, "omikuji": OmikujiSettings}
    if name not in types:
        raise ConfigError(f"unknown lexical system {quoted(name)}: expected one-vs-rest or omikuji")
    return types[name](lead_tokens=LEAD_TOKENS)
