"""`paper`: NLP-Capsule as Zhao et al. (ACL 2019) print it.

X            word vectors, exactly l tokens; v = 300                            (B, l, v)
m            ReLU(W^a ∘ X): filters span all tokens, slide along the embedding  (B, 32, (v-k)/2+1) per width
p            squash(m_i w): one capsule per scalar, each filter its own w       (B, P, d)
u            Σ_j b_ij p_j: capsule compression                                  (B, m, d)
û_{j|i}      W_ij u_i, a matrix per pair (`votes = "class"`: W_j, per label)    (B, m, n, d)
v_j          routing(û)                                                         (B, n, d)
a_j          ‖v_j‖, the label's probability                                     (B, n)

The paper leaves the initialisation open, which decides whether the chain learns. A feature sums over all l
positions, so filters start with equal weights at all of them, and word vectors start centred and weighted by
inverse frequency; otherwise a feature is mostly what all documents share. Features start at a root mean
square of 1 and condensed capsules at a length of `condensed_length`; with shorter votes, routing has no
effect.
"""

import math
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.capsules.compression import CapsuleCompression
from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.capsules.primary import PrimaryCapsules
from nlpcapsule.capsules.routing import ROUTINGS
from nlpcapsule.capsules.routing.kernel import NEGLIGIBLE
from nlpcapsule.capsules.routing.routed import mask_padding
from nlpcapsule.capsules.softmax import SoftmaxKind
from nlpcapsule.capsules.votes import PerClassVotes, Votes
from nlpcapsule.config import Config
from nlpcapsule.config.settings import EMBEDDING_SIZE, CapsuleRouting, Widths, check_widths
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.word_encoder import WordEmbedding
from nlpcapsule.errors import ConfigError
from nlpcapsule.fused.pair_votes import can_form, form_pair_votes
from nlpcapsule.networks.answer_ranker import AnswerNetwork, TextCapsule
from nlpcapsule.networks.embedding_convolution import EmbeddingConvolution
from nlpcapsule.networks.routing_choice import RoutedSettings, em_costs, route
from nlpcapsule.networks.scored import Explanation, Scored, log_odds
from nlpcapsule.networks.word_match import TextReading
from nlpcapsule.registry import NetworkInputs, System, register


class PaperSettings(RoutedSettings):
    """`paper`: the network of Zhao et al. 2019, as printed."""

    alpha: ClassVar[float] = 1.0  # step size of the coupling update
    softmax: ClassVar[SoftmaxKind] = "leaky"  # over outputs
    kappa: ClassVar[float] = 1.0  # squash: ‖x‖²/(κ+‖x‖²)

    name: Literal["paper"] = "paper"
    embedding_size: int = Field(300, ge=8, description=EMBEDDING_SIZE)
    frequency_weighting: float = Field(
        1e-3,
        ge=0,
        description="word vectors start centred and weighted by a/(a + p(w)), p being a word's frequency; "
        "the smoothing constant a; 0 turns it off",
    )
    windows: Widths = Field((2, 4, 8), min_length=1, description="filter widths along the embedding")
    filters: int = Field(32, ge=1, description="filters per width")
    filter_start: Literal["shared", "independent"] = Field(
        "shared", description="whether a filter starts with the same weights at all token positions"
    )
    capsule_size: int = Field(16, ge=2, description="capsule size")
    condensed: int = Field(128, ge=0, description="condensed capsules; 0 routes all primary capsules")
    condensed_length: float = Field(
        3.0, ge=0, description="initial mean length of condensed capsules; 0 does not scale them"
    )
    votes: Literal["pair", "class"] = Field(
        "pair", description="a matrix per pair of capsule and label, or one per label"
    )
    word_dropout: float = Field(0.2, ge=0, lt=1, description="fraction of the words dropped in training")
    token_dropout: float = Field(0.3, ge=0, lt=1, description="dropout on word vectors")
    routing: CapsuleRouting = Field(
        "adaptive-kde",
        description="routing algorithm; adaptive-kde-literal is Algorithm 1 exactly as printed",
    )
    iterations: int | None = Field(
        None, ge=1, description="routing iterations, or their maximum if adaptive; none: 3, adaptive 10"
    )
    negative_weight: float = Field(1.0, gt=0, description="λ, the weight of negatives in the loss")
    overlap: bool = Field(False, description="answers: add word match features to the capsules' cosine")

    def check(self, config: Config) -> None:
        """Reject an unknown routing, and filters that are wider than the embedding."""
        ROUTINGS[self.routing]  # an unknown name is a ConfigError
        check_widths(self.windows, self.embedding_size, config)


_PAIR_DEVIATION = 1e-4  # of W_ij: every label starts as absent
_SAMPLED = 128  # training documents that the initial weights are scaled on
_MOST_BYTES = 32 * 2**30  # of all W_ij: 260,000 labels with 128 capsules


class PaperCapsules(nn.Module):
    """Tokens → condensed capsules (or, without compression, the primary capsules themselves)."""

    def __init__(self, settings: PaperSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.embedding = WordEmbedding(settings.embedding_size, inputs)
        self.word_dropout = nn.Dropout1d(settings.word_dropout)  # over (B, l, v): whole words
        self.token_dropout = nn.Dropout(settings.token_dropout)
        self.settings, self.padding_id = settings, inputs.padding_id
        windows, filters, is_shared = settings.windows, settings.filters, settings.filter_start == "shared"
        self.convolution = EmbeddingConvolution(inputs, self.embedding.size, windows, filters, is_shared)
        self.primary = nn.ModuleList(
            PrimaryCapsules(filters, settings.capsule_size, settings.kappa) for _ in windows
        )
        primary_count = filters * sum(self.convolution.map_sizes)  # P
        self.count = settings.condensed or primary_count
        self.compression = CapsuleCompression(primary_count, self.count) if settings.condensed else None

    def forward(self, tokens: Tensor) -> Tensor:
        """Map token ids (B, l) to capsules (B, m, d)."""
        words = self.convolution.lookup(tokens, self.embedding)  # (B, l, v)
        maps = self.convolution(self.token_dropout(self.word_dropout(words)))
        features = [torch.relu(feature) for feature in maps]  # (B, F, L) each
        if self.compression is not None:
            layers = [layer for layer in self.primary if isinstance(layer, PrimaryCapsules)]
            return self.compression.condense(layers, features)  # (B, m, d)
        lifted = [layer(feature) for layer, feature in zip(self.primary, features, strict=True)]
        return torch.cat(lifted, dim=1)  # (B, P, d)

    @torch.no_grad()
    def start_from(self, texts: Ragged) -> None:
        """Fit the initial weights to the training documents: word weights, features, condensed capsules."""
        settings = self.settings
        if settings.frequency_weighting:
            counts = np.bincount(texts.values, minlength=self.embedding.table.num_embeddings)
            self.embedding.weight_by_frequency(counts, settings.frequency_weighting)
        rows = np.unique(np.linspace(0, len(texts) - 1, _SAMPLED).astype(int))
        device = self.embedding.table.weight.device
        tokens = torch.from_numpy(texts.padded(rows, self.padding_id)).to(device)  # (B, l)
        was_training = self.training
        self.eval()
        if settings.filter_start == "shared":
            self.convolution.scale_start(self.convolution.lookup(tokens, self.embedding))
        if settings.condensed_length and self.compression is not None:
            self.compression.scale_start(self(tokens), settings.condensed_length)
        self.train(was_training)


class PaperNetwork(nn.Module):
    """The paper's network for labels."""

    def __init__(self, settings: PaperSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.settings = settings
        self.document = PaperCapsules(settings, inputs)
        count = self.document.count
        self.transform = new_transform(settings, inputs.label_count, count, _PAIR_DEVIATION, sparse=True)
        self.em_costs = em_costs(settings)

    def forward(
        self,
        tokens: Tensor,
        outputs: Tensor | None = None,
        valid: Tensor | None = None,
        explain: bool = False,
    ) -> Scored:
        """Score labels; see `LabelQueryNetwork.forward` for the arguments."""
        votes = form_votes(self.document(tokens), self.transform, outputs)
        routed = route(votes, self.settings, self.em_costs, valid)
        explanation = None
        if explain:  # couplings as shares that sum to 1 for each label
            weights = mask_padding(routed.coupling.transpose(1, 2), valid)  # (B, n, m)
            explanation = Explanation(weights / weights.sum(dim=-1, keepdim=True).clamp_min(NEGLIGIBLE))
        logits = log_odds(routed.activations)
        return Scored(logits, routed.iterations, routed.agreement, explanation=explanation)


class PaperTextCapsule(TextCapsule):
    """Encode a text as one capsule with the paper's chain and routing."""

    def __init__(self, settings: PaperSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.settings = settings
        self.capsules = PaperCapsules(settings, inputs)
        self.word_size = self.capsules.embedding.size
        deviation = 1 / math.sqrt(settings.capsule_size)
        self.transform = new_transform(settings, 1, self.capsules.count, deviation)
        self.em_costs = nn.Parameter(torch.zeros(2)) if settings.routing == "em" else None

    def read(self, tokens: Tensor) -> TextReading:
        """Map token ids (B, l) to word vectors and the capsule."""
        votes = form_votes(self.capsules(tokens), self.transform)
        capsule = route(votes, self.settings, self.em_costs).capsules.squeeze(1)  # (B, d)
        return TextReading(tokens, self.capsules.embedding(tokens)[0], capsule)


def new_transform(
    settings: PaperSettings, outputs: int, inputs: int, deviation: float, sparse: bool = False
) -> PairTransforms | nn.Parameter:
    """Return W_ij of all pairs, which start with this deviation, or W_j (n, d, d) of the outputs."""
    size = settings.capsule_size
    if settings.votes != "pair":
        return nn.Parameter(torch.randn(outputs, size, size) / math.sqrt(size))
    per_input = 4 * outputs * size**2  # bytes
    if inputs * per_input > _MOST_BYTES:
        most = max(1, _MOST_BYTES // per_input)
        raise ConfigError(
            f"votes='pair': a matrix for each of {inputs:,} capsules and {outputs:,} labels takes "
            f"{inputs * per_input / 2**30:.0f} GiB; set condensed between 1 and {most:,}, or "
            "votes=class"
        )
    return PairTransforms(outputs, inputs, size, deviation, sparse)


def form_votes(capsules: Tensor, transform: Tensor | nn.Module, outputs: Tensor | None = None) -> Votes:
    """Return û_{j|i} of condensed capsules (B, m, d) for the given outputs."""
    if isinstance(transform, PairTransforms):
        if outputs is not None and can_form(capsules, transform, outputs):
            return form_pair_votes(capsules, transform, outputs)
        return transform(capsules, outputs)
    assert isinstance(transform, Tensor)
    return PerClassVotes(capsules, transform if outputs is None else transform[outputs])


register(
    System(
        "paper",
        PaperSettings,
        labels=PaperNetwork,
        answers=lambda settings, inputs: AnswerNetwork(settings, PaperTextCapsule(settings, inputs), inputs),
        defaults={
            "labels": {
                "training": {
                    "negatives": "batch",
                    "weight_decay": 0.0,
                    "batch_size": 64,
                    "learning_rate": 3e-3,
                },
                "inference": {"candidates": 200},
            },
            "answers": {
                "text": {"max_tokens": 64, "min_count": 1, "vocabulary_size": 100_000},
                "training": {"loss": "pointwise", "epochs": 10, "learning_rate": 5e-4},
                # Chosen on held-out questions of TREC QA: a cosine of 16 numbers hardly separates texts.
                "model": {"windows": (3, 4, 5), "condensed": 32, "capsule_size": 256},
            },
        },
    )
)
