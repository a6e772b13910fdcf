"""Build the scorer of a configuration from its trained parts."""

from torch import nn

from nlpcapsule.config import Config
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.networks.kim_cnn import KimCNNSettings
from nlpcapsule.scoring.fusion import UNFITTED, Fusion, label_frequency
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES, HybridScorer
from nlpcapsule.scoring.network_scorer import NetworkScorer
from nlpcapsule.scoring.nominated_scorer import NominatedScorer
from nlpcapsule.scoring.scorer import LabelScorer


def network_scorer(
    config: Config, tokenizer: WordTokenizer, network: nn.Module, nominator: nn.Module | None = None
) -> LabelScorer:
    """Return the scorer of a network, over all labels or over those that a nominator picks."""
    padding_id, batch_size = tokenizer.padding_id, config.inference.batch_size
    if nominator is None:
        return NetworkScorer(network, padding_id, batch_size)
    nominating, count = NetworkScorer(nominator, padding_id, batch_size), config.inference.candidates
    return NominatedScorer(network, padding_id, batch_size, nominator=nominating, count=count)


def hybrid_scorer(
    config: Config,
    tokenizer: WordTokenizer,
    labels: LabelVocabulary,
    network: nn.Module,
    lexical: FittedEvidence,
    fusion: Fusion = UNFITTED,
) -> HybridScorer:
    """Return the scorer of a network and its lexical system."""
    scorer = NetworkScorer(network, tokenizer.padding_id, config.inference.batch_size)
    count = config.inference.candidates or CANDIDATES
    return HybridScorer(lexical, scorer, label_frequency(labels.counts), count, fusion)


def nominator_config(config: Config) -> Config:
    """Return the configuration of the Kim-CNN that nominates, trained on the same words over all labels."""
    usual = KimCNNSettings().embedding_size  # a pretrained transformer has no word vectors
    return config.model_copy(
        update={
            "model": KimCNNSettings(embedding_size=config.network.word_vector_size or usual),
            "training": config.training.model_copy(update={"negatives": "all", "loss": "bce"}),
            "inference": config.inference.model_copy(update={"candidates": 0}),
        }
    )
