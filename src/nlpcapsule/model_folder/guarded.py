"""Turn whatever a damaged model folder raises into one kind of error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nlpcapsule.errors import DataError, MissingExtraError, ModelFolderError, NlpCapsuleError
from nlpcapsule.model_folder.manifest import MANIFEST, model_place
from nlpcapsule.strict_json import read_text

Model = TypeVar("Model")


def load_guarded(
    folder: Path, read: Callable[[Path], Model], check: Callable[[Model], None], version: int | None = None
) -> Model:
    """Read and check a model, once more if another process saved one meanwhile.

    Args:
        folder: The model folder.
        read: Reads the model from the place that it is given.
        check: Raises an error if the model's parts do not fit.
        version: The version; None loads the current one.

    Raises:
        ModelFolderError: If the folder is rejected.
        MissingExtraError: If the model needs an optional dependency.
    """
    before = _manifest_of(folder, version)
    try:
        return _load(model_place(folder, version), folder, read, check)
    except ModelFolderError:
        if _manifest_of(folder, version) == before:
            raise
    return _load(model_place(folder, version), folder, read, check)  # files of both models were read


def _load(place: Path, folder: Path, read: Callable[[Path], Model], check: Callable[[Model], None]) -> Model:
    try:
        model = read(place)
        check(model)
        return model
    except MissingExtraError:
        raise
    except ModelFolderError as error:
        if str(place) in str(error):
            raise
        raise _do_not_fit(folder, str(error)) from error
    except MemoryError:
        raise ModelFolderError(f"{folder}: the model needs more memory than there is") from None
    except Exception as error:  # any error of a damaged file means that the folder cannot be used
        if _is_lack_of_memory(error):
            raise ModelFolderError(f"{folder}: the model needs more memory than there is") from None
        raise _do_not_fit(folder, first_line(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the tokenizers library's panic
            raise
        raise _do_not_fit(folder, f"tokenizer.json: {first_line(error)}") from error


def _do_not_fit(folder: Path, problem: str) -> ModelFolderError:
    return ModelFolderError(f"{folder}: its files do not fit together: {problem}")


def _manifest_of(folder: Path, version: int | None) -> Any:
    try:
        return read_text(model_place(folder, version) / MANIFEST)
    except (DataError, ModelFolderError):
        return None


def _is_lack_of_memory(error: BaseException) -> bool:
    told = ("not enough memory", "can't allocate memory", "out of memory")
    return isinstance(error, RuntimeError) and any(part in str(error) for part in told)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, with the kind of error where it is not ours."""
    lines = str(error).splitlines() or [""]
    return (
        lines[0][:300] if isinstance(error, NlpCapsuleError) else f"{type(error).__name__}: {lines[0][:300]}"
    )
