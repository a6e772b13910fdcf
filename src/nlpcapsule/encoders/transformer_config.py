"""Restrict a transformer's configuration to safe values: sizes of known architectures, no downloads.

A model folder may come from an untrusted source, and a configuration can make transformers import code from
the hub (`auto_map`) or download compute kernels (`attn_implementation`), other models (`backbone`) and
quantisers. None of these is needed to load saved weights.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from types import SimpleNamespace
from typing import Any

from nlpcapsule.errors import ConfigError, did_you_mean

# Text architectures whose code is part of transformers.
MODEL_TYPES = re.findall(
    r"\S+",
    """
    albert bert big_bird camembert convbert deberta deberta-v2 distilbert electra ernie eurobert fnet gpt2 gte
    longformer megatron-bert mobilebert modernbert mpnet nomic_bert nystromformer rembert roberta
    roberta-prelayernorm roformer squeezebert xlm-roberta xlm-roberta-xl
    """,
)
# Names, and parts of names, of settings that an architecture may declare but that keep their defaults.
_IGNORED = re.compile(
    "^(_.*|architectures|auto_map|dtype|name_or_path|output_attentions|output_hidden_states|"
    "quantization_config|reference_compile|return_dict|torch_dtype|torchscript|transformers_version)$|"
    "implementation|backbone|use_kernel|kernel_config|quantiz|remote|adapter|tp_plan"
)
_LARGEST = 2**27  # far above any size in a known architecture
_MOST_LAYERS = 1_000

_is_loading: ContextVar[bool] = ContextVar("is_loading", default=False)
_hub_before: list[bool] = []  # the hub's setting before each block that loads a model
_lock = Lock()


@contextmanager
def loading_saved_model() -> Iterator[None]:
    """Disable downloads in this block: pretrained weights are refused, and the hub is set offline.

    The setting is global (`HF_HUB_OFFLINE` sets it at import), so the hub is offline for other threads, too,
    until the last one leaves its block.
    """
    hub: Any = SimpleNamespace(HF_HUB_OFFLINE=True)
    with suppress(ImportError):
        from huggingface_hub import constants as hub
    token = _is_loading.set(True)
    with _lock:
        _hub_before.append(hub.HF_HUB_OFFLINE)
        hub.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        with _lock:  # the first value, which was there before any thread, is taken last
            hub.HF_HUB_OFFLINE = _hub_before.pop()
        _is_loading.reset(token)


def refuse_fetching(encoder: str) -> None:
    """Refuse to look for pretrained weights while a saved model is loaded."""
    if _is_loading.get():
        raise ConfigError(
            f"encoder.path={encoder!r}: a saved model brings its transformer along, and this one does not; "
            "restore the folder, or train again (an encoder of a plugin needs its --plugin here, too)"
        )


def check_model_type(model_type: Any, where: str) -> None:
    """Reject an architecture that is not known to be safe to build from a file."""
    if model_type not in MODEL_TYPES:
        hint = did_you_mean(str(model_type), MODEL_TYPES)
        raise ConfigError(f"{where}: the architecture {model_type!r} is not supported: {hint}")


def safe_settings(config: Any, known: Any, where: str) -> dict[str, Any]:
    """Return the settings of a file that an architecture knows, if their numbers are within bounds."""
    kept = {name: value for name, value in config.items() if name in known and not _IGNORED.search(name)}
    for name, value in kept.items():
        most = _MOST_LAYERS if "layer" in name or "block" in name else _LARGEST
        for number in _numbers(value):
            if not abs(number) <= most:
                raise ConfigError(f"{where}: {name}={number} is out of bounds: expected at most {most:,}")
    return kept


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield value
