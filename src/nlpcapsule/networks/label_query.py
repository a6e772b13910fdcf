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
name is added to the logit (`label_table`).

The encoder is a convolution over time or a bidirectional LSTM, both over word vectors, or
a pretrained transformer, which reads a long document in windows; there l counts the states of all windows.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.capsules.dropout import Dropout
from nlpcapsule.capsules.routing.label_query import LabelAgreement
from nlpcapsule.config.nesting import AnyEncoder
from nlpcapsule.config.settings import LabelRouting
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.convolution import ConvolutionSettings
from nlpcapsule.networks.answer_ranker import AnswerNetwork, TextCapsule
from nlpcapsule.networks.label_table import LabelNameTable, LabelTable
from nlpcapsule.networks.query_routing import (
    CondensedCapsules,
    QueryRouting,
    WholeDocument,
    largest_states,
    row_products,
)
from nlpcapsule.networks.routing_choice import RoutedSettings
from nlpcapsule.networks.scored import FIRST_BIAS, Explanation, Scored
from nlpcapsule.networks.word_match import TextReading
from nlpcapsule.registry import NetworkInputs, System, register


class LabelQuerySettings(RoutedSettings):
    """`label-query`: every label has a learned query over the document's capsules."""

    takes_label_names: ClassVar[bool] = True
    adaptive_iterations: ClassVar[int] = 6
    # Adaptive: the kernel's initial bandwidth, in spreads of a document's capsules.
    bandwidth: ClassVar[float] = 3.0

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
    def agreement(self) -> LabelAgreement:
        """The agreement of label capsules and capsules, apart from the scale of the capsules."""
        return "adaptive-kde" if self.routing == "adaptive-kde-unscaled" else self.routing


class DocumentReading(NamedTuple):
    """What the network keeps of documents for scoring labels."""

    capsules: Tensor  # (B, m, d)
    mask: Tensor | None  # (B, m) real capsules; None if all are
    largest: Tensor | None  # (B, H) the maximum of the states, for the score of the whole document
    place: Tensor | None  # (B, E) to compare with label names
    attention: Tensor | None = None  # (B, m, l) the share of each token in each capsule, for explanations


_SAMPLED = 128  # training documents that the documents' mean is computed from


class LabelQueryNetwork(QueryRouting):
    """The whole `label-query` network; if labels have names, call `read_names` before training."""

    idf: Tensor | None
    largest_states = staticmethod(largest_states)

    def __init__(self, settings: LabelQuerySettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.settings, self.padding_id = settings, inputs.padding_id
        size, label_count = settings.capsule_size, inputs.label_count
        self.document = CondensedCapsules(settings, inputs)
        self.key = nn.Linear(size, size, bias=False)  # K
        self.labels = LabelTable(label_count)
        self.labels.add_random("query", size)  # q
        if settings.condensed:  # a label's prior on capsules; token positions have no fixed meaning
            self.labels.add("slot", torch.zeros(label_count, settings.condensed))
        self.add_agreement(settings)  # R
        self.dropout = Dropout(settings.capsule_dropout)
        self.mlp = nn.Sequential(nn.Linear(size, size), nn.GELU())
        self.labels.add_random("output", size)  # o
        self.labels.add("bias", torch.full((label_count,), FIRST_BIAS))  # β
        self.rectified = self.document.encoder.rectified
        self.whole: WholeDocument | None = None
        if settings.document_size:
            self.whole = WholeDocument(
                self.document.encoder.state_size, settings.document_size, settings.capsule_dropout
            )
            self.labels.add_random("whole", settings.document_size)  # r
        self.names: LabelNameTable | None = None
        if inputs.named:
            self.names = LabelNameTable(label_count, self.document.encoder.name_size)
        self.register_buffer("idf", torch.ones(inputs.vocabulary_size) if inputs.named else None)

    @torch.no_grad()
    def read_names(self, names: Ragged, idf: np.ndarray, counts: np.ndarray, documents: Ragged) -> None:
        """Encode the labels' n names with the initial weights; the vectors stay fixed in training.

        `idf` (V,) weighs words, and `counts` (n,) are the labels' training documents. The documents' mean is
        computed from a sample of them.
        """
        assert self.names is not None
        assert self.idf is not None
        self.idf.copy_(torch.from_numpy(idf))
        was_training, encoder = self.training, self.document.encoder
        self.eval()
        places = []
        for row in np.unique(np.linspace(0, len(documents) - 1, _SAMPLED).astype(int)):
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
        """Score labels of documents (B, l): all, or ids (n',) for the batch or (B, n') per document.

        `valid` (B, n') is False at padding. `explain` returns attention and couplings as well.
        """
        return self.score(self.read(tokens, explain), outputs, valid)

    def read(self, tokens: Tensor, explain: bool = False) -> DocumentReading:
        """Return what the labels' scores need of documents (B, l); no label takes part in it."""
        states, real = self.document.encoder(tokens)  # (B, l, H)
        capsules, mask = self.document.condense(states, real)  # (B, m, d)
        attention = self.document.attention(states, real).detach() if explain else None
        return self.reading_of(tokens, states, real, capsules, mask)._replace(attention=attention)

    def reading_of(
        self, tokens: Tensor, states: Tensor, real: Tensor, capsules: Tensor, mask: Tensor | None
    ) -> DocumentReading:
        """Return what is kept of documents (B, l), from states (B, l, H) and capsules (B, m, d)."""
        largest = place = None
        if self.whole is not None:  # padding's zeros are never above rectified states
            largest = self.largest_states(states, None if self.rectified else real)
        if self.names is not None and self.idf is not None:
            place = self.document.encoder.place(tokens, states, real, self.idf)  # (B, E)
        return DocumentReading(capsules, mask, largest, place)

    def score(
        self, reading: DocumentReading, outputs: Tensor | None = None, valid: Tensor | None = None
    ) -> Scored:
        """Score labels of documents that were read; the arguments are those of `forward`."""
        capsules, is_explained = reading.capsules, reading.attention is not None
        rows = self.labels.rows_of(outputs)
        coupling = rows["query"] @ self.key(capsules).transpose(1, 2)  # (B, n, m)
        if "slot" in rows:
            coupling = coupling + rows["slot"]
        routed = self.route(capsules, coupling, reading.mask, valid, keep_coupling=is_explained)
        label_capsules = self.mlp(self.dropout(routed.label_capsules))  # (B, n, d)
        logits = row_products(label_capsules, rows["output"])  # (B, n)
        logits = logits + rows["bias"]
        if self.whole is not None and reading.largest is not None:
            logits = logits + self.whole(reading.largest, rows["whole"])
        by_name = None
        if self.names is not None and reading.place is not None:
            logits, by_name = self.names(logits, reading.place, outputs)
        explanation = None
        if routed.coupling is not None and reading.attention is not None:
            explanation = Explanation(routed.coupling, reading.attention)
        return Scored(logits.float(), routed.iterations, routed.agreement, by_name, explanation)


class QueryTextCapsule(QueryRouting, TextCapsule):
    """Encode a text as one capsule with a single learned query over condensed capsules."""

    def __init__(self, settings: LabelQuerySettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.settings = settings
        self.capsules = CondensedCapsules(settings, inputs)
        self.word_size = self.capsules.encoder.name_size
        size = settings.capsule_size
        self.query = nn.Parameter(torch.randn(1, size) / math.sqrt(size))
        self.add_agreement(settings)

    def read(self, tokens: Tensor) -> TextReading:
        """Map token ids (B, l) to word vectors, or a transformer's states, and the capsule."""
        encoder = self.capsules.encoder
        states, real = encoder.token_states(tokens)  # (B, l, H)
        capsules, mask = self.capsules.condense(states, real)  # (B, m, d)
        coupling = self.query @ capsules.transpose(1, 2)  # (B, 1, m)
        capsule = self.route(capsules, coupling, mask).label_capsules.squeeze(1)  # (B, d)
        return TextReading(tokens, encoder.word_vectors(tokens, states), capsule)


register(
    System(
        "label-query",
        LabelQuerySettings,
        labels=LabelQueryNetwork,
        answers=lambda settings, inputs: AnswerNetwork(settings, QueryTextCapsule(settings, inputs), inputs),
        defaults={
            # Measured in results/fusion.json: no other routing is better than three KDE iterations.
            "labels": {"text": {"max_tokens": 1000}, "training": {"epochs": 25}, "model": {"routing": "kde"}},
            # Names are rare and informative, so every word of the training part is kept.
            "answers": {
                "text": {"max_tokens": 64, "min_count": 1, "vocabulary_size": 100_000},
                "training": {"loss": "pointwise", "epochs": 10, "learning_rate": 5e-4},
                "model": {
                    "overlap": True,
                    "condensed": 32,
                    "capsule_size": 128,
                    "encoder": {"windows": (1, 3), "filters": 128, "word_dropout": 0.2, "token_dropout": 0.3},
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
