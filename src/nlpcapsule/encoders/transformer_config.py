"""What of a transformer's configuration is believed: sizes of known architectures, and nothing to fetch.

A model folder may come from anywhere, and transformers acts on much that a configuration can say: it imports
code from the hub (`auto_map`), fetches compute kernels (`attn_implementation`), other models (`backbone`) and
quantisers. None of that is needed to put saved weights back where they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from nlpcapsule.errors import ConfigError, did_you_mean

# Architectures for text whose code is a part of transformers itself.
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
# What an architecture may declare itself and is left at its default.
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
_LARGEST = 2**27  # no size in any known architecture comes near
_MOST_LAYERS = 1_000

_is_loading: ContextVar[bool] = ContextVar("is_loading", default=False)


@contextmanager
def loading_saved_model() -> Iterator[None]:
    """A block in which nothing is fetched: pretrained weights are refused, and the hub is set offline.

    The setting is one of the whole process, which `HF_HUB_OFFLINE` sets when the library is imported; other
    threads that use the hub meanwhile find it offline, too.
    """
    constants = _hub_constants()
    before = getattr(constants, "HF_HUB_OFFLINE", None)
    token = _is_loading.set(True)
    try:
        if constants is not None:
            constants.HF_HUB_OFFLINE = True
        yield
    finally:
        if constants is not None:
            constants.HF_HUB_OFFLINE = before
        _is_loading.reset(token)


def _hub_constants() -> Any:
    """The hub library's settings; None where it is not installed."""
    try:
        from huggingface_hub import constants
    except ImportError:
        return None
    return constants


def refuse_fetching(encoder: str) -> None:
    """Refuse to look for pretrained weights while a saved model is loaded.

    Raises:
        ConfigError: One is loaded.
    """
    if _is_loading.get():
        raise ConfigError(
            f"model.encoder={encoder!r}: a saved model brings its transformer along, and this one does not; "
            "restore the folder, or train again (an encoder of a plugin needs its --plugin here, too)"
        )


def check_model_type(model_type: Any, where: str) -> None:
    """Refuse an architecture that is not known to be safe to build from a file.

    Raises:
        ConfigError: It is not among `MODEL_TYPES`.
    """
    if model_type not in MODEL_TYPES:
        hint = did_you_mean(str(model_type), MODEL_TYPES)
        raise ConfigError(f"{where}: the architecture {model_type!r} is not supported: {hint}")


def believed(config: Any, known: Any, where: str) -> dict[str, Any]:
    """Return the part of a configuration that may be built from.

    Args:
        config: What a file says.
        known: The names that the architecture's own configuration has.
        where: What it is called in messages.

    Raises:
        ConfigError: A number is out of all bounds.
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
