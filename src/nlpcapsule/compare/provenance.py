"""The provenance of a result: command, commit, hardware and version."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

from nlpcapsule import __version__


def provenance(command: str, commit: str = "", **more: Any) -> dict[str, Any]:
    """Return the header of a results file.

    Args:
        command: The command that was run.
        commit: The commit, if there is no checkout to read it from.
        more: Further entries, such as the data's fingerprint and the seeds.
    """
    return {
        "command": command,
        "commit": commit or checked_out_commit(),
        **more,
        "hardware": hardware(),
        "nlpcapsule": __version__,
    }


def checked_out_commit() -> str:
    """Return the commit of the checkout with this code; "unknown" if it is installed without one."""
    folder = Path(__file__).parent
    if not _git(folder, "ls-files", Path(__file__).name):  # at best, an installed file in another repository
        return "unknown"
    return _git(folder, "rev-parse", "HEAD") or "unknown"


def _git(folder: Path, *words: str) -> str:
    asked = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def hardware() -> str:
    """Describe the machine."""
    threads = torch.get_num_threads()
    processor = f"{threads} CPU thread{'' if threads == 1 else 's'} ({platform.machine()})"
    place = torch.cuda.get_device_name() if torch.cuda.is_available() else processor
    return f"{place}, torch {torch.__version__}, Python {platform.python_version()}"
