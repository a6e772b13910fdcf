"""Convolutions over time on word vectors, whose states depend on neighbouring words."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.capsules.dropout import FEWEST_VALUES, Dropout, is_worthwhile, rectify_and_drop
from nlpcapsule.config.settings import Widths
from nlpcapsule.encoders.word_encoder import WordEncoder, WordEncoderSettings
from nlpcapsule.registry import ENCODERS, NetworkInputs


class ConvolutionSettings(WordEncoderSettings):
    """`convolution`: convolutions of several widths over word vectors."""

    name: Literal["convolution"] = "convolution"
    windows: Widths = Field((1, 3, 5, 9), min_length=1, description="convolution widths, in tokens")
    filters: int = Field(256, ge=1, description="filters per width")


@dataclass(frozen=True)
class DistinctWords:
    """The distinct words of a batch, and where they stand: products with filters once for each of them.

        (W * E x)_t = Σ_o W_o E[x_(t+o)] = Σ_o P_o[x_(t+o)],     P_o = E W_oᵀ   (U, filters)

    A batch of 16,000 words may have 1,600 distinct ones; what is left to do at each position is to add rows
    of P. Exact up to rounding, forward and backward.
    """

    ids: Tensor  # (U,) the first is padding
    places: Tensor  # (B, l) into `ids`

    @classmethod
    def of(cls, tokens: Tensor, padding_id: int) -> Self:
        """Find the distinct words of token ids (B, l)."""
        ids, places = torch.unique(tokens, return_inverse=True)
        return cls(torch.cat([ids.new_tensor([padding_id]), ids]), places + 1)

    def convolve(self, words: Tensor, convolution: nn.Module) -> Tensor:
        """Return the convolution over time (B, l, filters) of the words' vectors (U, v), zero for padding.

        Sums are in float32 under autocast too, and so is the gradient of a word that is in many places. The
        result is of autocast's type.
        """
        weight, bias = (convolution.get_parameter(name) for name in ("weight", "bias"))
        filters, size, width = weight.shape
        left = (width - 1) // 2
        with torch.autocast("cpu", enabled=False):
            rows = weight.permute(1, 2, 0).reshape(size, width * filters)
            # The product with the word at the position itself is always added, and the bias with it.
            centred = nn.functional.pad(bias, (left * filters, (width - 1 - left) * filters))
            products = torch.addmm(centred, words, rows).view(-1, filters)  # (U · width, filters)
            padded = nn.functional.pad(self.places, (left, width - 1 - left))
            indices = padded.unfold(1, width, 1) * width + torch.arange(width)  # (B, l, width)
            sums = nn.functional.embedding_bag(indices.flatten(0, 1), products, mode="sum")
        if torch.is_autocast_enabled("cpu"):
            sums = sums.to(torch.get_autocast_dtype("cpu"))
        return sums.view(*self.places.shape, filters)


@ENCODERS.register("convolution")
class ConvolutionEncoder(WordEncoder):
    """Parallel convolutions of several widths over time, with ReLU and concatenated outputs.

    A document's states do not depend on the amount of padding: padding is the zero vector, like everything
    beyond the row's end, and states at padding are zeroed. Dropout is on word vectors and on states.
    """

    settings_type: ClassVar[type[ConvolutionSettings]] = ConvolutionSettings
    rectified: ClassVar[bool] = True

    def __init__(self, settings: ConvolutionSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        size, filters, self.windows = self.embedding.size, settings.filters, settings.windows
        self.state_size = filters * len(self.windows)
        self.dropout = Dropout(settings.token_dropout)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, filters, width) for width in self.windows)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Encode documents: (B, l) → states (B, l, H) and the mask (B, l) of real tokens.

        A large batch on a CPU is encoded by its distinct words, on whose vectors dropout then acts.
        """
        distinct = self._distinct_words(tokens)
        if distinct is None:
            return super().forward(tokens)
        words = self.dropout(self.embedding.table(distinct.ids))  # (U, v)
        sums = [distinct.convolve(words, each) for each in self.convolutions]
        mask = tokens != self.embedding.padding_id
        return self._activate(torch.cat(sums, dim=2), mask), mask

    def _distinct_words(self, tokens: Tensor) -> DistinctWords | None:
        """Return the distinct words of a batch if encoding by them is faster, and no graph is exported."""
        is_running = not self.word_dropout.p if self.training else torch.is_inference_mode_enabled()
        if not is_running or tokens.device.type != "cpu" or tokens.numel() * self.state_size < FEWEST_VALUES:
            return None
        distinct = DistinctWords.of(tokens, self.embedding.padding_id)
        return distinct if 2 * len(distinct.ids) <= tokens.numel() else None

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """Map word vectors (B, l, v) and a mask (B, l) to states (B, l, H)."""
        words = self.dropout(words).transpose(1, 2)  # (B, v, l)
        states = []
        for width, convolution in zip(self.windows, self.convolutions, strict=True):
            left = (width - 1) // 2
            states.append(convolution(nn.functional.pad(words, (left, width - 1 - left))))  # (B, filters, l)
        return self._activate(torch.cat(states, dim=1).transpose(1, 2), mask)

    def _activate(self, sums: Tensor, mask: Tensor) -> Tensor:
        """Return ReLU and dropout of sums (B, l, H), zero where the mask (B, l) is False."""
        if self.training and self.dropout.p and is_worthwhile(sums):
            # Later steps read states one after the other: copying them once here saves copies there.
            return rectify_and_drop(sums.contiguous(), mask.unsqueeze(-1), self.dropout.p)
        return self.dropout(torch.relu(sums) * mask.unsqueeze(-1))  # (B, l, H)
