"""The lexical systems there are, by the settings that name them."""

from __future__ import annotations

from nlpcapsule.config.lexical_settings import LexicalSettings
from nlpcapsule.lexical.fast_text import FastText
from nlpcapsule.lexical.fast_xml import FastXML
from nlpcapsule.lexical.omikuji_trees import OmikujiTrees
from nlpcapsule.lexical.one_vs_rest import OneVsRest
from nlpcapsule.lexical.pd_sparse import PDSparse
from nlpcapsule.lexical.ranker import LexicalRanker

_SYSTEMS: tuple[type[LexicalRanker], ...] = (OneVsRest, OmikujiTrees, FastXML, PDSparse, FastText)


def lexical_system(settings: LexicalSettings) -> type[LexicalRanker]:
    """The class that a configuration's model section asks for."""
    return next(system for system in _SYSTEMS if isinstance(settings, system.settings_type))
