"""The arithmetic of a training's forward pass."""

from __future__ import annotations

import torch

from nlpcapsule.config.settings import TrainingSettings

_BF16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16")


def is_bf16(settings: TrainingSettings, device: torch.device) -> bool:
    """Return whether the forward pass computes in bf16 on a device; "auto" asks for a CPU's instructions."""
    if settings.precision != "auto" or device.type != "cpu":
        return settings.precision == "bf16"
    # It would be slow without them. Old torch does not know.
    found = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(found.get(name) for name in _BF16_INSTRUCTIONS)
