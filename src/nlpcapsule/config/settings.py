"""The sections of the configuration: every setting with its default, its bounds and its meaning."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

Task = Literal["labels", "answers"]
CapsuleRouting = Literal["dynamic", "em", "kde", "kde-em", "adaptive-kde"]
LabelRouting = Literal["dot", "kde", "adaptive-kde"]
Widths = tuple[Annotated[int, Field(ge=1)], ...]

EMBEDDING_SIZE = "numbers per word; shorter vectors of a file are filled up and learned, longer ones are kept"

# Encoders over word vectors; `encoders.register_encoder` adds to them. Any other is a pretrained transformer.
WORD_ENCODERS = ["convolution", "bilstm"]


class Settings(BaseModel):
    """A section of the configuration: unknown keys are refused, values are never changed silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TextSettings(Settings):
    """How text becomes tokens."""

    max_tokens: int = Field(500, ge=1, description="tokens of a document that are read; the rest is cut off")
    vocabulary_size: int = Field(60_000, ge=3, description="most words the trained tokenizer knows")
    min_count: int = Field(2, ge=1, description="a word must occur this often in the training part")
    tokenizer: str | None = Field(None, description="a tokenizer.json to use in place of training one")
    vectors: str | None = Field(None, description="GloVe or word2vec text file the embedding starts from")
    label_names: str | None = Field(
        None, description="a file of label names, from which labels with few examples or none are learned"
    )


class LabelQuerySettings(Settings):
    """`label-query`: every label asks the document's capsules with a learned query."""

    name: Literal["label-query"] = "label-query"
    encoder: str = Field(
        "convolution",
        min_length=1,
        description="convolution, bilstm, or a pretrained transformer: its folder, or its id on the Hugging "
        "Face hub (extra `transformers`)",
    )
    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    windows: Widths = Field((1, 3, 5, 9), min_length=1, description="convolution widths, in tokens")
    filters: int = Field(256, ge=1, description="filters per width")
    state_size: int = Field(256, ge=1, description="bilstm: numbers in a state, per direction")
    layers: int = Field(1, ge=1, description="bilstm: layers on top of each other")
    window: int = Field(
        512, ge=3, description="transformer: tokens read at once; longer documents are cut into windows"
    )
    stride: int | None = Field(
        None, ge=1, description="transformer: tokens from one window's start to the next; none: even parts"
    )
    encoder_rate: float = Field(5e-5, gt=0, description="transformer: the peak of its own learning rate")
    checkpointing: bool = Field(
        False, description="transformer: computes states again for the gradient, which saves memory"
    )
    capsule_size: int = Field(256, ge=2, description="numbers in a capsule")
    condensed: int = Field(128, ge=0, description="condensed capsules; 0 routes every token, uncompressed")
    routing: LabelRouting = Field("adaptive-kde", description="how label capsules and capsules agree")
    iterations: int = Field(3, ge=1, description="routing iterations, where they are fixed")
    max_iterations: int = Field(6, ge=1, description="adaptive: never more than this")
    epsilon: float = Field(0.05, gt=0, description="adaptive: a document stops when its NAS moves less")
    bandwidth: float = Field(
        3.0,
        ge=0,
        description="adaptive: the kernel's reach to start from, in spreads of a document's capsules; "
        "training moves it; 0: unscaled",
    )
    document_size: int = Field(512, ge=0, description="numbers for the document as a whole; 0 leaves it out")
    word_dropout: float = Field(
        0.0, ge=0, lt=1, description="part of the words (transformer: word pieces) left out in training"
    )
    token_dropout: float = Field(0.15, ge=0, lt=1, description="dropout on word vectors and encoder states")
    capsule_dropout: float = Field(0.3, ge=0, lt=1, description="dropout on label capsules")
    overlap: bool = Field(
        False, description="answers: words that question and answer share join the capsules' cosine"
    )

    @property
    def is_pretrained(self) -> bool:
        """Whether the encoder is a pretrained transformer, with a tokenizer and word vectors of its own."""
        return self.encoder not in WORD_ENCODERS


class PaperSettings(Settings):
    """`paper`: the chain of Zhao et al. 2019 as printed, and how it starts."""

    name: Literal["paper"] = "paper"
    embedding_size: int = Field(300, ge=8, description=EMBEDDING_SIZE)
    frequency_weighting: float = Field(
        1e-3,
        ge=0,
        description="word vectors start centred and weighted by a/(a + p(w)), p being a word's frequency; "
        "the smoothing constant a; 0 turns it off",
    )
    windows: Widths = Field((2, 4, 8), min_length=1, description="filter widths along the embedding")
    filters: int = Field(32, ge=1, description="filters per width")
    filter_start: Literal["shared", "independent"] = Field(
        "shared", description="whether a filter starts alike at all token positions"
    )
    capsule_size: int = Field(16, ge=2, description="numbers in a capsule")
    condensed: int = Field(128, ge=0, description="condensed capsules; 0 routes all primary capsules")
    condensed_length: float = Field(
        3.0, ge=0, description="mean length of condensed capsules at the start; 0 leaves it to chance"
    )
    votes: Literal["pair", "class"] = Field(
        "pair", description="a matrix per pair of capsule and label, or one per label"
    )
    word_dropout: float = Field(0.2, ge=0, lt=1, description="part of the words left out in training")
    token_dropout: float = Field(0.3, ge=0, lt=1, description="dropout on word vectors")
    routing: CapsuleRouting = Field("adaptive-kde", description="routing algorithm")
    iterations: int = Field(3, ge=1, description="routing iterations, where they are fixed")
    max_iterations: int = Field(10, ge=1, description="adaptive: never more than this")
    epsilon: float = Field(0.05, gt=0, description="adaptive: a document stops when its NAS moves less")
    alpha: float = Field(1.0, gt=0, description="step size of the coupling update")
    softmax: Literal["leaky", "standard"] = Field("leaky", description="softmax over outputs")
    literal: bool = Field(False, description="adaptive: Algorithm 1 to the letter")
    kappa: float = Field(1.0, gt=0, description="squash: ‖x‖²/(κ+‖x‖²)")
    overlap: bool = Field(
        False, description="answers: words that question and answer share join the capsules' cosine"
    )


class OfficialSettings(Settings):
    """`official`: what the released code does, for comparison."""

    name: Literal["official"] = "official"
    embedding_size: int = Field(100, ge=8, description=EMBEDDING_SIZE)
    windows: Widths = Field((2, 4, 8), min_length=1, description="filter widths along the embedding")
    filters: int = Field(32, ge=1, description="filters per width")
    capsule_size: int = Field(16, ge=2, description="numbers in a capsule")
    condensed: int = Field(128, ge=1, description="condensed capsules")
    routing: CapsuleRouting = Field("adaptive-kde", description="routing algorithm")
    iterations: int = Field(3, ge=1, description="routing iterations, where they are fixed")
    max_iterations: int = Field(50, ge=1, description="adaptive: a cap the released code does not have")
    epsilon: float = Field(0.05, gt=0, description="adaptive: stops when the batch's mean NAS moves less")
    alpha: float = Field(1.0, gt=0, description="step size of the coupling update")
    softmax: Literal["leaky", "standard"] = Field("standard", description="softmax over outputs")
    kappa: float = Field(0.5, gt=0, description="squash: ‖x‖²/(κ+‖x‖²)")


class KimCNNSettings(Settings):
    """`kim-cnn`: convolution over time, one maximum per filter (Kim 2014)."""

    name: Literal["kim-cnn"] = "kim-cnn"
    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    windows: Widths = Field((3, 4, 5), min_length=1, description="convolution widths, in tokens")
    filters: int = Field(128, ge=1, description="filters per width")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout before the output layer")


class XMLCNNSettings(Settings):
    """`xml-cnn`: dynamic max pooling and a bottleneck (Liu et al. 2017)."""

    name: Literal["xml-cnn"] = "xml-cnn"
    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    windows: Widths = Field((2, 4, 8), min_length=1, description="convolution widths, in tokens")
    filters: int = Field(128, ge=1, description="filters per width")
    pools: int = Field(8, ge=1, description="equal parts of the document, each giving one maximum per filter")
    bottleneck: int = Field(512, ge=1, description="hidden layer before the output layer")
    token_dropout: float = Field(0.25, ge=0, lt=1, description="dropout on word vectors")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout on the bottleneck")


class BowCNNSettings(Settings):
    """`bow-cnn`: convolution over bags of neighbouring words (Johnson & Zhang 2015); uses no word vectors."""

    # Its tables hold a filter's weights per word; whoever asks for the size of word vectors finds none.
    embedding_size: ClassVar[int] = 0

    name: Literal["bow-cnn"] = "bow-cnn"
    windows: Widths = Field((20,), min_length=1, description="region sizes, in tokens")
    filters: int = Field(1000, ge=1, description="filters per region size")
    pools: int = Field(10, ge=1, description="equal parts of the document, each pooled by itself")
    pooling: Literal["average", "max"] = Field("average", description="what a part gives per filter")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout before the output layer")


class ReleasedXMLCNNSettings(Settings):
    """`released-xml-cnn`: what the released NLP-Capsule code calls XML-CNN; linear unless `relu` is set."""

    name: Literal["released-xml-cnn"] = "released-xml-cnn"
    embedding_size: int = Field(100, ge=8, description=EMBEDDING_SIZE)
    windows: Widths = Field((2, 4, 8), min_length=1, description="filter widths along the embedding")
    filters: int = Field(32, ge=1, description="filters per width")
    bottleneck: int = Field(512, ge=1, description="hidden layer before the output layer")
    relu: bool = Field(False, description="a ReLU after the convolution and after the bottleneck")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout on the bottleneck")


class CapZhaoSettings(Settings):
    """`cap-zhao`: capsules over n-grams, routed twice (Zhao et al. 2018); routes to all labels."""

    name: Literal["cap-zhao"] = "cap-zhao"
    variant: Literal["A", "B"] = Field("B", description="A: 3-grams; B: the mean of 3-, 4- and 5-grams")
    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    filters: int = Field(32, ge=1, description="filters of the n-gram convolution")
    stride: int = Field(2, ge=1, description="tokens between n-grams; 1 in the article, 2 in its code")
    channels: int = Field(16, ge=1, description="capsules per position, in both layers below the labels")
    capsule_size: int = Field(16, ge=2, description="numbers in a capsule")
    neighbours: int = Field(3, ge=1, description="positions the convolutional capsule layer looks at")
    iterations: int = Field(3, ge=1, description="routing iterations")
    overlap: bool = Field(
        False, description="answers: words that question and answer share join the capsules' cosine"
    )


class TrainingSettings(Settings):
    """The training loop."""

    epochs: int = Field(20, ge=1, description="passes over the training part")
    batch_size: int = Field(
        32, ge=1, description="documents (or questions) per batch, all processes together"
    )
    accumulate: int = Field(1, ge=1, description="batches whose gradients make one step")
    learning_rate: float = Field(1e-3, gt=0, description="the peak of the one-cycle schedule")
    warmup: float = Field(0.15, ge=0, lt=1, description="part of the steps in which the rate rises")
    weight_decay: float = Field(
        0.01, ge=0, description="AdamW's decay of weight matrices, but for `paper`'s per pair"
    )
    clip: float = Field(1.0, gt=0, description="largest norm of a step's gradient")
    loss: Literal["bce", "margin", "spread", "pointwise", "pairwise"] = Field(
        "bce", description="labels: bce, margin, spread; answers: pointwise, pairwise"
    )
    negatives: Literal["all", "uniform", "batch", "hard"] = Field(
        "all", description="partial routing: the outputs a document is routed to beside its own labels"
    )
    negative_count: int = Field(200, ge=1, description="negatives per document (uniform, hard)")
    negative_weight: float = Field(1.0, gt=0, description="λ, the negatives' weight in the loss")
    shuffle: bool = Field(True, description="a new order of documents in every epoch")
    average: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="decay of the moving average of weights, at most such that it looks back on a quarter of "
        "the training; 0 is off",
    )
    precision: Literal["float32", "bf16"] = Field("float32", description="arithmetic of the forward pass")
    patience: int = Field(
        0, ge=0, description="stop after so many epochs without a better dev score; 0: never"
    )
    select_by: str | None = Field(
        None, description="dev metric of the best epoch (nDCG@5, or MAP for answers)"
    )
    dev_fraction: float = Field(0.0, ge=0, lt=1, description="held out of train when no dev part is given")
    checkpoint_epochs: int = Field(1, ge=0, description="epochs between checkpoints; 0: none")
    checkpoint_steps: int = Field(0, ge=0, description="steps between checkpoints inside an epoch; 0: none")
    tensorboard: bool = Field(False, description="also write TensorBoard curves (extra `tensorboard`)")
    seed: int = Field(1, ge=0, description="seed of weights, order, dropout and negatives")


class InferenceSettings(Settings):
    """From scores to ranked labels."""

    batch: int = Field(64, ge=1, description="documents per forward pass")
    candidates: int = Field(
        0, ge=0, description="labels nominated for routing; 0 routes to all (with `lexical`: to 200)"
    )
    threshold_for: Literal["micro-F1", "macro-F1", "precision"] = Field(
        "micro-F1", description="what the decision threshold is tuned for, on dev"
    )
    wanted_precision: float = Field(
        0.9, gt=0, le=1, description="part of the returned labels to be right, with threshold_for=precision"
    )
    lexical: Literal["none", "auto", "one-vs-rest", "omikuji"] = Field(
        "none",
        description="lexical system that nominates the candidates, a Kim-CNN's work else, and whose score "
        "is fused with the network's; auto takes one-vs-rest for small data and omikuji beyond",
    )
