"""Weights that were saved under earlier names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

# Word vectors used to stand beside an encoder and are now part of it.
EMBEDDING_BESIDE_ENCODER = {"embedding": "encoder.embedding"}


def accept_earlier_names(module: nn.Module, names: Mapping[str, str]) -> None:
    """Let a module load weights that were saved under earlier names.

    Args:
        module: The module.
        names: Earlier name → present name, of a parameter or a whole submodule.
    """

    def rename(_: nn.Module, state: dict[str, Any], prefix: str, *__: Any) -> None:
        for earlier, now in names.items():
            before = prefix + earlier
            for name in [name for name in state if name == before or name.startswith(f"{before}.")]:
                state[prefix + now + name.removeprefix(before)] = state.pop(name)

    module.register_load_state_dict_pre_hook(rename)
