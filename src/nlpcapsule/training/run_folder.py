"""The folder of a training run: refused if it holds other files, reopened by --resume."""

import json
import os
import platform
import shutil
from pathlib import Path
from typing import Any, TypeVar, cast

import psutil

from nlpcapsule.atomic_files import remove_parts, write_text
from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError, DataError, ModelFolderError
from nlpcapsule.model_folder import finish_interrupted_save, has_model, load_model, save_model
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.strict_json import read_json
from nlpcapsule.threads import thread_count
from nlpcapsule.training.checkpoint import START_AGAIN
from nlpcapsule.training.shared_work import this_process, value_of_main

Model = TypeVar("Model", LabelModel, AnswerModel)

_NOTE = "run.json"  # what a run began with, in its checkpoint folder


class RunFolder:
    """A model folder while its model is being trained, or is trained further with `resume`.

    Of several processes only the main one writes into it, and all use the folder that it names.
    """

    def __init__(self, path: Path, resume: bool = False, tensorboard: bool = False) -> None:
        path = Path(value_of_main(str(path)))
        self.path, self.tensorboard = path, tensorboard
        self.checkpoint = path / "checkpoint"
        self._process = this_process()
        if path.exists() and not path.is_dir():
            raise ModelFolderError(f"{path} is a file: expected the name of a folder to write the model into")
        if self._process.is_main_process:
            self._clear(resume)
        self._process.wait_for_everyone()
        if resume:
            if not (self.checkpoint / _NOTE).exists() and not self.finished:
                raise ModelFolderError(f"{path} holds no training to resume; leave --resume out to begin one")
        elif path.exists() and any(path.iterdir()):
            what = "a finished model" if self.finished else "an unfinished training"
            what = what if self.finished or self.checkpoint.exists() else "other files"
            way = " or go on with it: --resume" if self.checkpoint.exists() else ""
            raise ModelFolderError(f"{path} already holds {what}; name another folder with --output{way}")
        self._process.wait_for_everyone()  # every process checks before the first one writes

    @property
    def finished(self) -> bool:
        """Whether the folder holds a complete model."""
        return has_model(self.path)

    @property
    def has_checkpoint(self) -> bool:
        """Whether an unfinished run has saved anything that --resume would continue from."""
        files = (path.relative_to(self.path) for path in self.checkpoint.rglob("*") if path.is_file())
        # The names of temporary files and folders begin with a dot.
        return any(file.name != _NOTE and not any(name[0] == "." for name in file.parts) for file in files)

    def _clear(self, resume: bool) -> None:
        """Finish what a killed run left incomplete; remove a run that ended before its first checkpoint."""
        if resume and self.path.exists():
            finish_interrupted_save(self.path)
            remove_parts(self.path)
            if self.finished:
                shutil.rmtree(self.checkpoint, ignore_errors=True)
        elif self.checkpoint.is_dir() and not self.finished and not self.has_checkpoint:
            if self._is_running():
                problem = "another process is training into it; name another folder with --output"
                raise ModelFolderError(f"{self.path}: {problem}")
            for name in ("checkpoint", "tensorboard"):
                shutil.rmtree(self.path / name, ignore_errors=True)
            for path in self.path.glob("*metrics.jsonl"):
                path.unlink(missing_ok=True)

    @property
    def threads(self) -> int | None:
        """The number of threads that the run began with, if it has begun: another one changes last digits."""
        found = self._note().get("threads")
        return found if type(found) is int and found > 0 else None

    def _note(self) -> dict[str, Any]:
        """Return what the run began with; empty if it has not begun, or was ended while writing it."""
        try:
            note = read_json(self.checkpoint / _NOTE)
        except DataError:
            return {}
        return note if isinstance(note, dict) else {}

    def _is_running(self) -> bool:
        """Return whether the process that began the run is still there."""
        match self._note().get("process"):
            case [str(machine), int(process)]:
                return machine == platform.node() and process != os.getpid() and psutil.pid_exists(process)
        return False

    def begin(self, config: Config, fingerprint: str) -> None:
        """Write a note of the data and settings, or on resuming check that they are unchanged."""
        record = {
            "config": json.loads(config.model_dump_json()),
            "data": fingerprint,
            "process": [platform.node(), os.getpid()],
            "threads": thread_count(),
        }
        note = self.checkpoint / _NOTE
        if note.exists():
            began, advice = self._note(), "resume with the same, or start again in another folder"
            if not isinstance(began.get("config"), dict) or "data" not in began:
                raise ModelFolderError(f"{note} is damaged; {START_AGAIN}")
            if began["data"] != record["data"]:
                raise ModelFolderError(f"{self.path}: the data are not those the run began with; {advice}")
            changed = ", ".join(_differences(began["config"], record["config"]))
            if changed:
                raise ConfigError(f"{self.path}: the run began with other settings ({changed}); {advice}")
        elif self._process.is_main_process:
            write_text(note, json.dumps(record, indent=2) + "\n")

    @property
    def is_writer(self) -> bool:
        """Whether this process writes the model; others may pass None to `finish`."""
        return self._process.is_main_process

    def finish(self, model: Model | None) -> Model:
        """Write the model and remove the checkpoints; the processes that do not write it read it."""
        if self.is_writer:
            assert model is not None
            save_model(model, self.path)
            shutil.rmtree(self.checkpoint, ignore_errors=True)
        self._process.wait_for_everyone()
        if model is None:
            model = cast("Model", load_model(self.path))
        self._process.wait_for_everyone()
        return model


def _differences(earlier: dict, now: dict, prefix: str = "") -> list[str]:
    names = []
    for key in sorted({*earlier, *now}):
        before, after = earlier.get(key), now.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            names += _differences(before, after, f"{prefix}{key}.")
        elif before != after:
            names.append(f"{prefix}{key}: {before!r} then, {after!r} now")
    return names
