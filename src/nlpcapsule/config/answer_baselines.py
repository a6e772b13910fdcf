"""Settings of the answer rankers that capsules are compared with on TREC QA."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nlpcapsule.config.settings import EMBEDDING_SIZE, Settings


class PairSettings(Settings):
    """What every answer ranker of the comparison lets one choose."""

    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
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


class BM25Settings(Settings):
    """`bm25`: weighted counts of the question's words in the answer (Robertson & Zaragoza 2009)."""

    embedding_size: ClassVar[int] = 0  # it has no word vectors

    name: Literal["bm25"] = "bm25"
    k1: float = Field(1.2, ge=0, description="how much a word's second, third, … occurrence adds")
    b: float = Field(0.75, ge=0, le=1, description="how much long answers are marked down")


class PretrainedSettings(Settings):
    """What systems made of a pretrained transformer share (extra `transformers`)."""

    embedding_size: ClassVar[int] = 0  # the transformer brings its own word vectors

    encoder: str = Field(
        "sentence-transformers/all-MiniLM-L6-v2",
        min_length=1,
        description="a pretrained transformer: its folder, or its id on the Hugging Face hub",
    )


class BiEncoderSettings(PretrainedSettings):
    """`bi-encoder`: cosine of a transformer's mean states (Reimers & Gurevych 2019)."""

    name: Literal["bi-encoder"] = "bi-encoder"
    tune: bool = Field(False, description="train the transformer further; false uses it as it is")


class CrossEncoderSettings(PretrainedSettings):
    """`cross-encoder`: a transformer reads question and answer together (Nogueira & Cho 2019)."""

    name: Literal["cross-encoder"] = "cross-encoder"
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout before the last layer")


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

YardstickSettings = BM25Settings | BiEncoderSettings | CrossEncoderSettings

# Not trained from scratch on the questions: word counts, and transformers pretrained on other text.
YARDSTICKS: dict[str, type[Settings]] = {
    "bm25": BM25Settings,
    "bi-encoder": BiEncoderSettings,
    "cross-encoder": CrossEncoderSettings,
}
