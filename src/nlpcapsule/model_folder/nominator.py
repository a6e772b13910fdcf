"""The configuration of the small network that nominates candidates."""

from __future__ import annotations

from nlpcapsule.config import Config
from nlpcapsule.networks.kim_cnn import KimCNNSettings


def nominator_config(config: Config) -> Config:
    """Return the configuration of the Kim-CNN that is trained on the same words over all labels."""
    usual = KimCNNSettings().embedding_size  # a pretrained transformer has no word vectors
    return config.model_copy(
        update={
            "model": KimCNNSettings(embedding_size=config.network.word_vector_size or usual),
            "training": config.training.model_copy(update={"negatives": "all", "loss": "bce"}),
            "inference": config.inference.model_copy(update={"candidates": 0}),
        }
    )
