"""From a configuration to a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from nlpcapsule.baselines.answers.bi_encoder import BiEncoder
from nlpcapsule.baselines.answers.bm25 import BM25
from nlpcapsule.baselines.answers.build import build_answer_baseline
from nlpcapsule.baselines.answers.cross_encoder import CrossEncoder
from nlpcapsule.baselines.bow_cnn import BowCNN
from nlpcapsule.baselines.cap_zhao import CapZhao
from nlpcapsule.baselines.convolution_linear import ConvolutionLinear
from nlpcapsule.baselines.embedding_linear import EmbeddingLinear
from nlpcapsule.baselines.released_xml_cnn import ReleasedXMLCNN
from nlpcapsule.baselines.transformer_linear import TransformerLinear
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
from nlpcapsule.config.answer_baselines import (
    BiEncoderSettings,
    BM25Settings,
    CrossEncoderSettings,
    PairSettings,
)
from nlpcapsule.config.linear_settings import (
    ConvolutionLinearSettings,
    EmbeddingLinearSettings,
    TransformerLinearSettings,
)
from nlpcapsule.networks.answer_ranker import AnswerNetwork
from nlpcapsule.networks.kim_cnn import KimCNN
from nlpcapsule.networks.label_query import LabelQueryNetwork
from nlpcapsule.networks.official import OfficialNetwork
from nlpcapsule.networks.paper import PaperNetwork


def build_label_network(
    config: Config,
    vocabulary_size: int,
    label_count: int,
    padding_id: int = 0,
    vectors: np.ndarray | None = None,
    transformer: dict[str, Any] | None = None,
) -> nn.Module:
    """The label network a configuration names, with weights that depend on its seed alone.

    Args:
        config: The configuration.
        vocabulary_size: Number of tokens.
        label_count: n.
        padding_id: The token that fills rows up.
        vectors: Word vectors to start from.
        transformer: A pretrained transformer's configuration, where its weights will be loaded from a model
            folder; None reads the encoder that the configuration names.
    """
    torch.manual_seed(config.training.seed)
    length = config.text.max_tokens
    match config.model:
        case LabelQuerySettings() as settings:
            return LabelQueryNetwork(
                settings,
                vocabulary_size,
                label_count,
                padding_id,
                vectors,
                length,
                transformer,
                named=config.text.label_names is not None,
            )
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
        case ConvolutionLinearSettings() as settings:
            return ConvolutionLinear(settings, vocabulary_size, label_count, padding_id, vectors)
        case TransformerLinearSettings() as settings:
            return TransformerLinear(settings, vocabulary_size, label_count, padding_id, length, transformer)
        case EmbeddingLinearSettings() as settings:
            return EmbeddingLinear(settings, vocabulary_size, label_count, padding_id, length, transformer)
        case other:
            raise TypeError(f"{other.name} does not rank labels")


def build_answer_network(
    config: Config,
    vocabulary_size: int,
    padding_id: int = 0,
    vectors: np.ndarray | None = None,
    idf: np.ndarray | None = None,
    transformer: dict[str, Any] | None = None,
) -> nn.Module:
    """The answer network a configuration names, with weights that depend on its seed alone.

    Args:
        config: The configuration.
        vocabulary_size: Number of tokens.
        padding_id: The token that fills rows up.
        vectors: Word vectors to start from.
        idf: (V,) weights of words that question and answer share, for networks that look at these.
        transformer: A pretrained transformer's configuration, where its weights will be loaded from a model
            folder; None reads the encoder that the configuration names.
    """
    torch.manual_seed(config.training.seed)
    length = config.text.max_tokens
    match config.model:
        case PairSettings() as settings:
            return build_answer_baseline(settings, vocabulary_size, padding_id, vectors, idf)
        case BM25Settings() as settings:
            return BM25(settings, vocabulary_size, padding_id)
        case BiEncoderSettings() as settings:
            return BiEncoder(settings, vocabulary_size, length, padding_id, transformer)
        case CrossEncoderSettings() as settings:
            return CrossEncoder(settings, vocabulary_size, length, padding_id, transformer)
        case settings:
            return AnswerNetwork(settings, vocabulary_size, length, padding_id, vectors, idf, transformer)
