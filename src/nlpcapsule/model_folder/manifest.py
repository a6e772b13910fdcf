"""The manifest: the list of a model folder's files and their checksums."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nlpcapsule import __version__
from nlpcapsule.atomic_files import write_text
from nlpcapsule.errors import DataError, ModelFolderError, quoted
from nlpcapsule.model_folder.current import CURRENT, VERSIONS, current_place
from nlpcapsule.strict_json import read_json, read_text

FORMAT_VERSION = 2
MANIFEST = "manifest.json"
LEXICAL = "lexical"
FUSION = "fusion.json"
CARD = "MODEL_CARD.md"
ONNX = "onnx"  # the exported network: `nlpcapsule.export.onnx_file`
_PARTS = ("table.safetensors", "encoder.onnx", "capsules.onnx", "labels.onnx", "pooling.safetensors")
_EXPORTED = {f"{ONNX}/{name}" for name in ("network.onnx", "network.onnx.data", *_PARTS)}
SAVING = ".nlpcapsule-saving"  # inside a model folder: a model that is being written
SAVED = ".nlpcapsule-saved"  # a complete model that is about to replace the folder's model

# Files that a training, or the user, leaves in the folder; never read with the model.
_OTHER_FILES = {"metrics.jsonl", "nominator-metrics.jsonl", "README.md", "LICENSE", CURRENT}
INSPECTION = "inspection"
_OTHER_FOLDERS = {"checkpoint", INSPECTION, "tensorboard", VERSIONS}
_CHECKSUM = re.compile(r"[0-9a-f]{64}")
_UNSAFE = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]')  # not portable, or misleading


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model folder, all verified against their checksums."""

    folder: Path
    names: frozenset[str]  # the files that the manifest lists
    _used: set[str] = field(default_factory=set)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def path(self, name: str) -> Path:
        """Return the path of a file; reject one that the manifest does not list, so was not verified."""
        if name not in self.names:
            raise ModelFolderError(
                f"{self.folder}: {MANIFEST} does not list {name}, which this model needs; restore the folder "
                "or train again"
            )
        self._used.add(name)
        return self.folder / name

    def use_lexical(self, names: Iterable[str]) -> None:
        """Note the files that the lexical system has read, relative to its folder."""
        self._used.update(f"{LEXICAL}/{name}" for name in names)

    def refuse_unused(self, *other: str) -> None:
        """Reject files that the manifest lists and the model does not read, nor another way to load it."""
        # Exported files are read by prediction, the card by people.
        if unused := self.names - self._used - _EXPORTED - {CARD, *other}:
            raise ModelFolderError(
                f"{self.folder}: {MANIFEST} lists {quoted(min(unused))}, which this model does not read; "
                "restore the folder or train again"
            )

    def text(self, name: str) -> str:
        """Return the text of a file."""
        return read_text(self.path(name))

    def json(self, name: str) -> Any:
        """Return the value of a JSON file."""
        return read_json(self.path(name))


def has_model(folder: Path) -> bool:
    """Return whether a folder holds a complete model."""
    return (model_place(folder) / MANIFEST).exists()


def model_place(folder: Path, version: int | None = None) -> Path:
    """Return where a folder's model is: its current version, or the given one.

    It is in a subfolder if it is a later version, or if saving was interrupted in its last steps.
    """
    folder = current_place(folder, version)
    saved = folder / SAVED
    return saved if is_own_folder(saved) and (saved / MANIFEST).exists() else folder


def is_own_folder(path: Path) -> bool:
    """Return whether a path is a folder itself and not a link to one."""
    return path.is_dir() and not path.is_symlink()


def checked_files(folder: Path) -> ModelFiles:
    """Return the files of a folder after checking that each is present, unchanged and listed."""
    checksums = _checksums(folder, _read_manifest(folder))
    top = folder.resolve()
    for name, expected in checksums.items():
        path = folder / name
        if not path.resolve().is_relative_to(top):
            raise ModelFolderError(
                f"{path} is a link to a file outside of {folder}; put the file itself there"
            )
        if not path.is_file():
            raise ModelFolderError(f"{folder}: the file {name} is missing; restore it or train again")
        if _checksum(path) != expected:
            raise ModelFolderError(
                f"{path} is not as it was written (truncated or edited); restore it or train again"
            )
    for name in _present(folder):
        if name not in checksums:
            raise ModelFolderError(
                f"{folder / name} does not belong to the model: {MANIFEST} does not list it; move it to "
                "another folder"
            )
    return ModelFiles(folder, frozenset(checksums))


def listed_names(folder: Path) -> list[str] | None:
    """Return the names in a folder's manifest that lie inside it; None without a valid manifest."""
    try:
        manifest = read_json(folder / MANIFEST)
    except DataError:
        return None
    if not isinstance(manifest, dict) or "format_version" not in manifest:
        return None
    checksums = manifest.get("sha256")
    return [name for name in checksums if _is_inside(name)] if isinstance(checksums, dict) else None


def write_manifest(folder: Path, names: Iterable[str]) -> None:
    """Write the manifest of files in a folder."""
    checksums = {name: _checksum(folder / name) for name in sorted(names)}
    manifest = {"format_version": FORMAT_VERSION, "nlpcapsule": __version__, "sha256": checksums}
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(folder: Path) -> Any:
    if not folder.exists():
        raise ModelFolderError(f"{folder}: there is no such model folder")
    if not folder.is_dir():
        raise ModelFolderError(
            f"{folder} is a file: expected a model folder, as `nlpcapsule train` writes it"
        )
    if (folder / MANIFEST).is_symlink():
        raise ModelFolderError(f"{folder / MANIFEST} is a link; put the file itself there")
    if not (folder / MANIFEST).exists():
        if (folder / "checkpoint").is_dir():
            raise ModelFolderError(
                f"{folder}: training has not finished; run the same train command again with --resume"
            )
        raise ModelFolderError(f"{folder} is not a model folder: it has no {MANIFEST}")
    try:
        return read_json(folder / MANIFEST)
    except DataError as error:
        raise _damaged(folder, error.problem) from None


def _checksums(folder: Path, manifest: Any) -> dict[str, str]:
    """Return the checksums in a manifest, whose names all lie inside the folder."""
    if not isinstance(manifest, dict):
        raise _damaged(folder, "expected an object")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise _damaged(folder, f"format_version={str(version)[:40]}")
    if version != FORMAT_VERSION:
        advice = "upgrade with `pip install --upgrade nlpcapsule`"
        raise ModelFolderError(
            f"{folder} has format version {version}, written by nlpcapsule {manifest.get('nlpcapsule')}; "
            f"this is {__version__}, which reads version {FORMAT_VERSION}: "
            + (advice if version > FORMAT_VERSION else "train the model again")
        )
    checksums = manifest.get("sha256")
    if not isinstance(checksums, dict):
        raise _damaged(folder, "sha256 is no object of checksums")
    for name, value in checksums.items():
        if not _is_inside(name):
            raise _damaged(folder, f"it lists {name[:80]!r}, which is no name of a file inside the folder")
        if not isinstance(value, str) or not _CHECKSUM.fullmatch(value):
            raise _damaged(folder, f"it has no checksum of {name!r}")
    return checksums


def _damaged(folder: Path, problem: str) -> ModelFolderError:
    return ModelFolderError(f"{folder / MANIFEST} is damaged ({problem}); restore the folder or train again")


def _is_inside(name: str) -> bool:
    """Return whether a name leads to a file inside the folder, on any operating system."""
    parts = name.split("/")
    return (
        not _UNSAFE.search(name)
        and name != MANIFEST
        and not any(part.startswith(".") or not part for part in parts)
    )


def _present(folder: Path) -> Iterator[str]:
    """Yield the files in a folder, except those that never belong to its model."""
    for place, folders, names in os.walk(folder):
        here = Path(place)
        if here == folder:
            folders[:] = [name for name in folders if not name.startswith(".") and name not in _OTHER_FOLDERS]
            names = [
                name for name in names if not name.startswith(".") and name not in {MANIFEST, *_OTHER_FILES}
            ]
        links = [name for name in folders if (here / name).is_symlink()]
        for name in [*names, *links]:
            yield (here / name).relative_to(folder).as_posix()
