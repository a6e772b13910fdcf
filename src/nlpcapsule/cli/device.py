"""The device that a command computes on."""

import os
from typing import Literal

from nlpcapsule.errors import ConfigError

Device = Literal["auto", "cpu", "cuda"]  # auto takes a GPU where there is one


def choose_device(device: Device) -> None:
    """Make the rest of this process compute on a device; one that is not there is a ConfigError."""
    if device == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    elif device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise ConfigError("--device cuda: torch finds no GPU; give --device cpu, or leave it out")
