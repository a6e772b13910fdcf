"""Hold the model that answers requests, and replace it when its folder has a new version.

Where the folder has an exported network, that one ranks. It cannot explain: torch, with its network, is
loaded when the first explanation is asked for.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nlpcapsule.errors import ModelFolderError, NlpCapsuleError
from nlpcapsule.export.prediction import is_exported, load_for_prediction
from nlpcapsule.model_folder import MANIFEST
from nlpcapsule.model_folder.manifest import model_place
from nlpcapsule.scoring.models import AnswerModel, LabelModel

_LOG = logging.getLogger("nlpcapsule.service")


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded model and its version.

    Attributes:
        model: The model.
        name: The name of its folder.
        version: The first digits of the manifest's SHA-256: another model has another version.
        loaded_at: When it was loaded, UTC.
    """

    model: LabelModel | AnswerModel
    name: str
    version: str
    loaded_at: datetime

    @property
    def is_exported(self) -> bool:
        """Whether an exported network ranks."""
        return is_exported(self.model)


def load_served(
    folder: Path, say: Callable[[str], None] = lambda text: None, exported: bool = True
) -> ServedModel:
    """Load the current version of a model folder.

    Args:
        folder: The model folder.
        say: Called with a remark if there is an exported network that cannot be used; torch's is then.
        exported: Whether to use the exported network, if there is one.

    Raises:
        ModelFolderError: If the folder is rejected.
    """
    refused: tuple[str | None, ModelFolderError] | None = None  # a version with an unusable export
    while True:
        version = folder_version(folder)
        is_refused = refused is not None and refused[0] == version
        try:
            model = load_for_prediction(folder, say, exported and not is_refused)
        except ModelFolderError as error:
            if folder_version(folder) == version:
                if not exported or is_refused:
                    raise
                refused = version, error
            continue
        if folder_version(folder) == version:  # otherwise it was replaced while it was loaded
            if refused is not None and is_refused:
                say(f"the exported network cannot be used, so torch is: {refused[1]}")
            return ServedModel(model, folder.resolve().name, version or "", datetime.now(UTC))


def folder_version(folder: Path) -> str | None:
    """Return the version of a folder's model; None while there is no complete one."""
    try:
        return hashlib.sha256((model_place(folder) / MANIFEST).read_bytes()).hexdigest()[:12]
    except (OSError, NlpCapsuleError):
        return None


def _files(folder: Path) -> list[tuple[str, int, int]]:
    """Return the names, sizes and times of the files of a folder's model."""
    try:
        found = [(path, path.stat()) for path in model_place(folder).rglob("*")]
    except (OSError, NlpCapsuleError):  # removed meanwhile
        return []
    return sorted((str(path), state.st_size, state.st_mtime_ns) for path, state in found)


class ModelHolder:
    """The current model. A request keeps the model that it began with.

    Args:
        folder: The model folder.
        served: Its model, if it is already loaded.
        changed: Called after a new version has replaced the old one.
    """

    def __init__(
        self,
        folder: Path,
        served: ServedModel | None = None,
        changed: Callable[[ServedModel], None] = lambda served: None,
    ) -> None:
        self.folder = folder
        self._changed = changed
        self._served = served
        self._with_torch: ServedModel | None = None  # loaded where an exported network ranks
        self._refreshing, self._loading_torch = threading.Lock(), threading.Lock()
        self._refused: tuple[str, list[tuple[str, int, int]]] | None = None  # a version and its files
        self._stop = threading.Event()
        self._watcher: threading.Thread | None = None

    @property
    def is_ready(self) -> bool:
        """Whether a model is loaded."""
        return self._served is not None

    @property
    def current(self) -> ServedModel:
        """The current model."""
        if self._served is None:
            self._served = load_served(self.folder)
        return self._served

    def with_torch(self) -> ServedModel:
        """Return the model with torch's network, which is loaded once for each version.

        It is the current version, or a newer one that has just replaced it in the folder.

        Raises:
            ModelFolderError: If neither can be loaded.
        """
        served = self.current
        if not served.is_exported:
            return served
        with self._loading_torch:
            found = self._with_torch
            if found is None or found.version not in (served.version, folder_version(self.folder)):
                found = load_served(self.folder, exported=False)
                self._with_torch = found if self.current.is_exported else None
        if found.version != served.version:
            self.refresh()  # so that rankings come from the new version, too
        return found

    def watch(self, seconds: float) -> None:
        """Look for a new version every so many seconds, and load it in the background."""
        if seconds > 0:
            self._watcher = threading.Thread(
                target=self._watch, args=(seconds,), name="watch-model", daemon=True
            )
            self._watcher.start()

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        if self._watcher is not None:
            self._watcher.join()

    def refresh(self) -> bool:
        """Load the folder's version if it is a new one; return whether it is now served.

        A version that cannot be loaded is reported once, and the current one stays; it is tried again when
        its files have changed, as they do while a folder is copied.
        """
        with self._refreshing:  # the watcher and an explanation may both find a new version
            return self._refresh()

    def _refresh(self) -> bool:
        version = folder_version(self.folder)
        if version is None or version == self.current.version:
            return False
        before, found = self._refused, (version, _files(self.folder))
        if found == before:
            return False
        try:
            served = load_served(self.folder, _LOG.warning)
        except NlpCapsuleError as error:
            self._refused = found
            if before is None or before[0] != version:
                _LOG.error("the new version is not served", extra={"version": version, "error": str(error)})
            return False
        self._served = served
        if self._with_torch is not None and (
            not served.is_exported or self._with_torch.version != served.version
        ):
            self._with_torch = None  # free its memory
        _LOG.info("serves a new version", extra={"version": served.version, "exported": served.is_exported})
        self._changed(served)
        return True

    def _watch(self, seconds: float) -> None:
        while not self._stop.wait(seconds):
            try:
                self.refresh()
            except Exception:  # the watcher must outlive any problem with one version
                _LOG.exception("looking for a new version failed")
