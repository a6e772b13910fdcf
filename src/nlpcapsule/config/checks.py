"""Check for impossible values and for settings that are incompatible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nlpcapsule.config.nesting import flatten
from nlpcapsule.errors import ConfigError, quoted
from nlpcapsule.registry import LABEL_LOSSES

if TYPE_CHECKING:
    from nlpcapsule.config.configuration import Config

LARGEST_NUMBER = 2**31 - 1  # larger seeds and sizes do not fit into the libraries' integers
LONGEST_LIST = 64  # values of one setting
# Bounds of memory and time, far above what is useful; by the last part of a setting's name.
LARGEST_SIZE = 2**14
_SIZES = "embedding_size capsule_size document_size state_size size filters condensed channels bottleneck"
_MOST = {"windows": 512, "layers": 64, "order": 16, "trees": 1_000, "iterations": 1_000}
_MOST |= dict.fromkeys(_SIZES.split(), LARGEST_SIZE)


def check_values(config: Config) -> None:
    """Reject values that no setting can have."""
    for name, value in flatten(config.model_dump()):
        parts = value if isinstance(value, tuple) else (value,)
        if len(parts) > LONGEST_LIST:
            raise ConfigError(f"{name}: {len(parts):,} values; expected at most {LONGEST_LIST}")
        most = _MOST.get(name.rpartition(".")[2], LARGEST_NUMBER)
        for part in parts:
            if isinstance(part, int | float) and part > most:
                raise ConfigError(f"{name}={quoted(part)}: expected at most {most:,}")
            try:
                str(part).encode()
            except UnicodeEncodeError:  # a file name that is not UTF-8 cannot be stored in the model folder
                raise ConfigError(f"{name}={part!r}: expected UTF-8; rename the file") from None


def check_together(config: Config) -> None:
    """Reject settings that are valid alone but incompatible."""
    for_labels = dict.fromkeys(["bce", "margin", "spread", *LABEL_LOSSES])
    losses = tuple(for_labels) if config.task == "labels" else ("pointwise", "pairwise")
    network, training = config.network, config.training
    if training.loss not in losses:
        given = f"training.loss={quoted(training.loss)} does not go with task {config.task!r}"
        raise ConfigError(f"{given}: expected one of: {', '.join(losses)}")
    if not network.routes_to_chosen and training.negatives != "all":
        raise ConfigError(
            f"training.negatives={training.negatives!r} needs a network that routes to chosen labels; "
            f"{network.name!r} scores all labels at once: leave it at 'all'"
        )
    if not network.scores_candidates and config.inference.candidates:
        needed = "a network that routes to chosen labels"
        raise ConfigError(f"inference.candidates needs {needed}, not {network.name!r}")
    if config.task == "answers" and (training.negatives != "all" or config.inference.candidates):
        raise ConfigError("training.negatives and inference.candidates are for task 'labels', not 'answers'")
    if config.task == "labels" and getattr(network, "overlap", False):
        raise ConfigError("overlap compares questions with answers: it is not for task 'labels'")
    _check_label_names(config)
    config.model.check(config)


def _check_label_names(config: Config) -> None:
    """Reject label names for networks that cannot use them."""
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
