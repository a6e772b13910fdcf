"""The sections of the configuration: every setting with its default, bounds and description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from nlpcapsule.errors import ConfigError

if TYPE_CHECKING:
    from nlpcapsule.config.configuration import Config

Task = Literal["labels", "answers"]
# Names that a plugin may extend; see `capsules.routing.ROUTINGS` and `networks.losses.LABEL_LOSSES`.
_ROUTINGS = ["dynamic", "em", "kde", "kde-em", "adaptive-kde", "adaptive-kde-literal"]
CapsuleRouting = Annotated[str, Field(json_schema_extra={"enum": _ROUTINGS})]
Loss = Annotated[str, Field(json_schema_extra={"enum": ["bce", "margin", "spread", "pointwise", "pairwise"]})]
LabelRouting = Literal["dot", "kde", "adaptive-kde", "adaptive-kde-unscaled"]
Widths = tuple[Annotated[int, Field(ge=1)], ...]

EMBEDDING_SIZE = "word vector size; shorter vectors of a file are extended and learned, longer ones are kept"


class Settings(BaseModel):
    """A section of the configuration: unknown keys are refused, values are never changed silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EncoderSettings(Settings):
    """The `encoder` section of a network; each encoder's file derives its own."""

    name: str

    def check(self, config: Config) -> None:
        """Raise a ConfigError if the settings conflict with each other or with other sections."""


class SystemSettings(Settings):
    """A system's `[model]` section; each system's file derives its own."""

    routes_to_chosen: ClassVar[bool] = False  # can route to chosen labels: training may sample negatives
    scores_candidates: ClassVar[bool] = False  # can score only nominated labels, as in a hybrid
    takes_label_names: ClassVar[bool] = False  # learns from label names
    shuffles: ClassVar[bool] = True  # training reads the documents in a new order in every epoch

    name: str

    @property
    def word_vector_size(self) -> int:
        """Word vector size of the system or its encoder; 0 if it has no word vectors."""
        return getattr(getattr(self, "encoder", self), "embedding_size", 0)

    @property
    def transformer(self) -> str | None:
        """The pretrained transformer that reads the texts, a folder or a hub id; None without one."""
        return getattr(getattr(self, "encoder", None), "path", None)

    @property
    def compares_words(self) -> bool:
        """For answers: whether words shared by question and answer are compared."""
        return False

    def with_word_vector_size(self, size: int) -> Self:
        """Return the same settings for word vectors of another size."""
        encoder = getattr(self, "encoder", None)
        if encoder is None:
            return self.model_copy(update={"embedding_size": size})
        return self.model_copy(update={"encoder": encoder.model_copy(update={"embedding_size": size})})

    def check(self, config: Config) -> None:
        """Raise a ConfigError if the settings conflict with each other or with other sections."""
        encoder: EncoderSettings | None = getattr(self, "encoder", None)
        if encoder is not None:
            encoder.check(config)


def check_widths(windows: Widths, embedding_size: int, config: Config) -> None:
    """Reject filters that are wider than the embedding along which they slide.

    The size of a vector file is only known later.
    """
    if config.text.vectors is None and max(windows) > embedding_size:
        bound = (
            f"filters slide along the embedding, so none may be wider than embedding_size={embedding_size}"
        )
        raise ConfigError(f"windows={list(windows)}: {bound}")


class TextSettings(Settings):
    """How text becomes tokens."""

    max_tokens: int = Field(500, ge=1, description="maximum tokens of a document; the rest is truncated")
    vocabulary_size: int = Field(60_000, ge=3, description="maximum vocabulary size of the trained tokenizer")
    min_count: int = Field(2, ge=1, description="minimum occurrences of a word in the training part")
    tokenizer: str | None = Field(None, description="a tokenizer.json to use instead of training one")
    vectors: str | None = Field(
        None, description="GloVe or word2vec text file that initialises the embedding"
    )
    label_names: str | None = Field(
        None, description="a file of label names, for labels with few or no examples"
    )


class TrainingSettings(Settings):
    """The training loop: AdamW, a one-cycle schedule, and the epoch that is best on held-out data."""

    epochs: int = Field(20, ge=1, description="passes over the training part")
    batch_size: int = Field(32, ge=1, description="documents (or questions) per batch, over all processes")
    gradient_accumulation_steps: int = Field(1, ge=1, description="batches per optimizer step")
    learning_rate: float = Field(1e-3, gt=0, description="peak of the one-cycle schedule")
    weight_decay: float = Field(
        0.01, ge=0, description="AdamW's decay of weight matrices, except `paper`'s matrices per pair"
    )
    max_grad_norm: float = Field(1.0, gt=0, description="maximum gradient norm")
    loss: Loss = Field("bce", description="labels: bce, margin, spread; answers: pointwise, pairwise")
    negatives: Literal["all", "uniform", "batch", "hard"] = Field(
        "all",
        description="partial routing: the outputs of a document in addition to its labels; a `hybrid` with "
        "more than 20,000 labels takes `hard` for `all`",
    )
    negative_count: int = Field(200, ge=1, description="negatives per document (uniform, hard)")
    ema_decay: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="decay of the moving average of weights, limited to a span of a quarter of the "
        "training; 0: off",
    )
    precision: Literal["float32", "bf16", "auto"] = Field(
        "float32",
        description="arithmetic of the forward pass; auto: bf16 on CPUs with bf16 instructions, else float32",
    )
    dev_fraction: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="fraction of the training data to hold out if no dev data are given; 0: none",
    )
    checkpoint_epochs: float = Field(
        1.0, ge=0, description="epochs between checkpoints; 0.5: two in each epoch; 0: none"
    )
    seed: int = Field(1, ge=0, description="seed of weights, order, dropout and negatives")


def _threshold_objective(value: str | float) -> str | float:
    if value in ("micro-F1", "macro-F1") or (not isinstance(value, str) and 0 < value <= 1):
        return value
    raise ValueError("expected 'micro-F1', 'macro-F1', or a precision above 0 and at most 1")


class InferenceSettings(Settings):
    """From scores to ranked labels."""

    batch_size: int = Field(64, ge=1, description="documents per forward pass")
    candidates: int = Field(
        0, ge=0, description="labels nominated for routing; 0 routes to all (`hybrid`: to 200)"
    )
    threshold_for: Annotated[str | float, AfterValidator(_threshold_objective)] = Field(
        "micro-F1",
        description="what the decision threshold is tuned for on held-out documents: `micro-F1`, `macro-F1`, "
        "or a number: the precision that returned labels should have",
    )
