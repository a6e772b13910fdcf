"""`cross-encoder`: Nogueira & Cho (2019), "Passage Re-ranking with BERT": joint encoding of both texts.

    h = transformer([CLS] question [SEP] answer [SEP]), token types 0 and 1
    logit = u · dropout(pooled(h)) + c

Every word of the answer attends to the question, so nothing can be precomputed.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.baselines.answers.pair_network import FIRST_LOG_ODDS
from nlpcapsule.baselines.answers.pretrained_defaults import PRETRAINED_ANSWER_DEFAULTS
from nlpcapsule.config.nesting import EncoderShorthand
from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.encoders.transformer import PretrainedSettings, TransformerEncoder
from nlpcapsule.registry import NetworkInputs, System, register


class CrossEncoderSettings(SystemSettings):
    """`cross-encoder`: a transformer reads question and answer together (Nogueira & Cho 2019)."""

    dropout: ClassVar[float] = 0.1  # before the last layer

    name: Literal["cross-encoder"] = "cross-encoder"
    encoder: Annotated[PretrainedSettings, EncoderShorthand] = Field(
        default_factory=PretrainedSettings,
        description="the transformer: a section with `path`, or its folder or hub id",
    )


class PairEncoder(TransformerEncoder):
    """A transformer that is told the two texts of a row apart, and has its pooling layer, if there is one."""

    def forward(self, tokens: Tensor, mask: Tensor, kinds: Tensor) -> Tensor:  # type: ignore[override]
        """Encode rows (B, l); `kinds` (B, l) is 0 in the first text of a row and 1 in the second."""
        has_kinds = getattr(self.transformer.config, "type_vocab_size", 0) > 1
        return super().forward(tokens, mask, **({"token_type_ids": kinds} if has_kinds else {}))

    def pooled(self, states: Tensor) -> Tensor:
        """Pool states (B, l, h) to (B, h) with the transformer's pooling layer, or take the first state."""
        pooler = getattr(self.transformer, "pooler", None)
        return states[:, 0] if pooler is None else pooler(states)


class CrossEncoder(nn.Module):
    """A transformer over question and answer, and a linear layer."""

    def __init__(self, settings: CrossEncoderSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        both = 2 * inputs.length - 1  # the answer's first token is left out
        self.encoder = PairEncoder(settings.encoder.path, inputs, longest=both, pooled=True)
        self.dropout = nn.Dropout(settings.dropout)
        self.output = nn.Linear(self.encoder.size, 1)  # u, c
        nn.init.normal_(self.output.weight, std=0.02)
        nn.init.constant_(self.output.bias, FIRST_LOG_ODDS)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,) float32."""
        tokens, kinds = join_texts(questions[question_of], answers, self.encoder.padding_id)
        states = self.encoder(tokens, tokens != self.encoder.padding_id, kinds)  # (A, l'', h)
        return self.output(self.dropout(self.encoder.pooled(states))).squeeze(-1).float()


def join_texts(questions: Tensor, answers: Tensor, padding_id: int = 0) -> tuple[Tensor, Tensor]:
    """Join [CLS] question [SEP] and [CLS] answer [SEP] to [CLS] question [SEP] answer [SEP].

    Args:
        questions: (A, l) token ids.
        answers: (A, l') token ids.
        padding_id: Id of the padding token.

    Returns:
        Token ids (A, l'') as wide as the longest pair, and 0 for the question's tokens, 1 for the answer's.

    Example:
        >>> join_texts(torch.tensor([[101, 5, 102, 0]]), torch.tensor([[101, 7, 8, 102]]))
        (tensor([[101,   5, 102,   7,   8, 102]]), tensor([[0, 0, 0, 1, 1, 1]]))
    """
    answers = answers[:, 1:]
    tokens = torch.cat([questions, answers], dim=1)  # (A, l + l' − 1)
    kinds = torch.cat([torch.zeros_like(questions), torch.ones_like(answers)], dim=1)
    is_padding = tokens == padding_id
    width = int((~is_padding).sum(dim=1).max().clamp(min=1))
    # Sorting stably by "is padding" closes the gap between the two texts.
    order = is_padding.long().argsort(dim=1, stable=True)[:, :width]
    tokens, kinds = tokens.gather(1, order), kinds.gather(1, order)
    return tokens, kinds.masked_fill(tokens == padding_id, 0)


register(
    System(
        "cross-encoder",
        CrossEncoderSettings,
        answers=CrossEncoder,
        defaults=PRETRAINED_ANSWER_DEFAULTS,
        extra="transformers",
    )
)
