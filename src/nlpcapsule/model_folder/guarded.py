"""Read the parts of a model folder, and turn whatever a damaged one raises into one kind of error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.errors import DataError, MissingExtraError, ModelFolderError, NlpCapsuleError, out_of_memory
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.model_folder.checks import check_label_rows
from nlpcapsule.model_folder.manifest import FUSION, LEXICAL, MANIFEST, ModelFiles, model_place
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.fusion import Fusion
from nlpcapsule.strict_json import read_text

Model = TypeVar("Model")


def load_guarded(folder: Path, read: Callable[[Path], Model], version: int | None = None) -> Model:
    """Read and check a model, once more if another process saved one meanwhile.

    `read` gets the folder of the version, by default the current one. A rejected folder is a
    ModelFolderError; a MissingExtraError passes through.
    """
    before = _manifest_of(folder, version)
    try:
        return _load(model_place(folder, version), folder, read)
    except ModelFolderError:
        if _manifest_of(folder, version) == before:
            raise
    return _load(model_place(folder, version), folder, read)  # files of both models were read


def _load(place: Path, folder: Path, read: Callable[[Path], Model]) -> Model:
    try:
        return read(place)
    except MissingExtraError:
        raise
    except ModelFolderError as error:
        if str(place) in str(error):
            raise
        raise _do_not_fit(folder, str(error)) from error
    except Exception as error:  # any error of a damaged file means that the folder cannot be used
        if out_of_memory(error) is not None:
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


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, with the kind of error where it is not ours."""
    line = (str(error).splitlines() or [""])[0][:300]
    return line if isinstance(error, NlpCapsuleError) else f"{type(error).__name__}: {line}"


def read_labels(files: ModelFiles) -> LabelVocabulary:
    """Return the labels of a model."""
    check_label_rows(files.json("labels.json"))
    return LabelVocabulary.from_json(files.text("labels.json"))


def read_evidence(files: ModelFiles, facts: ModelFacts) -> tuple[FittedEvidence, Fusion] | None:
    """Return the lexical system and the fusion weights of a hybrid; None for other models."""
    if (FUSION in files) != (facts.lexical is not None):
        raise ModelFolderError(f"{FUSION} and the lexical system that facts.json names do not come together")
    if facts.lexical is None:
        return None
    fusion = Fusion.from_json(files.json(FUSION))
    evidence = FittedEvidence.load(facts.lexical, files.folder / LEXICAL)
    files.use_lexical(evidence.files)
    return evidence, fusion
