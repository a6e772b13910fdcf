"""Versions of a model in one folder.

    MODEL/                  version 1: the model as it was trained
      versions/0002/        a model folder for each later version
      current.json          {"version": 2}: the version that is loaded; without it, version 1

A new version is complete before `current.json` names it, and the file is replaced atomically.
"""

import json
from pathlib import Path

from nlpcapsule.atomic_files import write_text
from nlpcapsule.errors import DataError, ModelFolderError
from nlpcapsule.strict_json import read_json

CURRENT, VERSIONS = "current.json", "versions"
FIRST = 1
_MOST = 10**6


def current_version(folder: Path) -> int:
    """Return the number of the version that is loaded; raise `ModelFolderError` if the file is damaged."""
    path = folder / CURRENT
    if path.is_symlink():
        raise ModelFolderError(f"{path} is a link; put the file itself there")
    if not path.exists():
        return FIRST
    try:
        record = read_json(path)
    except DataError as error:
        raise _damaged(path, error.problem) from None
    version = record.get("version") if isinstance(record, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or not FIRST <= version <= _MOST:
        raise _damaged(path, "expected an object with the number of a version")
    return version


def set_current(folder: Path, version: int) -> None:
    """Choose the version that is loaded."""
    write_text(folder / CURRENT, json.dumps({"version": version}) + "\n")


def version_place(folder: Path, version: int) -> Path:
    """Return the folder of a version."""
    return folder if version == FIRST else folder / VERSIONS / f"{version:04d}"


def current_place(folder: Path, version: int | None = None) -> Path:
    """Return the folder of the version that is loaded, or of the given one, which must be there."""
    place = version_place(folder, current_version(folder) if version is None else version)
    if place == folder:
        return folder
    if not place.is_dir() or place.is_symlink() or place.parent.is_symlink():
        raise ModelFolderError(
            f"{folder / CURRENT} names a version that is not in {place}; choose another with "
            "`nlpcapsule versions rollback`"
        )
    return place


def _damaged(path: Path, problem: str) -> ModelFolderError:
    return ModelFolderError(
        f"{path} is damaged ({problem}); choose a version with `nlpcapsule versions rollback`"
    )
