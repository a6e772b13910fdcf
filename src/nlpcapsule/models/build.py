"""From a configuration to a network."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from nlpcapsule.baselines.answers.build import build_answer_baseline
from nlpcapsule.baselines.bow_cnn import BowCNN
from nlpcapsule.baselines.cap_zhao import CapZhao
from nlpcapsule.baselines.kim_cnn import KimCNN
from nlpcapsule.baselines.released_xml_cnn import ReleasedXMLCNN
from nlpcapsule.baselines.xml_cnn import XMLCNN
from nlpcapsule.config import (
    BowCNNSettings,
    CapZhaoSettings,
    Config,
    KimCNNSettings,
    LabelQuerySettings,
    OfficialSettings,
    PaperSettings,
    ReleasedXMLCNNSettings,
    XMLCNNSettings,
)
from nlpcapsule.config.answer_baselines import PairSettings
from nlpcapsule.models.answer_ranker import AnswerNetwork
from nlpcapsule.models.label_query import LabelQueryNetwork
from nlpcapsule.models.official import OfficialNetwork
from nlpcapsule.models.paper import PaperNetwork


def build_label_network(
    config: Config,
    vocabulary_size: int,
    label_count: int,
    padding_id: int = 0,
    vectors: np.ndarray | None = None,
) -> nn.Module:
    """The label network a configuration names, with weights that depend on its seed alone.

    Args:
        config: The configuration.
        vocabulary_size: Number of tokens.
        label_count: n.
        padding_id: The token that fills rows up.
        vectors: Word vectors to start from.
    """
    torch.manual_seed(config.training.seed)
    length = config.text.max_tokens
    match config.model:
        case LabelQuerySettings() as settings:
            return LabelQueryNetwork(settings, vocabulary_size, label_count, padding_id, vectors)
        case PaperSettings() as settings:
            return PaperNetwork(settings, vocabulary_size, label_count, length, padding_id, vectors)
        case OfficialSettings() as settings:
            return OfficialNetwork(settings, vocabulary_size, label_count, length, padding_id, vectors)
        case KimCNNSettings() as settings:
            return KimCNN(settings, vocabulary_size, label_count, padding_id, vectors)
        case XMLCNNSettings() as settings:
            return XMLCNN(settings, vocabulary_size, label_count, padding_id, vectors)
        case BowCNNSettings() as settings:
            return BowCNN(settings, vocabulary_size, label_count, padding_id, vectors)
        case ReleasedXMLCNNSettings() as settings:
            return ReleasedXMLCNN(settings, vocabulary_size, label_count, length, padding_id, vectors)
        case CapZhaoSettings() as settings:
            return CapZhao(settings, vocabulary_size, label_count, length, padding_id, vectors)
        case other:
            raise TypeError(f"{other.name} does not rank labels")


def build_answer_network(
    config: Config,
    vocabulary_size: int,
    padding_id: int = 0,
    vectors: np.ndarray | None = None,
    idf: np.ndarray | None = None,
) -> nn.Module:
    """The answer network a configuration names, with weights that depend on its seed alone.

    Args:
        config: The configuration.
        vocabulary_size: Number of tokens.
        padding_id: The token that fills rows up.
        vectors: Word vectors to start from.
        idf: (V,) weights of words that question and answer share, for networks that look at these.
    """
    torch.manual_seed(config.training.seed)
    if isinstance(config.model, PairSettings):
        return build_answer_baseline(config.model, vocabulary_size, padding_id, vectors, idf)
    return AnswerNetwork(config.model, vocabulary_size, config.text.max_tokens, padding_id, vectors)
