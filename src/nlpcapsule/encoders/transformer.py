"""A pretrained transformer as an encoder: token ids → one state per token.

Weights come from a folder or a hub id (`config.json`, `model.safetensors`) when a model is trained, and from
the model folder afterwards, which also stores the original's configuration as `transformer.json`.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.config import Config
from nlpcapsule.config.settings import EncoderSettings
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.encoders import transformer_config
from nlpcapsule.errors import ConfigError, DataError, first_line, import_extra
from nlpcapsule.registry import ENCODERS, NetworkInputs

TRANSFORMER_FILE = "transformer.json"
_UNREADABLE = (
    "encoder.path={encoder!r} is no pretrained transformer: expected a folder with config.json, "
    "model.safetensors and tokenizer.json, or a hub id"
)
_ROWS_AT_ONCE = 64


class PretrainedSettings(EncoderSettings):
    """`transformer`: a pretrained transformer as it is (extra `transformers`)."""

    name: Literal["transformer"] = "transformer"
    path: str = Field(
        "sentence-transformers/all-MiniLM-L6-v2",
        min_length=1,
        description="the transformer's folder, or its id on the Hugging Face hub",
    )

    def check(self, config: Config) -> None:
        """Reject the misspelt name of another encoder: a hub id may be any word."""
        meant = get_close_matches(self.path, ENCODERS.names, n=1)
        if meant and "/" not in self.path and not Path(self.path).is_dir():
            raise ConfigError(f"unknown encoder {self.path!r}: did you mean {meant[0]!r}?")


class TransformerEncoder(nn.Module):
    """Encode token ids as states with a bidirectional or causal transformer.

    If `inputs.transformer` has a configuration, as `to_json` returns it, `encoder`, a folder or a hub id, is
    ignored, and weights are random until a saved state is loaded. Rows have at most `longest` tokens, without
    it the length of a text; `limited_by` is the setting that keeps them short. `pooled` keeps the pooling
    layer, if there is one.
    """

    def __init__(
        self,
        encoder: str,
        inputs: NetworkInputs,
        longest: int | None = None,
        pooled: bool = False,
        limited_by: str = "text.max_tokens",
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.padding_id = inputs.padding_id
        longest = inputs.length if longest is None else longest
        config = inputs.transformer
        self.transformer = _pretrained(encoder) if config is None else _with_random_weights(config)
        if not pooled and getattr(self.transformer, "pooler", None) is not None:
            self.transformer.pooler = None  # or it would be saved without being used
        facts = self.transformer.config
        self.size: int = facts.hidden_size
        if inputs.vocabulary_size > facts.vocab_size:
            raise ConfigError(
                f"encoder.path={encoder!r} knows {facts.vocab_size:,} tokens and the tokenizer "
                f"{inputs.vocabulary_size:,}: leave text.tokenizer out, and the encoder's own is used"
            )
        positions = _positions(self.transformer, longest)
        if longest > positions:
            raise ConfigError(
                f"encoder.path={encoder!r} reads {positions} tokens at once and would be given {longest}: "
                f"lower {limited_by}"
            )
        if checkpointing:
            facts.use_cache = False  # or the library would warn that the two are incompatible
            try:
                self.transformer.gradient_checkpointing_enable({"use_reentrant": False})
            except ValueError:
                raise ConfigError(
                    f"encoder.path={encoder!r} does not support encoder.gradient_checkpointing"
                ) from None

    def forward(self, tokens: Tensor, mask: Tensor, **others: Tensor) -> Tensor:
        """Encode rows (B, l) with special tokens as states (B, l, h), undefined where the mask is False.

        The transformer also gets `others` (B, l), such as `token_type_ids`.
        """
        if torch.is_grad_enabled():
            return self.read(tokens, mask, **others)
        # Batch rows of similar length: less padding, and memory for few rows at a time.
        lengths = mask.sum(dim=1).clamp(min=1)  # (B,)
        states = torch.zeros(*tokens.shape, self.size, device=tokens.device)
        for rows in lengths.argsort(stable=True).split(_ROWS_AT_ONCE):
            width = int(lengths[rows[-1]])
            part = {name: values[rows, :width] for name, values in others.items()}
            states[rows, :width] = self.read(tokens[rows, :width], mask[rows, :width], **part).float()
        return states

    def read(self, tokens: Tensor, mask: Tensor, **others: Tensor) -> Tensor:
        """Map token ids (B, l) to states (B, l, h)."""
        # A row of padding attends to its padding: attention to nothing would be NaN.
        seen = mask | ~mask.any(dim=1, keepdim=True)
        return self.transformer(input_ids=tokens, attention_mask=seen.long(), **others).last_hidden_state

    @property
    def saved_texts(self) -> dict[str, str]:
        """The file of a model folder that it is built from, and its text."""
        return {TRANSFORMER_FILE: self.to_json() + "\n"}

    def to_json(self) -> str:
        """Return the transformer's configuration, without the path of its weights."""
        facts = self.transformer.config.to_dict()
        return json.dumps({name: value for name, value in facts.items() if name != "_name_or_path"}, indent=2)


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """Average the states of real tokens: (B, l, h) and (B, l) → (B, h) float32; zeros without any."""
    weights = mask.unsqueeze(-1).float()
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def tokenizer_file(encoder: str) -> Path:
    """Return the path of a pretrained transformer's `tokenizer.json`."""
    if Path(encoder).is_dir():
        return Path(encoder) / "tokenizer.json"
    transformer_config.refuse_fetching(encoder)
    _transformers()
    from transformers.utils import cached_file

    with _worded_errors(_UNREADABLE.format(encoder=encoder)):
        return Path(str(cached_file(encoder, "tokenizer.json")))


def encoder_tokenizer(encoder: str, given: str | None = None) -> WordTokenizer:
    """Return the tokenizer of a pretrained transformer, or the given one, if it adds special tokens."""
    path = given or tokenizer_file(encoder)
    tokenizer = WordTokenizer.from_file(path)
    empty, word = (ids.tolist() for ids in tokenizer.encode(["", "a"], max_tokens=8))
    if len(empty) != 2 or [word[0], word[-1]] != empty:
        raise DataError(
            "does not put one special token such as [CLS] before a text and one such as [SEP] after it",
            path,
            hint=f"use the tokenizer.json of {encoder!r}",
        )
    return tokenizer


def _positions(transformer: Any, default: int) -> int:
    """Return the maximum number of tokens that a transformer reads at once."""
    positions = getattr(transformer.config, "max_position_embeddings", default)
    table = getattr(getattr(transformer, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)  # RoBERTa's positions start after the padding id
    return positions if padding is None else positions - padding - 1


def _pretrained(encoder: str) -> Any:
    transformer_config.refuse_fetching(encoder)
    library = _transformers()
    # A folder is read directly; only a hub id is looked up.
    where = {"local_files_only": True} if Path(encoder).is_dir() else {}
    with _worded_errors(_UNREADABLE.format(encoder=encoder)), _silence(library.utils.logging):
        facts = library.AutoConfig.from_pretrained(encoder, trust_remote_code=False, **where)
        transformer_config.check_model_type(facts.model_type, f"encoder.path={encoder!r}")
        # No pickled weights, no code from the hub, and float32 whatever the file holds.
        return library.AutoModel.from_pretrained(
            encoder, use_safetensors=True, trust_remote_code=False, dtype=torch.float32, **where
        )


def _with_random_weights(config: Any) -> Any:
    """Build the transformer of a model folder's configuration without downloading anything."""
    library = _transformers()
    if not isinstance(config, dict) or "model_type" not in config:
        raise ConfigError(f"{TRANSFORMER_FILE} is not a transformer's configuration")
    transformer_config.check_model_type(config["model_type"], TRANSFORMER_FILE)
    with (
        _worded_errors(f"{TRANSFORMER_FILE}: no transformer can be built from it"),
        transformer_config.loading_saved_model(),
    ):
        facts_type = library.CONFIG_MAPPING[config["model_type"]]
        known = facts_type().to_dict()
        facts = facts_type(**transformer_config.safe_settings(config, known, TRANSFORMER_FILE))
        return library.AutoModel.from_config(facts, dtype=torch.float32)


@contextmanager
def _silence(logging: Any) -> Iterator[None]:
    """Silence the library's progress bars and its list of unused weights."""
    verbosity, had_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bar:
            logging.enable_progress_bar()


@contextmanager
def _worded_errors(message: str) -> Iterator[None]:
    """Turn any error into a ConfigError: the library checks little, and a wrong value fails at first use."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{message}: {first_line(error)}") from None


def _transformers() -> Any:
    return import_extra("transformers", "transformers")
