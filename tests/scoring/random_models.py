"""Models with random weights, scaled up until their routing really moves, and documents of random words."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import torch
from hypothesis import strategies as st
from torch import nn

from class_constants import config_of
from nlpcapsule.capsules.vote_scale import VoteScale
from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.networks.build import build_network
from nlpcapsule.scoring.build import network_scorer, nominator_config
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.scoring.network_scorer import NetworkScorer
from nlpcapsule.scoring.nominated_scorer import NominatedScorer

WORDS = [
    first + last for first in ("ba", "do", "ki", "lu", "me", "ra") for last in ("tan", "vel", "sor", "mip")
]
LABELS = LabelVocabulary([f"label {number}" for number in range(15)], range(15, 0, -1))
CANDIDATES = 8
MOST_TOKENS = 20

_SIZES = {"max_tokens": MOST_TOKENS, "embedding_size": 12, "filters": 6}
_CAPSULES = _SIZES | {"capsule_size": 8, "condensed": 5}
_SIZES_OF = {
    "bow-cnn": {"max_tokens": MOST_TOKENS, "windows": (5, 2), "filters": 6},
    "cap-zhao": _SIZES | {"capsule_size": 8, "channels": 3},
}
_SCALE = {
    "label-query": 2.0,
    "paper": 2.0,
    "official": 1.2,
    "kim-cnn": 3.0,
    "xml-cnn": 3.0,
    "bow-cnn": 3.0,
    "released-xml-cnn": 3.0,
    "cap-zhao": 2.0,
    "convolution-linear": 3.0,
}


def random_label_model(model: str, routing: str | None, **settings: Any) -> LabelModel:
    """A label model; `paper` and `official` rank what a Kim-CNN nominates."""
    sizes = _SIZES_OF.get(model, _SIZES) if routing is None else _CAPSULES | {"routing": routing}
    if model in ("paper", "official"):
        settings = {"candidates": CANDIDATES} | settings
    if model == "official":  # it has one routing
        sizes = {key: value for key, value in sizes.items() if key != "routing"}
    config = config_of("labels", model, sizes | adaptive(model, routing) | settings)
    tokenizer = word_tokenizer()
    network = build_network(config, tokenizer.size, label_count=len(LABELS), padding_id=tokenizer.padding_id)
    nominator = None
    if config.inference.candidates:
        beside = nominator_config(config)
        nominator = scaled(
            build_network(beside, tokenizer.size, label_count=len(LABELS), padding_id=tokenizer.padding_id),
            2.0,
        )
    scorer = network_scorer(config, tokenizer, scaled(network, _SCALE[model]), nominator)
    return LabelModel(config, tokenizer, LABELS, scorer)


def with_batch(scorer: Any, size: int) -> Any:
    """The same scorer with so many documents per forward pass."""
    match scorer:
        case NominatedScorer():
            return replace(scorer, batch=size, nominator=with_batch(scorer.nominator, size))
        case HybridScorer():
            return replace(scorer, scorer=with_batch(scorer.scorer, size))
        case NetworkScorer():
            return replace(scorer, batch=size)
    return scorer


def random_answer_model(model: str, routing: str) -> AnswerModel:
    overrides = _CAPSULES | {"routing": routing} | adaptive(model, routing)
    config = config_of("answers", model, overrides)
    tokenizer = word_tokenizer()
    network = build_network(config, tokenizer.size, padding_id=tokenizer.padding_id)
    scale, offset = network.scale.item(), network.offset.item()
    scaled(network, _SCALE[model])
    with torch.no_grad():  # only the routing is to be stirred
        network.scale.fill_(scale)
        network.offset.fill_(offset)
    return AnswerModel(config, tokenizer, network)


def adaptive(model: str, routing: str | None) -> dict[str, Any]:
    """Room for documents to take different numbers of iterations."""
    if routing != "adaptive-kde":
        return {}
    epsilon = {"label-query": 0.005, "paper": 0.1, "official": 0.15}[model]
    return {"epsilon": epsilon, "iterations": 6}


def scaled(network: nn.Module, factor: float) -> nn.Module:
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):  # or all labels would be next to impossible
                continue
            # Matrices per pair start so near zero that nothing would be routed at all.
            parameter.mul_(factor * 1e4 if name == "transform.rows" else factor)
        for module in network.modules():
            if isinstance(module, VoteScale):  # as training would find it
                module.log_spread.fill_(-1.5)
    return network.eval()


@cache
def word_tokenizer() -> WordTokenizer:
    return WordTokenizer.train([" ".join(WORDS)], vocabulary_size=100, min_count=1)


def texts(most_words: int = 25) -> st.SearchStrategy[str]:
    """Some are longer than what is read of a document, and some have no word at all."""
    return st.lists(st.sampled_from(WORDS), max_size=most_words).map(" ".join)


def questions() -> st.SearchStrategy[Question]:
    candidates = st.lists(texts().map(Candidate), min_size=1, max_size=5).map(tuple)
    return st.builds(Question, texts(), candidates)
