"""Where a result comes from: everything it takes to produce it again."""

from __future__ import annotations

import platform
import subprocess
from typing import Any

import torch

from nlpcapsule import __version__


def provenance(command: str, commit: str = "", **more: Any) -> dict[str, Any]:
    """The head of a results file.

    Args:
        command: What was run.
        commit: The commit, where there is no checkout to ask.
        more: What else there is to say: the data's fingerprint, seeds.
    """
    return {
        "command": command,
        "commit": commit or checked_out_commit(),
        **more,
        "hardware": hardware(),
        "nlpcapsule": __version__,
    }


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
