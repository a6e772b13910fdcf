"""The configuration of the small network that nominates candidates."""

from __future__ import annotations

from nlpcapsule.config import Config
from nlpcapsule.networks.kim_cnn import KimCNNSettings


def nominator_config(config: Config) -> Config:
    """The Kim-CNN that is trained beside a network on the same words, all labels at once."""
    usual = KimCNNSettings().embedding_size  # a pretrained transformer has no word vectors
    return config.model_copy(
        update={
            "model": KimCNNSettings(embedding_size=config.network.word_vector_size or usual),
            "training": config.training.model_copy(update={"negatives": "all", "loss": "bce"}),
            "inference": config.inference.model_copy(update={"candidates": 0}),
        }
    )
