"""The device that a command computes on."""

import os
from enum import StrEnum

from nlpcapsule.errors import ConfigError


class Device(StrEnum):
    """The choices; auto takes a GPU where there is one."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def choose_device(device: Device) -> None:
    """Make the rest of this process compute on a device; one that is not there is a ConfigError."""
    if device is Device.CPU:
        os.environ["ACCELERATE_USE_CPU"] = "true"
    elif device is Device.CUDA:
        import torch

        if not torch.cuda.is_available():
            raise ConfigError("--device cuda: torch finds no GPU; give --device cpu, or leave it out")
