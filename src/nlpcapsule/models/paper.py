"""`paper`: NLP-Capsule as Zhao et al. (ACL 2019) print it.

X            word vectors, exactly l tokens                                     (B, l, v)
m            ReLU(W^a ∘ X): filters span all tokens, slide along the embedding  (B, 32, (v-k)/2+1) per width
p            squash(m_i w): one capsule per scalar, each filter its own w       (B, P, d)
u            Σ_j b_ij p_j: capsule compression                                  (B, m, d)
û_{j|i}      W_j u_i: never formed, see `PerClassVotes`
v_j          routing(û)                                                         (B, n, d)
a_j          ‖v_j‖, the label's probability                                     (B, n)
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.capsules.compression import CapsuleCompression
from nlpcapsule.capsules.primary import PrimaryCapsules
from nlpcapsule.capsules.votes import PerClassVotes
from nlpcapsule.config import PaperSettings
from nlpcapsule.models.embedding_convolution import EmbeddingConvolution
from nlpcapsule.models.routing_choice import em_costs, route
from nlpcapsule.models.scored import Scored, log_odds
from nlpcapsule.models.word_embedding import WordEmbedding


class PaperCapsules(nn.Module):
    """Tokens → condensed capsules (or, without compression, the primary capsules themselves).

    Args:
        settings: The network's settings.
        vocabulary_size: Number of tokens.
        length: l; rows are filled up or cut to it, because filters span all positions.
        padding_id: The token that fills rows up.
        vectors: Word vectors to start from.
    """

    def __init__(
        self,
        settings: PaperSettings,
        vocabulary_size: int,
        length: int,
        padding_id: int,
        vectors: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        self.embedding = WordEmbedding(vocabulary_size, settings.embedding_size, padding_id, vectors)
        self.convolution = EmbeddingConvolution(
            length, self.embedding.size, settings.windows, settings.filters, padding_id
        )
        self.primary = nn.ModuleList(
            PrimaryCapsules(settings.filters, settings.capsule_size, settings.kappa) for _ in settings.windows
        )
        primary_count = settings.filters * sum(self.convolution.map_sizes)  # P
        self.count = settings.condensed or primary_count
        self.compression = (
            CapsuleCompression(primary_count, settings.condensed) if settings.condensed else None
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, l) → (B, m, d)."""
        maps = self.convolution(self.embedding(self.convolution.fit(tokens))[0])
        lifted = [layer(torch.relu(feature)) for layer, feature in zip(self.primary, maps, strict=True)]
        primary = torch.cat(lifted, dim=1)  # (B, P, d)
        return primary if self.compression is None else self.compression(primary)


class PaperNetwork(nn.Module):
    """The whole chain for labels.

    Args:
        settings: The network's settings.
        vocabulary_size: Number of tokens.
        label_count: n.
        length: l.
        padding_id: The token that fills rows up.
        vectors: Word vectors to start from.
    """

    def __init__(
        self,
        settings: PaperSettings,
        vocabulary_size: int,
        label_count: int,
        length: int,
        padding_id: int = 0,
        vectors: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.document = PaperCapsules(settings, vocabulary_size, length, padding_id, vectors)
        size = settings.capsule_size
        self.transform = nn.Parameter(torch.randn(label_count, size, size) / math.sqrt(size))  # W_j
        self.em_costs = em_costs(settings)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Scores labels; see `LabelQueryNetwork.forward` for the arguments."""
        capsules = self.document(tokens)  # (B, m, d)
        transform = self.transform if outputs is None else self.transform[outputs]
        routed = route(PerClassVotes(capsules, transform), self.settings, self.em_costs, valid)
        return Scored(log_odds(routed.activations), routed.iterations, routed.agreement)
