"""From settings to an answer ranker of the comparison."""

from __future__ import annotations

import numpy as np

from nlpcapsule.baselines.answers.cnn_lr import CNNLR
from nlpcapsule.baselines.answers.cntn import CNTN
from nlpcapsule.baselines.answers.hd_lstm import HDLSTM
from nlpcapsule.baselines.answers.lstm import LSTMRanker
from nlpcapsule.baselines.answers.mv_lstm import MVLSTM
from nlpcapsule.baselines.answers.ntn_lstm import NTNLSTM
from nlpcapsule.baselines.answers.pair_network import PairNetwork
from nlpcapsule.baselines.answers.severyn_cnn import SeverynCNN
from nlpcapsule.config.answer_baselines import (
    AnswerBaselineSettings,
    CNNLRSettings,
    CNTNSettings,
    HDLSTMSettings,
    LSTMSettings,
    MVLSTMSettings,
    NTNLSTMSettings,
    SeverynCNNSettings,
)


def build_answer_baseline(
    settings: AnswerBaselineSettings,
    vocabulary_size: int,
    padding_id: int = 0,
    vectors: np.ndarray | None = None,
    idf: np.ndarray | None = None,
) -> PairNetwork:
    """The answer ranker that settings belong to.

    Args:
        settings: One of the classes in `ANSWER_BASELINES`.
        vocabulary_size: V, number of tokens.
        padding_id: The token that fills rows up.
        vectors: Word vectors to start from.
        idf: (V,) weight of each word in the overlap, of `inverse_document_frequency`.
    """
    match settings:
        case CNNLRSettings():
            return CNNLR(settings, vocabulary_size, padding_id, vectors, idf)
        case SeverynCNNSettings():
            return SeverynCNN(settings, vocabulary_size, padding_id, vectors, idf)
        case CNTNSettings():
            return CNTN(settings, vocabulary_size, padding_id, vectors, idf)
        case LSTMSettings():
            return LSTMRanker(settings, vocabulary_size, padding_id, vectors, idf)
        case MVLSTMSettings():
            return MVLSTM(settings, vocabulary_size, padding_id, vectors, idf)
        case NTNLSTMSettings():
            return NTNLSTM(settings, vocabulary_size, padding_id, vectors, idf)
        case HDLSTMSettings():
            return HDLSTM(settings, vocabulary_size, padding_id, vectors, idf)
