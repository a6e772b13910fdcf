"""The sections of the configuration: every setting with its default, its bounds and its meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from nlpcapsule.errors import ConfigError

if TYPE_CHECKING:
    from nlpcapsule.config.configuration import Config

Task = Literal["labels", "answers"]
# Names that a plugin may add to; `capsules.routing.ROUTINGS` and `networks.losses.LABEL_LOSSES` know them.
CapsuleRouting = Annotated[
    str, Field(json_schema_extra={"enum": ["dynamic", "em", "kde", "kde-em", "adaptive-kde"]})
]
Loss = Annotated[str, Field(json_schema_extra={"enum": ["bce", "margin", "spread", "pointwise", "pairwise"]})]
LabelRouting = Literal["dot", "kde", "adaptive-kde"]
Widths = tuple[Annotated[int, Field(ge=1)], ...]

EMBEDDING_SIZE = "numbers per word; shorter vectors of a file are filled up and learned, longer ones are kept"

# Encoders over word vectors; `encoders.register_encoder` adds to them. Any other is a pretrained transformer.
WORD_ENCODERS = ["convolution", "bilstm"]


class Settings(BaseModel):
    """A section of the configuration: unknown keys are refused, values are never changed silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SystemSettings(Settings):
    """A system's `[model]` section; each system's file derives its own.

    Attributes:
        name: The system's name.
        embedding_size: Numbers per word; 0 for a system without word vectors of its own.
        routes_to_chosen: Whether it can be routed to chosen labels, so that training may sample negatives.
        scores_candidates: Whether it can score nominated labels alone, so that it can be joined with a
            lexical system.
        takes_label_names: Whether it learns from what labels are called.
    """

    routes_to_chosen: ClassVar[bool] = False
    scores_candidates: ClassVar[bool] = False
    takes_label_names: ClassVar[bool] = False

    name: str
    if TYPE_CHECKING:
        embedding_size: int = 0

    @property
    def transformer(self) -> str | None:
        """The pretrained transformer that reads the texts, a folder or a hub id; None without one."""
        return None

    @property
    def compares_words(self) -> bool:
        """Answers: whether its capsules also look at the words that question and answer share."""
        return False

    def check(self, config: Config) -> None:
        """Raises a ConfigError if the settings do not go with each other or with the other sections."""


class PretrainedSettings(SystemSettings):
    """What systems made of a pretrained transformer share (extra `transformers`)."""

    embedding_size: ClassVar[int] = 0  # type: ignore[misc]  # the transformer brings its own word vectors

    encoder: str = Field(
        "sentence-transformers/all-MiniLM-L6-v2",
        min_length=1,
        description="a pretrained transformer: its folder, or its id on the Hugging Face hub",
    )

    @property
    def transformer(self) -> str:
        """The pretrained transformer that reads the texts."""
        return self.encoder

    def check(self, config: Config) -> None:
        """Refuses the encoders of words."""
        if self.encoder in WORD_ENCODERS:
            raise ConfigError(
                f"model.encoder={self.encoder!r}: {self.name!r} needs a pretrained transformer, its folder "
                "or its id on the Hugging Face hub"
            )


def check_stride(window: int, stride: int | None) -> None:
    """Refuses windows that would leave tokens out; they may lie side by side or overlap."""
    if stride is not None and stride > window - 2:
        raise ConfigError(
            f"model.stride={stride} would leave tokens out: windows of model.window={window} "
            f"tokens, two of them special, may lie at most {window - 2} apart"
        )


def check_widths(windows: Widths, embedding_size: int, config: Config) -> None:
    """Refuses filters that are wider than the embedding along which they slide.

    The size of a vector file's words is known only later.
    """
    if config.text.vectors is None and max(windows) > embedding_size:
        raise ConfigError(
            f"model.windows={list(windows)}: filters slide along the embedding, so none may be wider "
            f"than model.embedding_size={embedding_size}"
        )


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
    loss: Loss = Field("bce", description="labels: bce, margin, spread; answers: pointwise, pairwise")
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
