"""Restrict a transformer's configuration to safe values: sizes of known architectures, no downloads.

A model folder may come from an untrusted source, and a configuration can make transformers import code from
the hub (`auto_map`) or download compute kernels (`attn_implementation`), other models (`backbone`) and
quantisers. None of these is needed to load saved weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from nlpcapsule.errors import ConfigError, did_you_mean

# Text architectures whose code is part of transformers.
MODEL_TYPES = (
    "albert",
    "bert",
    "big_bird",
    "camembert",
    "convbert",
    "deberta",
    "deberta-v2",
    "distilbert",
    "electra",
    "ernie",
    "eurobert",
    "fnet",
    "gpt2",
    "gte",
    "longformer",
    "megatron-bert",
    "mobilebert",
    "modernbert",
    "mpnet",
    "nomic_bert",
    "nystromformer",
    "rembert",
    "roberta",
    "roberta-prelayernorm",
    "roformer",
    "squeezebert",
    "xlm-roberta",
    "xlm-roberta-xl",
)
# Values that an architecture may declare but that are left at their defaults.
_NOT_BELIEVED = {
    "architectures",
    "auto_map",
    "dtype",
    "name_or_path",
    "output_attentions",
    "output_hidden_states",
    "quantization_config",
    "reference_compile",
    "return_dict",
    "torch_dtype",
    "torchscript",
    "transformers_version",
}
_NOT_BELIEVED_PARTS = (
    "implementation",
    "backbone",
    "use_kernel",
    "kernel_config",
    "quantiz",
    "remote",
    "adapter",
    "tp_plan",
)
_LARGEST = 2**27  # far above any size in a known architecture
_MOST_LAYERS = 1_000

_is_loading: ContextVar[bool] = ContextVar("is_loading", default=False)


@contextmanager
def loading_saved_model() -> Iterator[None]:
    """Disable downloads in this block: pretrained weights are refused, and the hub is set offline.

    The setting is global (`HF_HUB_OFFLINE` sets it at import), so the hub is offline for other threads, too.
    """
    token = _is_loading.set(True)
    _offline.enter()
    try:
        yield
    finally:
        _offline.leave()
        _is_loading.reset(token)


class _Offline:
    """Sets the hub offline while at least one thread loads a model."""

    def __init__(self) -> None:
        self._lock, self._loading, self._before = Lock(), 0, None

    def enter(self) -> None:
        """Set the hub offline, unless another thread has."""
        constants = _hub_constants()
        with self._lock:
            if constants is not None and self._loading == 0:
                self._before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
            self._loading += 1

    def leave(self) -> None:
        """Restore the hub's setting after the last thread."""
        constants = _hub_constants()
        with self._lock:
            self._loading -= 1
            if constants is not None and self._loading == 0:
                constants.HF_HUB_OFFLINE = self._before


_offline = _Offline()


def _hub_constants() -> Any:
    """Return the hub library's settings module; None if it is not installed."""
    try:
        from huggingface_hub import constants
    except ImportError:
        return None
    return constants


def refuse_fetching(encoder: str) -> None:
    """Refuse to look for pretrained weights while a saved model is loaded.

    Raises:
        ConfigError: If a saved model is being loaded.
    """
    if _is_loading.get():
        raise ConfigError(
            f"encoder={encoder!r}: a saved model brings its transformer along, and this one does not; "
            "restore the folder, or train again (an encoder of a plugin needs its --plugin here, too)"
        )


def check_model_type(model_type: Any, where: str) -> None:
    """Reject an architecture that is not known to be safe to build from a file.

    Raises:
        ConfigError: If it is not among `MODEL_TYPES`.
    """
    if model_type not in MODEL_TYPES:
        hint = did_you_mean(str(model_type), MODEL_TYPES)
        raise ConfigError(f"{where}: the architecture {model_type!r} is not supported: {hint}")


def believed(config: Any, known: Any, where: str) -> dict[str, Any]:
    """Return the part of a configuration that is safe to build from.

    Args:
        config: The content of a file.
        known: The names in the architecture's configuration.
        where: Its name in error messages.

    Raises:
        ConfigError: If a number is out of bounds.
    """
    kept = {
        name: value
        for name, value in config.items()
        if name in known
        and not name.startswith("_")
        and name not in _NOT_BELIEVED
        and not any(part in name for part in _NOT_BELIEVED_PARTS)
    }
    for name, value in kept.items():
        most = _MOST_LAYERS if "layer" in name or "block" in name else _LARGEST
        for number in _numbers(value):
            if not abs(number) <= most:
                raise ConfigError(f"{where}: {name}={number} is out of bounds: expected at most {most:,}")
    return kept


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _numbers(item)
    elif isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield value
