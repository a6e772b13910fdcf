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
CHANGED = "+changes"  # follows a commit whose code was changed before it ran
_CODE = (".", "../../benchmarks", "../../pyproject.toml")  # what results depend on, seen from this folder


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
    return os.environ.get("NLPCAPSULE_COMMIT") or commit_of(Path(__file__).parent)


def commit_of(package: Path) -> str:
    """Return the commit of a checkout, from the folder of its package; "unknown" if it is none.

    A commit ends with "+changes" if files of the code differ from it or are new. A series of measurements
    writes into results and docs, so changes there do not count.
    """
    if shutil.which("git") is None or not package.is_dir():
        return UNKNOWN_COMMIT
    if not _git(package, "ls-files", ".").stdout:  # another repository is around this code, or none
        return UNKNOWN_COMMIT
    head = _git(package, "rev-parse", "--verify", "HEAD").stdout.strip()
    if not head:
        return UNKNOWN_COMMIT
    status = _git(package, "status", "--porcelain", "--untracked-files=all", "--", *_CODE)
    return head if not status.returncode and not status.stdout else head + CHANGED


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder; another git may write at the same time."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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
