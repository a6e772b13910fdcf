"""Whether kernels can be built and run on this machine."""

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch


@cache
def works(trial: Callable[..., object], *arguments: Any) -> bool:
    """Return whether a trial of kernels runs, which takes Triton, a GPU that it knows and a compiler.

    The arguments of the trial are what the kernels are compiled for: one that is too large for a GPU's memory
    on chip fails there. A trial is run once.
    """
    if find_spec("triton") is None:  # it comes with torch for GPUs
        return False
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cuda", enabled=False):
            trial(*arguments)
        torch.cuda.synchronize()
    except Exception as error:  # of any kind, by version and machine; nothing needs the kernels
        reason = str(error).partition("\n")[0]
        warnings.warn(f"Triton fails, some kernels are not used: {reason}", stacklevel=2)
        return False
    return True
