"""Where a result comes from: everything it takes to produce it again."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import Any

import torch

from nlpcapsule import __version__


def provenance(command: str, data: str, seeds: list[int], commit: str = "") -> dict[str, Any]:
    """The head of a results file.

    Args:
        command: What was run.
        data: The data's fingerprint.
        seeds: The seeds.
        commit: The commit, where there is no checkout to ask.
    """
    return {
        "command": command,
        "commit": commit or checked_out_commit(),
        "data": data,
        "seeds": seeds,
        "hardware": hardware(),
        "nlpcapsule": __version__,
    }


def experiment_command() -> str:
    """This process's command, without the interpreter's path."""
    return "python -m nlpcapsule.experiments " + " ".join(sys.argv[1:])


def checked_out_commit() -> str:
    """The commit of the checkout this runs in; "unknown" outside of one."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"


def hardware() -> str:
    """The machine, in words."""
    threads = torch.get_num_threads()
    processor = f"{threads} CPU thread{'' if threads == 1 else 's'} ({platform.machine()})"
    place = torch.cuda.get_device_name() if torch.cuda.is_available() else processor
    return f"{place}, torch {torch.__version__}, Python {platform.python_version()}"
