"""Write, list, compare and choose versions of a model in one folder."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from nlpcapsule.atomic_files import sync
from nlpcapsule.errors import DataError, ModelFolderError
from nlpcapsule.model_folder import MANIFEST, load_model, save_model
from nlpcapsule.model_folder.checks import check_label_rows
from nlpcapsule.model_folder.current import FIRST, VERSIONS, current_version, set_current, version_place
from nlpcapsule.model_folder.manifest import model_place
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.strict_json import read_json

_NUMBER = re.compile(r"\d{4,7}")


@dataclass(frozen=True)
class Version:
    """A version of a model.

    Attributes:
        number: Its number, from 1.
        is_current: Whether it is the one that is loaded.
        facts: What its folder says about it.
        labels: Its labels and their numbers of documents; empty for an answer model.
    """

    number: int
    is_current: bool
    facts: ModelFacts
    labels: dict[str, int]

    @property
    def what(self) -> str:
        """What made it: the latest change, or the training."""
        return self.facts.changes[-1] if self.facts.changes else "trained"


def write_version(model: LabelModel, folder: Path) -> int:
    """Write a model as a further version of a folder and make it current.

    The version is complete before it gets its name, and has its name before it is current: a process that is
    killed leaves the earlier version.

    Returns:
        The version's number.

    Raises:
        ModelFolderError: If it cannot be written.
    """
    below = folder / VERSIONS
    _remove_stale_parts(below)
    staged = below / f".part-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        number = max(version_numbers(folder), default=0) + 1
        save_model(replace(model, facts=replace(model.facts, version=number)), staged)
        while True:
            try:
                staged.rename(version_place(folder, number))
                break
            except OSError:
                if not version_place(folder, number).exists():
                    raise
                number += 1  # another process has written a version meanwhile
        sync(below)
        set_current(folder, number)
    except OSError as error:
        raise ModelFolderError(
            f"{folder}: the version cannot be written: {error.strerror or error}"
        ) from None
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return number


def _remove_stale_parts(below: Path) -> None:
    """Remove what killed processes have left of unfinished versions."""
    for path in below.glob(".part-*") if below.is_dir() else ():
        process = path.name.split("-")[1]
        if not path.is_symlink() and process.isdecimal() and not psutil.pid_exists(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def version_numbers(folder: Path) -> list[int]:
    """Return the numbers of the versions of a folder."""
    numbers = [FIRST] if (model_place(folder, FIRST) / MANIFEST).exists() else []
    below = folder / VERSIONS
    for path in below.iterdir() if below.is_dir() else ():
        if _NUMBER.fullmatch(path.name) and (path / MANIFEST).exists() and not path.is_symlink():
            numbers.append(int(path.name))
    return sorted(numbers)


def list_versions(folder: Path) -> list[Version]:
    """Return the complete versions of a folder, oldest first.

    Raises:
        ModelFolderError: If the folder holds no model.
    """
    numbers = version_numbers(folder)
    if not numbers:
        load_model(folder)  # raises an error that says what is missing
    current = current_version(folder)
    return [_version(folder, number, number == current) for number in numbers]


def find_version(folder: Path, number: int) -> Version:
    """Return a version.

    Raises:
        ModelFolderError: If there is no such version.
    """
    _check(folder, number)
    return _version(folder, number, number == current_version(folder))


def roll_back(folder: Path, number: int) -> None:
    """Make another version the current one; no version is removed.

    Raises:
        ModelFolderError: If there is no such version.
    """
    _check(folder, number)
    set_current(folder, number)


def _check(folder: Path, number: int) -> None:
    numbers = version_numbers(folder)
    if number not in numbers:
        known = ", ".join(map(str, numbers)) or "none"
        raise ModelFolderError(f"{folder} has no version {number}; its versions: {known}")


def _version(folder: Path, number: int, is_current: bool) -> Version:
    place = model_place(folder, number)
    rows = []
    try:
        facts = ModelFacts.from_json(read_json(place / "facts.json"))
        if (place / "labels.json").exists():
            rows = read_json(place / "labels.json")
            check_label_rows(rows)
    except (DataError, ModelFolderError) as error:
        raise ModelFolderError(f"version {number} of {folder} is damaged: {error}") from None
    return Version(number, is_current, facts, {row["label"]: row["documents"] for row in rows})
