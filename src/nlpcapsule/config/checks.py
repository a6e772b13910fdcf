"""Settings that are each possible and impossible together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nlpcapsule.errors import ConfigError
from nlpcapsule.registry import LABEL_LOSSES

if TYPE_CHECKING:
    from nlpcapsule.config.configuration import Config


def check_together(config: Config) -> None:
    """Refuses settings that are each possible and impossible together."""
    for_labels = dict.fromkeys(["bce", "margin", "spread", *LABEL_LOSSES])
    losses = tuple(for_labels) if config.task == "labels" else ("pointwise", "pairwise")
    network, training = config.network, config.training
    if training.loss not in losses:
        raise ConfigError(
            f"training.loss={training.loss!r} does not go with task {config.task!r}: "
            f"expected one of: {', '.join(losses)}"
        )
    if not network.routes_to_chosen and training.negatives != "all":
        raise ConfigError(
            f"training.negatives={training.negatives!r} needs a network that routes to chosen labels; "
            f"{network.name!r} scores all labels at once: leave it at 'all'"
        )
    if not network.scores_candidates and config.inference.candidates:
        raise ConfigError(
            f"inference.candidates needs a network that routes to chosen labels, not {network.name!r}"
        )
    if config.task == "answers" and (training.negatives != "all" or config.inference.candidates):
        raise ConfigError("training.negatives and inference.candidates are for task 'labels', not 'answers'")
    if config.task == "labels" and getattr(network, "overlap", False):
        raise ConfigError("model.overlap compares questions with answers: it is not for task 'labels'")
    _check_label_names(config)
    config.model.check(config)


def _check_label_names(config: Config) -> None:
    """Which networks can make something of names."""
    if config.text.label_names is None:
        return
    if config.task != "labels":
        raise ConfigError("text.label_names is for task 'labels', not 'answers'")
    if not config.network.takes_label_names:
        raise ConfigError(
            f"text.label_names is for 'hybrid' and 'label-query', not {config.network.name!r}, which learns "
            "labels from examples alone: leave it out, or choose --model hybrid"
        )
    nominated = config.inference.candidates or config.training.negatives == "hard"
    if nominated and config.lexical is None:
        raise ConfigError(
            "text.label_names does not go with candidates that a Kim-CNN nominates, which knows no label "
            "without examples: choose --model hybrid, or set inference.candidates=0 and other negatives"
        )
