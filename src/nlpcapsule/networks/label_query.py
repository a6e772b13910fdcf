"""`label-query`: every label has a learned query over a document's capsules. The default network.

    h        = encoder(tokens)                                      token states          (B, l, H)
    a        = softmax over tokens of <compress_query_s, h>         capsule compression   (B, m, l)
    u        = LayerNorm(Linear(a h))                               condensed capsules    (B, m, d)
    b        = <q_j, K u_i> + slot_ji                               learned first coupling (B, n, m)
    v        = routing(u, b)                                        label capsules        (B, n, d)
    g        = MLP(max over tokens of h)                            the document as a whole (B, e)
    logit_j  = <MLP(v_j), o_j> + <g, r_j> + β_j                                           (B, n)

Three things differ from the paper. The initial coupling is learned, not uniform. The score is a learned
product, not the capsule's length, which is hard to train over thousands of labels. A score of the whole
document is added to that of its routed parts (`document_size = 0` disables it). `condensed = 0` disables the
compression: every token state is a capsule.

The parameters of each label (q, slot, o, β, r) are rows of `label_table`. If labels have names, a score by
name is added to the logit (`label_name_table`).

The encoder (`encoders.build`) is a convolution over time or a bidirectional LSTM, both over word vectors, or
a pretrained transformer, which reads a long document in windows; there l counts the states of all windows.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.capsules.routing.label_query import LabelAgreement, route_labels
from nlpcapsule.capsules.vote_scale import VoteScale
from nlpcapsule.config import Config
from nlpcapsule.config.nesting import AnyEncoder
from nlpcapsule.config.settings import LabelRouting, SystemSettings
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.build import build_encoder
from nlpcapsule.encoders.convolution import ConvolutionSettings
from nlpcapsule.encoders.encoder import Encoder, EncoderInputs
from nlpcapsule.networks.label_name_table import LabelNameTable
from nlpcapsule.networks.label_table import LabelTable
from nlpcapsule.networks.scored import Explanation, Scored
from nlpcapsule.registry import NetworkInputs, System, register


class LabelQuerySettings(SystemSettings):
    """`label-query`: every label has a learned query over the document's capsules."""

    routes_to_chosen: ClassVar[bool] = True
    scores_candidates: ClassVar[bool] = True
    takes_label_names: ClassVar[bool] = True

    epsilon: ClassVar[float] = 0.05  # adaptive: a document stops when its NAS moves less
    bandwidth: ClassVar[float] = (
        3.0  # adaptive: the kernel's initial bandwidth, in spreads of a document's capsules
    )

    name: Literal["label-query"] = "label-query"
    encoder: AnyEncoder = Field(
        default_factory=ConvolutionSettings,
        description="the encoder: a section, a name, or a transformer's folder or hub id",
    )
    capsule_size: int = Field(256, ge=2, description="capsule size")
    condensed: int = Field(128, ge=0, description="condensed capsules; 0 routes every token, uncompressed")
    routing: LabelRouting = Field(
        "adaptive-kde", description="routing algorithm: the agreement of label capsules and capsules"
    )
    iterations: int | None = Field(
        None, ge=1, description="routing iterations, or their maximum if adaptive; none: 3, adaptive 6"
    )
    document_size: int = Field(512, ge=0, description="size of the whole document's vector; 0 disables it")
    capsule_dropout: float = Field(0.3, ge=0, lt=1, description="dropout on label capsules")
    overlap: bool = Field(False, description="answers: add word match features to the capsules' cosine")

    @property
    def compares_words(self) -> bool:
        """Whether words shared by question and answer are added to the capsules' cosine."""
        return self.overlap

    @property
    def is_adaptive(self) -> bool:
        """Whether the routing decides when each document stops."""
        return self.routing.startswith("adaptive-kde")

    @property
    def most_iterations(self) -> int:
        """T, or T_max of adaptive routing."""
        return self.iterations or (6 if self.is_adaptive else 3)

    @property
    def agreement(self) -> LabelAgreement:
        """The agreement of label capsules and capsules, apart from the scale of the capsules."""
        return "adaptive-kde" if self.routing == "adaptive-kde-unscaled" else self.routing

    def check(self, config: Config) -> None:
        """Reject settings that do not fit the encoder."""
        self.encoder.check(config)


FIRST_GATE = 0.1  # agreement starts as a small correction to the learned coupling
_PLACED = 128  # training documents that the documents' mean is computed from
_FIRST_BIAS = -4.0  # most labels are absent from most documents


class CondensedCapsules(nn.Module):
    """Tokens → m condensed capsules: m learned queries each pool the token states they attend to.

    Args:
        settings: The network's settings.
        encoder: Encodes the tokens.
    """

    def __init__(self, settings: LabelQuerySettings, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        states, size = encoder.state_size, settings.capsule_size
        self.compress_query = (
            nn.Parameter(torch.randn(settings.condensed, states) / math.sqrt(states))
            if settings.condensed
            else None
        )
        self.to_capsule = nn.Linear(states, size)
        self.norm = nn.LayerNorm(size)

    def condense(self, states: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return capsules (B, m, d), and a mask (B, l) of real capsules if every token is one."""
        if self.compress_query is None:
            return self.norm(self.to_capsule(states)), mask
        pooled = self.attention(states, mask).to(states.dtype) @ states  # (B, m, H)
        return self.norm(self.to_capsule(pooled)), None

    def attention(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """Return the share of each state in each capsule.

        Args:
            states: (B, l, H).
            mask: (B, l) of the real states; None if all are.

        Returns:
            (B, m, l), 0 at padding; a capsule's shares sum to 1. Without compression capsule i is state i.
        """
        if self.compress_query is None:
            real = torch.ones_like(states[..., 0]) if mask is None else mask.float()
            return torch.diag_embed(real)
        scores = (states @ self.compress_query.T.to(states.dtype)).float()  # (B, l, m)
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(-1), -torch.inf)
        return scores.softmax(dim=1).transpose(1, 2)


def agreement_projection(settings: LabelQuerySettings) -> nn.Module | None:
    """Return LN(R v), which "dot" agreement compares with capsules; KDE agreement compares v itself."""
    size = settings.capsule_size
    if settings.routing != "dot":
        return None
    return nn.Sequential(nn.Linear(size, size, bias=False), nn.LayerNorm(size))


def adaptive_vote_scale(settings: LabelQuerySettings) -> VoteScale | None:
    """Return the scale of the votes of adaptive routing; other routings compare capsules unscaled."""
    return VoteScale(settings.bandwidth) if settings.routing == "adaptive-kde" else None


def agreement_gate(settings: LabelQuerySettings) -> nn.Parameter | float:
    """Return the weight of agreement: learned, or fixed at the paper's α (gate × gain = 1) for scaled votes.

    A learned weight would undo the scale; a negative one would make agreement decrease without bound.
    """
    return nn.Parameter(torch.tensor(FIRST_GATE)) if adaptive_vote_scale(settings) is None else FIRST_GATE


class LabelQueryNetwork(nn.Module):
    """The whole `label-query` network.

    Args:
        settings: The network's settings.
        vocabulary_size: Number of tokens.
        label_count: n.
        padding_id: Id of the padding token.
        vectors: Initial word vectors.
        length: Maximum number of tokens of a document.
        transformer: A pretrained transformer's configuration if its weights are loaded later; None reads the
            encoder that the settings name.
        named: Whether labels have names; call `read_names` before training.
    """

    idf: Tensor | None
    masked_routing: bool = False  # as in `route_labels`; an exported network needs it

    def __init__(
        self,
        settings: LabelQuerySettings,
        vocabulary_size: int,
        label_count: int,
        padding_id: int = 0,
        vectors: np.ndarray | None = None,
        length: int | None = None,
        transformer: dict[str, Any] | None = None,
        named: bool = False,
    ) -> None:
        super().__init__()
        self.settings, self.padding_id = settings, padding_id
        size = settings.capsule_size
        inputs = EncoderInputs(vocabulary_size, padding_id, vectors, length, transformer)
        self.document = CondensedCapsules(settings, build_encoder(settings.encoder, inputs))
        self.key = nn.Linear(size, size, bias=False)  # K
        self.labels = LabelTable(label_count)
        self.labels.add_random("query", size)  # q
        if settings.condensed:  # a label's prior on capsules; token positions have no fixed meaning
            self.labels.add("slot", torch.zeros(label_count, settings.condensed))
        self.agreement = agreement_projection(settings)  # R
        self.vote_scale = adaptive_vote_scale(settings)
        self.gate = agreement_gate(settings)
        self.dropout = nn.Dropout(settings.capsule_dropout)
        self.mlp = nn.Sequential(nn.Linear(size, size), nn.GELU())
        self.labels.add_random("output", size)  # o
        self.labels.add("bias", torch.full((label_count,), _FIRST_BIAS))  # β
        self.whole: WholeDocument | None = None
        if settings.document_size:
            self.whole = WholeDocument(
                self.document.encoder.state_size, settings.document_size, settings.capsule_dropout
            )
            self.labels.add_random("whole", settings.document_size)  # r
        self.names = LabelNameTable(label_count, self.document.encoder.name_size) if named else None
        self.register_buffer("idf", torch.ones(vocabulary_size) if named else None)

    @torch.no_grad()
    def read_names(self, names: Ragged, idf: np.ndarray, counts: np.ndarray, documents: Ragged) -> None:
        """Encode the labels' names with the initial weights; the vectors stay fixed in training.

        Args:
            names: n rows of tokens.
            idf: (V,) weights of words.
            counts: (n,) training documents of each label.
            documents: The training documents; the documents' mean is computed from a sample of them.
        """
        assert self.names is not None
        assert self.idf is not None
        self.idf.copy_(torch.from_numpy(idf))
        was_training, encoder = self.training, self.document.encoder
        self.eval()
        places = []
        for row in np.unique(np.linspace(0, len(documents) - 1, _PLACED).astype(int)):
            tokens = torch.from_numpy(documents.padded([row], self.padding_id)).to(self.idf.device)  # (1, l)
            states, mask = encoder(tokens)
            places.append(encoder.place(tokens, states, mask, self.idf))  # (1, E)
        self.train(was_training)
        self.names.set(encoder.name_vectors(names, idf), counts, torch.cat(places).mean(dim=0))

    def forward(
        self,
        tokens: Tensor,
        outputs: Tensor | None = None,
        valid: Tensor | None = None,
        explain: bool = False,
    ) -> Scored:
        """Score labels.

        Args:
            tokens: (B, l) token ids, padded at the end.
            outputs: None for all labels, (n',) ids for the batch, or (B, n') ids per document.
            valid: (B, n') False at padding.
            explain: Whether to return attention and couplings as well.
        """
        states, real = self.document.encoder(tokens)  # (B, l, H)
        capsules, mask = self.document.condense(states, real)  # (B, m, d)
        coupling = self.labels.rows_of("query", outputs) @ self.key(capsules).transpose(1, 2)  # (B, n, m)
        if "slot" in self.labels:
            coupling = coupling + self.labels.rows_of("slot", outputs)
        if mask is not None:
            coupling = coupling.masked_fill(~mask.unsqueeze(1), -torch.inf)
        routed = route_labels(
            capsules,
            coupling,
            agreement=self.settings.agreement,
            iterations=self.settings.most_iterations,
            max_iterations=self.settings.most_iterations,
            gate=self.gate,
            project=self.agreement,
            eps=self.settings.epsilon,
            compared=None if self.vote_scale is None else self.vote_scale(capsules, mask),
            valid=valid,
            keep_coupling=explain,
            masked=self.masked_routing,
        )
        if self.vote_scale is not None:
            self.vote_scale.steer(routed.agreement, self.settings.epsilon)
        label_capsules = self.mlp(self.dropout(routed.label_capsules))  # (B, n, d)
        logits = row_products(label_capsules, self.labels.rows_of("output", outputs))  # (B, n)
        logits = logits + self.labels.rows_of("bias", outputs)
        if self.whole is not None:
            logits = logits + self.whole(states, real, self.labels.rows_of("whole", outputs))
        by_name = None
        if self.names is not None and self.idf is not None:
            place = self.document.encoder.place(tokens, states, real, self.idf)  # (B, E)
            logits, by_name = self.names(logits, place, outputs)
        explanation = None
        if explain and routed.coupling is not None:
            attention = self.document.attention(states, real).detach()
            explanation = Explanation(routed.coupling, attention)
        return Scored(logits.float(), routed.iterations, routed.agreement, by_name, explanation)


class WholeDocument(nn.Module):
    """Score labels by the whole document: ⟨g, r_j⟩, g from the maximum over its states.

    Args:
        state_size: H.
        size: e.
        dropout: On g.
    """

    def __init__(self, state_size: int, size: int, dropout: float) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(state_size, size), nn.GELU(), nn.Dropout(dropout))

    def forward(self, states: Tensor, mask: Tensor | None, rows: Tensor) -> Tensor:
        """Map states (B, l, H), a mask (B, l) and rows r (n, e) or (B, n, e) to scores (B, n)."""
        if mask is not None:  # states may be negative, and padding's zeros would then be the maximum
            states = states.masked_fill(~mask.unsqueeze(-1), -torch.inf)
        largest = states.amax(dim=1)  # (B, H)
        document = self.mlp(largest)  # (B, e)
        if rows.dim() == 2:
            return nn.functional.linear(document, rows)
        return (rows @ document.unsqueeze(-1)).squeeze(-1)


def row_products(left: Tensor, right: Tensor) -> Tensor:
    """Return ⟨left_j, right_j⟩ (B, n) of (B, n, d) and (n, d) or (B, n, d), summed in float32 at least.

    Autocast is off: it would first copy the largest array of the network to float32.
    """
    with torch.autocast(left.device.type, enabled=False):
        kind = torch.promote_types(left.dtype, torch.float32)
        return (left * right.to(left.dtype)).sum(dim=-1, dtype=kind)


def _build_for_labels(settings: LabelQuerySettings, inputs: NetworkInputs) -> LabelQueryNetwork:
    return LabelQueryNetwork(
        settings,
        inputs.vocabulary_size,
        inputs.label_count,
        inputs.padding_id,
        inputs.vectors,
        inputs.length,
        inputs.transformer,
        named=inputs.named,
    )


def _build_for_answers(settings: LabelQuerySettings, inputs: NetworkInputs) -> nn.Module:
    from nlpcapsule.networks.answer_ranker import AnswerNetwork, QueryTextCapsule

    text = QueryTextCapsule(
        settings,
        inputs.vocabulary_size,
        inputs.padding_id,
        inputs.vectors,
        inputs.length,
        inputs.transformer,
    )
    return AnswerNetwork(settings, text, inputs)


register(
    System(
        "label-query",
        LabelQuerySettings,
        labels=_build_for_labels,
        answers=_build_for_answers,
        defaults={
            # Measured in results/fusion.json: no other routing is better than three KDE iterations.
            "labels": {
                "text": {"max_tokens": 1000},
                "training": {"epochs": 25},
                "model": {"routing": "kde"},
            },
            # Names are rare and informative, so every word of the training part is kept.
            "answers": {
                "text": {"max_tokens": 64, "min_count": 1, "vocabulary_size": 100_000},
                "training": {"loss": "pointwise", "epochs": 10, "learning_rate": 5e-4},
                "model": {
                    "overlap": True,
                    "condensed": 32,
                    "capsule_size": 128,
                    "encoder": {
                        "windows": (1, 3),
                        "filters": 128,
                        "word_dropout": 0.2,
                        "token_dropout": 0.3,
                    },
                },
            },
        },
        pretrained_defaults={  # docs/encoders.md, docs/answers.md
            "labels": {
                "text": {"max_tokens": 1022},  # two windows of 512, less their special tokens
                "training": {"epochs": 10},
                "model": {"encoder": {"encoder_learning_rate": 1e-4}},
            },
            "answers": {
                "text": {"max_tokens": 128},
                "training": {"epochs": 6, "batch_size": 8},
                "model": {
                    "condensed": 8,
                    "encoder": {"encoder_learning_rate": 3e-5, "word_dropout": 0.0, "token_dropout": 0.1},
                },
                "inference": {"batch_size": 8},
            },
        },
    )
)
