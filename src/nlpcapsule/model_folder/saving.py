"""Save a model folder that holds a complete model at every moment: the earlier one, then the new one.

A model is written into a subfolder of the model folder and synced. Renaming the subfolder makes it the
current model, which is read from then on. Its files then replace those of the earlier model. If the process
is killed meanwhile, nothing is lost: the next save, or resumed run, finishes the move.
"""

import json
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from nlpcapsule.atomic_files import atomic_path, sync, sync_tree, write_text
from nlpcapsule.errors import ModelFolderError, NlpCapsuleError
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.lexical.ranker import LexicalRanker
from nlpcapsule.model_folder.card import model_card
from nlpcapsule.model_folder.current import VERSIONS
from nlpcapsule.model_folder.manifest import (
    CARD,
    FUSION,
    LEXICAL,
    MANIFEST,
    SAVED,
    SAVING,
    checked_files,
    is_own_folder,
    listed_names,
    write_manifest,
)
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.lexical_scorer import LexicalScorer
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.scoring.nominated_scorer import NominatedScorer


def save_model(model: LabelModel | AnswerModel, folder: str | Path) -> None:
    """Save a model folder, replacing its earlier model, if any.

    The earlier model stays until the new one is complete. The folder is new or empty, or one with a model or
    a training; one with other files is rejected.
    """
    folder = Path(folder)
    _refuse_other_files(folder)
    finish_interrupted_save(folder)
    _stage(folder / SAVING, lambda staged: _write_files(model, staged))
    _replace(folder)


def _replace(folder: Path) -> None:
    """Make a staged model the folder's model."""
    try:
        (folder / SAVING).rename(folder / SAVED)
        sync(folder)
        _publish(folder)
    except OSError as error:
        raise ModelFolderError(
            f"{folder}: the model is saved, but its files are not in their places: "
            f"{error.strerror or error}; fix that and save it again"
        ) from None


def add_files(folder: Path, place: str, write: Callable[[Path], object]) -> None:
    """Add a subfolder to a saved model, replacing an earlier one of this name.

    `write` writes files into an empty folder. The model is complete at every moment, without or with them.
    """
    finish_interrupted_save(folder)
    kept = [name for name in checked_files(folder).names if not name.startswith(f"{place}/")]

    def copy_and_add(staged: Path) -> None:
        for name in kept:
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            _put(folder / name, staged / name)
        (staged / place).mkdir()
        write(staged / place)
        write_manifest(staged, [*kept, *_files_below(staged / place, staged)])

    _stage(folder / SAVING, copy_and_add)
    _replace(folder)


def _files_below(place: Path, folder: Path) -> list[str]:
    """Return the files in a place, by their names relative to a folder above it."""
    return [path.relative_to(folder).as_posix() for path in place.rglob("*") if path.is_file()]


def finish_interrupted_save(folder: Path) -> None:
    """Finish a save that was interrupted after its model was complete; remove an incomplete one."""
    try:
        for name in (SAVED, SAVING):
            if (folder / name).is_symlink():  # not ours: it may lead anywhere
                (folder / name).unlink()
        if (folder / SAVED).is_dir():
            _publish(folder)
        if (folder / SAVING).is_dir():
            shutil.rmtree(folder / SAVING)
    except OSError as error:
        raise ModelFolderError(
            f"{folder}: saving was cut short, and cannot be finished: {error.strerror or error}"
        ) from None


def weights_of(network: nn.Module) -> dict[str, torch.Tensor]:
    """Return a network's weights, on the CPU."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}


def _refuse_other_files(folder: Path) -> None:
    """Reject a folder with files that belong to neither a model nor a training."""
    if folder.exists() and not folder.is_dir():
        raise ModelFolderError(f"{folder} is a file: expected the name of a folder to write the model into")
    if (folder / VERSIONS).exists():
        raise ModelFolderError(f"{folder} holds several versions of a model; save into another folder")
    is_ours = (
        listed_names(folder) is not None
        or is_own_folder(folder / SAVED)
        or is_own_folder(folder / SAVING)
        or (folder / "checkpoint" / "run.json").exists()
    )
    if folder.exists() and not is_ours and any(folder.iterdir()):
        raise ModelFolderError(f"{folder} holds other files and no model; save into another folder")


def _stage(staged: Path, write: Callable[[Path], None]) -> None:
    """Write all files of a model into a separate folder, which is removed on failure."""
    try:
        staged.mkdir(parents=True)
        write(staged)
        sync_tree(staged)
    except BaseException as error:
        shutil.rmtree(staged, ignore_errors=True)
        if not isinstance(error, NlpCapsuleError | OSError | SafetensorError | MemoryError):
            raise
        raise ModelFolderError(
            f"{staged.parent}: the model cannot be saved: {error}; nothing in it has changed"
        ) from None


def _publish(folder: Path) -> None:
    """Move the files of a saved model to the places of the earlier one's."""
    saved = folder / SAVED
    names = listed_names(saved)
    if names is not None:  # otherwise it was removed in part: its files are already in place
        earlier = listed_names(folder) or []
        (folder / MANIFEST).unlink(missing_ok=True)
        _remove([name for name in earlier if name not in names], folder)
        for name in [*names, MANIFEST]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            _put(saved / name, folder / name)
        for place in {(folder / name).parent for name in names} | {folder}:
            sync(place)
        shutil.rmtree(folder / SAVING, ignore_errors=True)
        saved.rename(folder / SAVING)
        sync(folder)
        saved = folder / SAVING
    shutil.rmtree(saved, ignore_errors=True)


def _put(source: Path, target: Path) -> None:
    """Link a file to another path, replacing what is there."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        try:
            os.link(source, temporary)
        except OSError:  # a file system without links
            shutil.copyfile(source, temporary)
            sync(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _remove(names: list[str], folder: Path) -> None:
    """Remove files of a folder, and subfolders that are empty without them."""
    top = folder.resolve()
    paths = [folder / name for name in names if (folder / name).parent.resolve().is_relative_to(top)]
    for path in paths:
        path.unlink(missing_ok=True)
    places = {parent for path in paths for parent in path.parents if folder in parent.parents}
    for place in sorted(places, reverse=True):  # inner folders first
        with suppress(OSError):  # it contains other files, or is gone
            place.rmdir()


def _write_files(model: LabelModel | AnswerModel, folder: Path) -> None:
    """Write the files, the manifest last."""
    texts = {
        "config.json": model.config.model_dump_json(indent=2) + "\n",
        "tokenizer.json": model.tokenizer.to_json(),
        "facts.json": json.dumps(model.facts.to_json(), indent=2, ensure_ascii=False) + "\n",
        CARD: model_card(model),
    }
    networks = {} if model.network is None else {"network.safetensors": model.network}
    for module in () if model.network is None else model.network.modules():
        texts |= getattr(module, "saved_texts", {})
    lexical: LexicalRanker | FittedEvidence | None = None
    if isinstance(model, LabelModel):
        texts["labels.json"] = model.labels.to_json()
        match model.scorer:
            case LexicalScorer(ranker=ranker):
                lexical = ranker
            case HybridScorer(lexical=evidence, fusion=fusion):
                lexical, texts[FUSION] = evidence, json.dumps(fusion.to_json(), indent=2) + "\n"
            case NominatedScorer(nominator=nominator):
                networks["nominator.safetensors"] = nominator.network
    for name, text in texts.items():
        write_text(folder / name, text)
    for name, network in networks.items():
        with atomic_path(folder / name) as temporary:
            save_file(weights_of(network), temporary)
    names = [*texts, *networks]
    if lexical is not None:
        (folder / LEXICAL).mkdir()
        lexical.save(folder / LEXICAL)
        names += _files_below(folder / LEXICAL, folder)
    write_manifest(folder, names)
