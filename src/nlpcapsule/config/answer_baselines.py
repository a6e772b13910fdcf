"""Settings of the answer rankers that capsules are compared with on TREC QA."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nlpcapsule.config.settings import Settings


class PairSettings(Settings):
    """What every answer ranker of the comparison lets one choose."""

    embedding_size: int = Field(100, ge=1, description="word vector size (a vector file's size wins)")
    overlap: bool = Field(False, description="also look at the question words that the answer repeats")
    dropout: float = Field(0.3, ge=0, lt=1, description="dropout on word vectors and on the last layer")


class CNNLRSettings(PairSettings):
    """`cnn-lr`: similarity of mean vectors and logistic regression (Yu et al. 2014)."""

    name: Literal["cnn-lr"] = "cnn-lr"
    order: Literal[1, 2] = Field(2, description="1: mean of words (unigrams); 2: of convolved bigrams")
    overlap: bool = Field(True, description="also look at the question words that the answer repeats")


class SeverynCNNSettings(PairSettings):
    """`severyn-cnn`: convolution, maximum and bilinear similarity (Severyn & Moschitti 2015)."""

    name: Literal["severyn-cnn"] = "severyn-cnn"
    window: int = Field(5, ge=1, description="width of the convolution, in tokens")
    filters: int = Field(100, ge=1, description="filters for questions, and as many for answers")
    hidden: int = Field(200, ge=1, description="numbers in the hidden layer")
    overlap: bool = Field(True, description="also look at the question words that the answer repeats")


class CNTNSettings(PairSettings):
    """`cntn`: convolution, k-max pooling and a tensor layer (Qiu & Huang 2015)."""

    name: Literal["cntn"] = "cntn"
    window: int = Field(5, ge=1, description="width of the convolution, in tokens")
    filters: int = Field(50, ge=1, description="filters of the convolution")
    strongest: int = Field(4, ge=1, description="k: values each filter keeps, in the text's order")
    text_size: int = Field(64, ge=1, description="numbers that stand for a question or an answer")
    slices: int = Field(5, ge=1, description="r: slices of the tensor")


class LSTMSettings(PairSettings):
    """`lstm`: an LSTM for questions, one for answers, a hidden layer (baseline of Tay et al. 2017)."""

    name: Literal["lstm"] = "lstm"
    state_size: int = Field(128, ge=1, description="numbers in an LSTM's state")
    layers: int = Field(1, ge=1, description="LSTM layers on top of each other")
    pooling: Literal["last", "mean"] = Field("last", description="the text is its last state, or their mean")
    hidden: int = Field(64, ge=1, description="numbers in the hidden layer")


class MVLSTMSettings(PairSettings):
    """`mv-lstm`: similarities of all positions, the k largest (Wan et al. 2016)."""

    name: Literal["mv-lstm"] = "mv-lstm"
    state_size: int = Field(50, ge=1, description="numbers in an LSTM's state, per direction")
    similarity: Literal["bilinear", "cosine"] = Field("bilinear", description="how two positions compare")
    strongest: int = Field(5, ge=1, description="k: similarities that are kept, largest first")
    hidden: int = Field(32, ge=1, description="numbers in the hidden layer")


class NTNLSTMSettings(PairSettings):
    """`ntn-lstm`: an LSTM for questions, one for answers, a tensor layer (baseline of Tay et al. 2017)."""

    name: Literal["ntn-lstm"] = "ntn-lstm"
    state_size: int = Field(128, ge=1, description="numbers in an LSTM's state")
    layers: int = Field(1, ge=1, description="LSTM layers on top of each other")
    pooling: Literal["last", "mean"] = Field("last", description="the text is its last state, or their mean")
    slices: int = Field(5, ge=1, description="r: slices of the tensor")


class HDLSTMSettings(PairSettings):
    """`hd-lstm`: circular correlation of two LSTMs' states (Tay et al. 2017)."""

    name: Literal["hd-lstm"] = "hd-lstm"
    state_size: int = Field(128, ge=1, description="numbers in an LSTM's state")
    layers: int = Field(1, ge=1, description="LSTM layers on top of each other")
    pooling: Literal["last", "mean"] = Field("last", description="the text is its last state, or their mean")
    similarity: Literal["bilinear", "cosine"] = Field("bilinear", description="joined to the correlation")
    hidden: int = Field(64, ge=1, description="numbers in the hidden layer")
    overlap: bool = Field(True, description="also look at the question words that the answer repeats")


AnswerBaselineSettings = (
    CNNLRSettings
    | SeverynCNNSettings
    | CNTNSettings
    | LSTMSettings
    | MVLSTMSettings
    | NTNLSTMSettings
    | HDLSTMSettings
)

ANSWER_BASELINES: dict[str, type[PairSettings]] = {
    "cnn-lr": CNNLRSettings,
    "severyn-cnn": SeverynCNNSettings,
    "cntn": CNTNSettings,
    "lstm": LSTMSettings,
    "mv-lstm": MVLSTMSettings,
    "ntn-lstm": NTNLSTMSettings,
    "hd-lstm": HDLSTMSettings,
}
