"""Encode documents that exceed a pretrained transformer's length, in separate windows.

    [CLS] t_1 … t_l [SEP]  →  [CLS] t_1 … t_w [SEP],  [CLS] t_(1+s) … t_(s+w) [SEP],  …

Without a stride s the text is cut into as few windows as possible, of (nearly) equal length: full windows and
a short remainder would give the remainder little context and cost more. The states of all windows are
concatenated, without those of the special tokens: (B, L, h). Where windows overlap (s < w), a token has a
state in each of its windows.
"""

from typing import ClassVar, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.config import Config
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.encoder import Encoder, to_unit_length
from nlpcapsule.encoders.transformer import PretrainedSettings, TransformerEncoder, mean_state
from nlpcapsule.errors import ConfigError
from nlpcapsule.registry import ENCODERS, NetworkInputs

MARKS = 2  # special tokens of a row: the first and the last
_NAMES_AT_ONCE = 256


class Windows(NamedTuple):
    """The W windows of B documents, in document order."""

    tokens: Tensor  # (W, w) ids, padded at the end
    mask: Tensor  # (W, w) True at real tokens
    counted: Tensor  # (W, w) True where a state belongs to a token of the text
    document: Tensor  # (W,) the row each window was cut from


class TransformerSettings(PretrainedSettings):
    """`transformer`: a pretrained transformer that is trained further (extra `transformers`)."""

    window: int = Field(512, ge=3, description="tokens read at once; longer documents are cut into windows")
    stride: int | None = Field(
        None, ge=1, description="tokens from one window's start to the next; none: even parts"
    )
    encoder_learning_rate: float = Field(5e-5, gt=0, description="peak learning rate of the transformer")
    gradient_checkpointing: bool = Field(
        False, description="recompute states in the backward pass to save memory"
    )
    word_dropout: float = Field(
        0.0, ge=0, lt=1, description="fraction of the word pieces dropped in training"
    )
    token_dropout: float = Field(0.15, ge=0, lt=1, description="dropout on states")

    def check(self, config: Config) -> None:
        """Reject windows that leave tokens out, and settings that answer networks do not support."""
        super().check(config)
        if self.stride is not None and self.stride > self.window - MARKS:
            raise ConfigError(
                f"encoder.stride={self.stride} would leave tokens out: windows of encoder.window="
                f"{self.window} tokens, two of them special, may lie at most {self.window - MARKS} apart"
            )
        if config.task != "answers":
            return
        if config.text.max_tokens > self.window:
            raise ConfigError(
                f"text.max_tokens={config.text.max_tokens} does not fit encoder.window={self.window}: "
                "questions and answers are read in one piece; lower text.max_tokens or raise encoder.window"
            )
        if self.word_dropout:
            raise ConfigError(
                f"encoder.word_dropout={self.word_dropout} does not go with a pretrained transformer on "
                "answers, whose words are compared one by one: set it to 0"
            )


@ENCODERS.register("transformer")
class WindowedTransformer(Encoder):
    """Encode whole documents in windows with a pretrained transformer."""

    settings_type: ClassVar[type[TransformerSettings]] = TransformerSettings

    def __init__(self, settings: TransformerSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        self.own_rate = settings.encoder_learning_rate  # pretrained weights need small steps
        self.window, self.stride = settings.window, settings.stride
        self.encoder = TransformerEncoder(
            settings.path,
            inputs,
            longest=min(settings.window, inputs.length),
            limited_by="encoder.window",
            checkpointing=settings.gradient_checkpointing,
        )
        self.state_size = self.name_size = self.encoder.size
        self.word_dropout = settings.word_dropout
        self.dropout = nn.Dropout(settings.token_dropout)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Encode documents: (B, l) → states (B, L, h), zero at padding, and the mask (B, L) of real ones."""
        if self.training and self.word_dropout:
            tokens = leave_out(tokens, self.encoder.padding_id, self.word_dropout)
        windows = cut_windows(tokens, self.encoder.padding_id, self.window, self.stride)
        states = self.encoder(windows.tokens, windows.mask)  # (W, w, h)
        counts = windows.counted.sum(dim=1)  # (W,)
        lengths = counts.new_zeros(len(tokens)).index_add(0, windows.document, counts)  # (B,)
        places = torch.arange(int(lengths.max()), device=tokens.device)  # (L,)
        mask = places < lengths.unsqueeze(1)  # (B, L)
        laid = states.new_zeros(*mask.shape, self.state_size)
        laid[mask] = states[windows.counted]  # both in the order of documents and their tokens
        return self.dropout(laid), mask

    def token_states(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Encode short texts without windows: a state (B, l, h) per token, special tokens included."""
        mask = tokens != self.encoder.padding_id
        return self.dropout(self.encoder(tokens, mask)), mask

    @torch.no_grad()
    def name_vectors(self, names: Ragged, idf: np.ndarray) -> np.ndarray:
        """Return (n, h) means of the names' states, scaled to length 1."""
        was_training, device = self.training, next(self.parameters()).device
        self.eval()
        means = []
        for start in range(0, len(names), _NAMES_AT_ONCE):
            rows = np.arange(start, min(start + _NAMES_AT_ONCE, len(names)))
            tokens = torch.from_numpy(names.padded(rows, self.encoder.padding_id)).to(device)
            mask = tokens != self.encoder.padding_id
            means.append(mean_state(self.encoder(tokens, mask), mask).cpu().numpy())
        self.train(was_training)
        return to_unit_length(np.concatenate(means))

    def place(self, tokens: Tensor, states: Tensor, mask: Tensor, idf: Tensor) -> Tensor:
        """Return (B, h) means of the documents' states."""
        return mean_state(states, mask)

    def word_vectors(self, tokens: Tensor, states: Tensor) -> Tensor:
        """Return the states (B, l, h): words in context."""
        return states


def cut_windows(tokens: Tensor, padding_id: int, window: int, stride: int | None = None) -> Windows:
    """Cut rows (B, l) of [CLS] text [SEP] into windows [CLS] part of the text [SEP].

    A window has at most `window` tokens, including its two special ones, and some text. A document without
    any has one window, and its special tokens count as text. Without a stride the parts are even.

    Example:
        >>> rows = torch.tensor([[101, 5, 6, 7, 102], [101, 8, 102, 0, 0]])
        >>> cut_windows(rows, padding_id=0, window=4).tokens
        tensor([[101,   5,   6, 102],
                [101,   7, 102,   0],
                [101,   8, 102,   0]])
    """
    device, most = tokens.device, window - MARKS
    lengths = (tokens != padding_id).sum(dim=1)  # (B,)
    texts = (lengths - MARKS).clamp(min=0)  # (B,) tokens between the marks
    further = (texts - most).clamp(min=0)
    counts = 1 - (-further // (stride or most))  # (B,) windows; -(-x // y) rounds up
    steps = -(-texts // counts) if stride is None else torch.full_like(counts, stride)  # (B,)
    document = torch.arange(len(tokens), device=device).repeat_interleave(counts)  # (W,)
    number = torch.arange(len(document), device=device) - (counts.cumsum(0) - counts)[document]
    start = number * steps[document]  # (W,) in the text
    longest = steps[document] if stride is None else torch.full_like(start, most)
    sizes = (texts[document] - start).minimum(longest)  # (W,) tokens of the text in each window
    widths = (sizes + MARKS).minimum(lengths[document]).clamp(min=1)  # (W,) a row may be too short for marks
    column = torch.arange(int(widths.max()), device=device)  # (w,)
    mask = column < widths.unsqueeze(1)  # (W, w)
    inside = (column > 0) & (column <= sizes.unsqueeze(1))
    last = (lengths[document] - 1).clamp(min=0).unsqueeze(1)  # (W, 1) where the row's last mark stands
    source = torch.where(inside, start.unsqueeze(1) + column, last * (column > 0))  # (W, w) place in the row
    cut = tokens[document].gather(1, source).masked_fill(~mask, padding_id)
    return Windows(cut, mask, torch.where(sizes.unsqueeze(1) > 0, inside, mask), document)


def leave_out(tokens: Tensor, padding_id: int, part: float) -> Tensor:
    """Drop each token of the text from rows (B, l) of [CLS] text [SEP] with a probability; close the gaps."""
    lengths = (tokens != padding_id).sum(dim=1, keepdim=True)  # (B, 1)
    places = torch.arange(tokens.shape[1], device=tokens.device)  # (l,)
    inside = (places > 0) & (places < lengths - 1)  # (B, l) between the marks
    kept = (places < lengths) & ~(inside & (torch.rand(tokens.shape, device=tokens.device) < part))
    counts = kept.sum(dim=1, keepdim=True)  # (B, 1)
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)  # (B, l) what is kept first, in its order
    rows = tokens.gather(1, order).masked_fill(places >= counts, padding_id)
    return rows[:, : int(counts.max())]
