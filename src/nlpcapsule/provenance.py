"""The provenance of a result: command, commit, hardware, version and memory."""

import os
import platform
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from nlpcapsule import __version__

UNKNOWN_COMMIT = "unknown"


def provenance(command: str, commit: str = "", **more: Any) -> dict[str, Any]:
    """Return the header of a results file; `commit` is needed if there is no checkout to read it from."""
    return {
        "command": command,
        "commit": commit or checked_out_commit(),
        **more,
        "hardware": hardware(),
        "nlpcapsule": __version__,
    }


def checked_out_commit() -> str:
    """Return NLPCAPSULE_COMMIT, or the commit of the checkout with this code; "unknown" without either."""
    if given := os.environ.get("NLPCAPSULE_COMMIT"):
        return given
    if shutil.which("git") is None:
        return UNKNOWN_COMMIT
    git = ["git", "-C", str(Path(__file__).parent)]
    tracked = subprocess.run([*git, "ls-files", Path(__file__).name], capture_output=True, check=False)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    of_this_code = tracked.stdout and head.stdout  # and not of another repository around it
    return head.stdout.strip() if of_this_code else UNKNOWN_COMMIT


def hardware() -> str:
    """Describe the machine."""
    threads = torch.get_num_threads()
    processor = f"{threads} CPU thread{'' if threads == 1 else 's'} ({platform.machine()})"
    place = torch.cuda.get_device_name() if torch.cuda.is_available() else processor
    return f"{place}, torch {torch.__version__}, Python {platform.python_version()}"


def peak_process_memory() -> int:
    """Return the peak memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage also covers the process that started this one
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
        if found:
            return 2**10 * int(found[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 2**10)
