"""`embedding-linear`: frozen sentence embeddings and a logistic regression per label.

    s      = transformer(tokens)                 token states, read in windows       (B, l, h)
    x      = √h · mean(s) / ‖mean(s)‖            the embedding, scaled               (B, h)
    logit  = W x + b                                                                 (B, n)

Up to √h, x is the embedding of sentence-transformers: the mean of all states, including special tokens,
scaled to length 1. Scaled by √h, its values have a mean square of 1, which suits learning rates.

The transformer is frozen, so training embeds each document once and then uses only the embeddings. A document
becomes a row in a table of embeddings, and its only "token" is the row's index. This reuses the task and the
training loop of the other networks, and no epoch runs the transformer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.baselines.linear_head import LinearHead
from nlpcapsule.config.nesting import EncoderShorthand
from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.transformer import PretrainedSettings, TransformerEncoder
from nlpcapsule.encoders.windowed_transformer import cut_windows
from nlpcapsule.networks.scored import Scored
from nlpcapsule.registry import NetworkInputs, System, register


class FrozenTransformerSettings(PretrainedSettings):
    """`transformer`: a pretrained transformer as it is, reading in windows (extra `transformers`)."""

    window: int = Field(512, ge=3, description="tokens read at once; longer documents are cut into windows")


class EmbeddingLinearSettings(SystemSettings):
    """`embedding-linear`: frozen sentence embeddings and a logistic regression per label."""

    scores_candidates: ClassVar[bool] = True

    name: Literal["embedding-linear"] = "embedding-linear"
    encoder: Annotated[FrozenTransformerSettings, EncoderShorthand] = Field(
        default_factory=FrozenTransformerSettings,
        description="the transformer: a section with `path` and `window`, or its folder or hub id",
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout on the embeddings")


class EmbeddingLinear(nn.Module):
    """A frozen transformer and a linear head."""

    def __init__(self, settings: EmbeddingLinearSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.window = settings.encoder.window
        self.encoder = TransformerEncoder(
            settings.encoder.path,
            inputs,
            longest=min(settings.encoder.window, inputs.length),
            limited_by="encoder.window",
        ).requires_grad_(False)
        self.head = LinearHead(self.encoder.size, inputs.label_count, settings.dropout)

    def train(self, mode: bool = True) -> Self:
        """Switch the head's mode; the transformer never has dropout."""
        super().train(mode)
        self.encoder.eval()
        return self

    @torch.no_grad()
    def embed(self, tokens: Tensor) -> Tensor:
        """Map token ids (B, l), padded at the end, to embeddings (B, h) of length √h."""
        windows = cut_windows(tokens, self.encoder.padding_id, self.window)
        states = self.encoder(windows.tokens, windows.mask).float()  # (W, w, h)
        sums = (states * windows.mask.unsqueeze(-1)).sum(dim=1)  # (W, h)
        totals = sums.new_zeros(len(tokens), self.encoder.size).index_add(0, windows.document, sums)
        # A sum has the direction of the mean, and the length is fixed.
        return nn.functional.normalize(totals, dim=-1) * math.sqrt(self.encoder.size)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score labels; `valid` is not used, as a label's score does not depend on the other labels."""
        return Scored(self.head(self.embed(tokens), outputs))

    def embed_documents(
        self, parts: Sequence[EncodedDocuments], batch: int, advance: Callable[[int, int], None]
    ) -> tuple[nn.Module, list[EncodedDocuments]]:
        """Embed all documents, each once; return the head over their table, and them as numbers of rows."""
        tokens = Ragged.from_rows(row for part in parts for row in part.tokens)
        device = self.head.output.weight.device
        table = torch.zeros(len(tokens), self.encoder.size, device=device)
        order = np.argsort(tokens.lengths, kind="stable")  # batch documents of similar length together
        self.eval()
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            inputs = torch.from_numpy(tokens.padded(rows, self.encoder.padding_id)).to(device)
            table[torch.from_numpy(rows).to(device)] = self.embed(inputs)
            advance(start + len(rows), len(order))
        ends = np.cumsum([len(part) for part in parts])
        numbered = [_row_numbers(end - len(part), end) for part, end in zip(parts, ends, strict=True)]
        embedded = [EncodedDocuments(rows, part.labels) for rows, part in zip(numbered, parts, strict=True)]
        return EmbeddedHead(self.head, table), embedded


class EmbeddedHead(nn.Module):
    """A linear head, trained in place, over a table of embeddings (N, h)."""

    embeddings: Tensor

    def __init__(self, head: nn.Module, embeddings: Tensor) -> None:
        super().__init__()
        self.head = head
        self.register_buffer("embeddings", embeddings, persistent=False)  # not part of checkpoints

    def forward(self, rows: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score labels of the documents in rows (B, 1) of the table; other arguments as in any network."""
        return Scored(self.head(self.embeddings[rows[:, 0]], outputs))


def _row_numbers(start: int, end: int) -> Ragged:
    """Return rows of one number each, from `start` up to `end` (exclusive)."""
    return Ragged(np.arange(start, end, dtype=np.int32), np.arange(end - start + 1))


register(
    System(
        "embedding-linear",
        EmbeddingLinearSettings,
        labels=EmbeddingLinear,
        defaults={
            # Chosen on eurlex15k's select part, with 128 word pieces per document.
            "labels": {
                "text": {"max_tokens": 512},
                "training": {"epochs": 30, "batch_size": 128, "learning_rate": 3e-3, "weight_decay": 0.3},
            }
        },
        extra="transformers",
    )
)
