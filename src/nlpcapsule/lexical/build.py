"""The lexical systems there are, by the settings that name them."""

from __future__ import annotations

from nlpcapsule.lexical.bag_of_words import LEAD_TOKENS
from nlpcapsule.lexical.omikuji import OmikujiSettings
from nlpcapsule.lexical.one_vs_rest import OneVsRestSettings
from nlpcapsule.lexical.ranker import LexicalRanker, LexicalSettings
from nlpcapsule.registry import find_system

# Documents times labels: half an hour on two cores. One-vs-rest is worth the time: beside a network it brings
# half a point of P@1 more than Omikuji (EURLEX57K, 185 million).
MOST_ONE_VS_REST_WORK = 250_000_000


def lexical_system(settings: LexicalSettings) -> type[LexicalRanker]:
    """The class that a configuration's model section asks for."""
    system = find_system(settings.name).lexical
    assert system is not None
    return system


def evidence_system(wanted: str, documents: int, labels: int) -> str:
    """The system that works beside a network.

    One-vs-rest learns every label from every document, so "auto" takes it for small data, Omikuji beyond.

    Args:
        wanted: "auto", or a system's name.
        documents: Training documents.
        labels: n.
    """
    if wanted != "auto":
        return wanted
    return "one-vs-rest" if documents * labels <= MOST_ONE_VS_REST_WORK else "omikuji"


def evidence_settings(name: str) -> LexicalSettings:
    """The settings of a system that works beside a network: its defaults, and the lead's words apart."""
    match name:
        case "one-vs-rest":
            return OneVsRestSettings(lead_tokens=LEAD_TOKENS)
        case _:
            return OmikujiSettings(lead_tokens=LEAD_TOKENS)
