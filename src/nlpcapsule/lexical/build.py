"""Choose the class and settings of a lexical system from the configuration."""

from __future__ import annotations

from nlpcapsule.errors import ConfigError, quoted
from nlpcapsule.lexical.bag_of_words import LEAD_TOKENS
from nlpcapsule.lexical.omikuji import OmikujiSettings
from nlpcapsule.lexical.one_vs_rest import OneVsRestSettings
from nlpcapsule.lexical.ranker import LexicalRanker, LexicalSettings
from nlpcapsule.registry import find_system

# Documents times labels: half an hour on two cores. One-vs-rest is worth the time: in a hybrid it gains
# half a point of P@1 over Omikuji (EURLEX57K, 185 million).
MOST_ONE_VS_REST_WORK = 250_000_000


def lexical_system(settings: LexicalSettings) -> type[LexicalRanker]:
    """Return the class that a configuration's model section names."""
    system = find_system(settings.name).lexical
    assert system is not None
    return system


def evidence_system(wanted: str, documents: int, labels: int) -> str:
    """Return the lexical system that is joined with a network: the wanted one, or by size where it is "auto".

    One-vs-rest trains every label on every document, so "auto" chooses it for small data, Omikuji otherwise.
    """
    if wanted != "auto":
        return wanted
    return "one-vs-rest" if documents * labels <= MOST_ONE_VS_REST_WORK else "omikuji"


def evidence_settings(name: str) -> LexicalSettings:
    """Return the settings of a lexical system in a hybrid: its defaults, with separate lead features."""
    types = {"one-vs-rest": OneVsRestSettings, "omikuji": OmikujiSettings}
    if name not in types:
        raise ConfigError(f"unknown lexical system {quoted(name)}: expected one-vs-rest or omikuji")
    return types[name](lead_tokens=LEAD_TOKENS)
