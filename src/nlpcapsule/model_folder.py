"""A trained model on disk.

    MODEL/
      config.json           the configuration
      tokenizer.json        the tokenizer
      labels.json           label names and counts                   (label models)
      network.safetensors   the weights                              (networks)
      lexical/              a lexical system's own files             (where one ranks or nominates)
      fusion.json           how its score joins the network's        (where there are both)
      nominator.safetensors the candidate generator's weights        (where there is one)
      transformer.json      a pretrained transformer's configuration (where there is one)
      facts.json            threshold, dev figures, data fingerprint
      manifest.json         format version and a checksum per file; written last, so it vouches for the rest

No pickle anywhere: opening a model folder never runs code from it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from nlpcapsule import __version__
from nlpcapsule.atomic_files import atomic_path, write_text
from nlpcapsule.config import Config
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.encoders.transformer import TRANSFORMER_FILE, TransformerEncoder
from nlpcapsule.errors import ConfigError, DataError, ModelFolderError, NlpCapsuleError
from nlpcapsule.lexical.build import lexical_system
from nlpcapsule.lexical.evidence import FittedEvidence, WordEvidence
from nlpcapsule.lexical.ranker import LexicalRanker, LexicalSettings
from nlpcapsule.networks.build import build_answer_network, build_label_network
from nlpcapsule.networks.kim_cnn import KimCNNSettings
from nlpcapsule.scoring.build import hybrid_parts, network_scorer
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.fusion import Fusion
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.lexical_scorer import LexicalScorer
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.scoring.nominated_scorer import NominatedScorer
from nlpcapsule.scoring.scorer import LabelScorer

FORMAT_VERSION = 2
MANIFEST = "manifest.json"
LEXICAL = "lexical"
FUSION = "fusion.json"
_STAGED = ".nlpcapsule-saving"  # inside the model folder, so that its files need only change their names


def save_model(model: LabelModel | AnswerModel, folder: Path) -> None:
    """Writes a model folder, in place of the model it holds if it holds one.

    All files are written apart before one that is there is touched: a full disk costs nothing. Files that are
    not the earlier model's stay.

    Args:
        model: The model.
        folder: A new or empty folder, one with a model, or that of a training.

    Raises:
        ModelFolderError: It holds something else, or cannot be written into.
    """
    earlier = _earlier_files(folder)
    staged = folder / _STAGED
    names = _stage(model, staged)
    try:
        _remove(earlier, folder)
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in [*names, MANIFEST]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (staged / name).replace(folder / name)
    except OSError as error:
        raise ModelFolderError(
            f"{folder}: the model is saved in part only: {error}; fix that and save it again"
        ) from None
    shutil.rmtree(staged, ignore_errors=True)


def load_model(folder: str | Path, device: str | None = None) -> LabelModel | AnswerModel:
    """Reads a model folder, refusing one that is incomplete, damaged or of a newer format.

    Args:
        folder: The folder.
        device: "cpu", "cuda", …; None takes a GPU if there is one.
    """
    folder = Path(folder)
    manifest = checked_manifest(folder)
    try:
        config = Config.from_json((folder / "config.json").read_text(encoding="utf-8"))
        tokenizer = WordTokenizer.from_json((folder / "tokenizer.json").read_text(encoding="utf-8"))
        facts = _read_facts(folder)
        place = device or ("cuda" if torch.cuda.is_available() else "cpu")
        if config.task == "answers":
            network = build_answer_network(
                _plain(config, facts),
                tokenizer.size,
                tokenizer.padding_id,
                transformer=_transformer(folder, manifest),
            )
            _load_weights(network, folder / "network.safetensors")
            return AnswerModel(config, tokenizer, network.to(place).eval(), facts)
        labels = LabelVocabulary.from_json((folder / "labels.json").read_text(encoding="utf-8"))
        if isinstance(config.model, LexicalSettings):
            ranker = lexical_system(config.model).load(config.model, folder / LEXICAL)
            return LabelModel(config, tokenizer, labels, LexicalScorer(ranker, len(labels)), facts)
        network = build_label_network(
            _plain(config, facts),
            tokenizer.size,
            len(labels),
            tokenizer.padding_id,
            transformer=_transformer(folder, manifest),
        )
        _load_weights(network, folder / "network.safetensors")
        network.to(place).eval()
        nominator = None
        if "nominator.safetensors" in manifest["sha256"]:
            beside = nominator_config(_plain(config, facts))
            nominator = build_label_network(beside, tokenizer.size, len(labels), tokenizer.padding_id)
            _load_weights(nominator, folder / "nominator.safetensors")
            nominator.to(place).eval()
        scorer = network_scorer(config, tokenizer, network, nominator)
        if FUSION in manifest["sha256"]:
            fusion = Fusion.from_json(json.loads((folder / FUSION).read_text(encoding="utf-8")))
            if facts.lexical is None:
                raise ModelFolderError(f"{folder}: facts.json does not name the lexical system")
            lexical = FittedEvidence.load(facts.lexical, folder / LEXICAL)
            parts = hybrid_parts(config, tokenizer, labels, network, lexical)
            scorer = HybridScorer(parts, fusion)
        return LabelModel(config, tokenizer, labels, scorer, facts)
    except (ConfigError, DataError, KeyError, OSError, TypeError, ValueError) as error:
        raise ModelFolderError(f"{folder}: its files do not fit together: {error}") from None


def checked_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder whose every file is there and unchanged."""
    if not folder.exists():
        raise ModelFolderError(f"{folder}: there is no such model folder")
    if not folder.is_dir():
        raise ModelFolderError(
            f"{folder} is a file: expected a model folder, as `nlpcapsule train` writes it"
        )
    if not (folder / MANIFEST).exists():
        if (folder / "checkpoint").is_dir():
            raise ModelFolderError(
                f"{folder}: training has not finished; run the same train command again with --resume"
            )
        raise ModelFolderError(f"{folder} is not a model folder: it has no {MANIFEST}")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version, checksums = manifest["format_version"], dict(manifest["sha256"])
    except (ValueError, KeyError, TypeError):
        raise ModelFolderError(f"{folder / MANIFEST} is damaged; restore the folder or train again") from None
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFolderError(
            f"{folder} has format version {version}, written by nlpcapsule {manifest.get('nlpcapsule')}; "
            f"this is {__version__}, which reads up to version {FORMAT_VERSION}: upgrade with "
            "`pip install --upgrade nlpcapsule`"
        )
    if version < FORMAT_VERSION:
        raise ModelFolderError(
            f"{folder} has format version {version}, written by nlpcapsule {manifest.get('nlpcapsule')}; "
            f"this is {__version__}, which reads version {FORMAT_VERSION}: train the model again"
        )
    for name, expected in checksums.items():
        path = folder / name
        if not path.is_file():
            raise ModelFolderError(f"{folder}: the file {name} is missing; restore it or train again")
        if _checksum(path) != expected:
            raise ModelFolderError(
                f"{path} is not as it was written (truncated or edited); restore it or train again"
            )
    return manifest


def _earlier_files(folder: Path) -> list[Path]:
    """The files of the model in a folder, which another may replace; a folder with other files is refused."""
    if folder.exists() and not folder.is_dir():
        raise ModelFolderError(f"{folder} is a file: expected the name of a folder to write the model into")
    names = _listed_names(folder)
    if names is None:  # a save may have been cut short while files changed places
        names = _listed_names(folder / _STAGED)
    if names is not None:
        paths, top = (folder / name for name in names), folder.resolve()
        return [path for path in paths if path.is_file() and path.parent.resolve().is_relative_to(top)]
    is_ours = (folder / _STAGED).exists() or (folder / "checkpoint" / "run.json").exists()
    if folder.exists() and not is_ours and any(folder.iterdir()):
        raise ModelFolderError(f"{folder} holds other files and no model; save into another folder")
    return []


def _listed_names(folder: Path) -> list[str] | None:
    """The names in a folder's manifest; None where there is none, or not one of ours."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(manifest, dict) and "format_version" in manifest
    return list(manifest["sha256"]) if is_ours and isinstance(manifest.get("sha256"), dict) else None


def _stage(model: LabelModel | AnswerModel, staged: Path) -> list[str]:
    """Writes all files of a model into a folder of their own, which is removed again if that fails."""
    try:
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        return _write_files(model, staged)
    except BaseException as error:
        shutil.rmtree(staged, ignore_errors=True)
        if not isinstance(error, NlpCapsuleError | OSError | SafetensorError):
            raise
        raise ModelFolderError(
            f"{staged.parent}: the model cannot be saved: {error}; nothing in it has changed"
        ) from None


def _write_files(model: LabelModel | AnswerModel, folder: Path) -> list[str]:
    """Writes the files, the manifest last, and returns the names of those it vouches for."""
    texts = {
        "config.json": model.config.model_dump_json(indent=2) + "\n",
        "tokenizer.json": model.tokenizer.to_json(),
        "facts.json": json.dumps(model.facts.to_json(), indent=2, ensure_ascii=False) + "\n",
    }
    networks = {} if model.network is None else {"network.safetensors": model.network}
    if isinstance(model, LabelModel):
        texts["labels.json"] = model.labels.to_json()
        if isinstance(model.scorer, HybridScorer):
            texts[FUSION] = json.dumps(model.scorer.fusion.to_json(), indent=2) + "\n"
        if isinstance(model.scorer, NominatedScorer):
            networks["nominator.safetensors"] = model.scorer.nominator.network
    for module in () if model.network is None else model.network.modules():
        if isinstance(module, TransformerEncoder):
            texts[TRANSFORMER_FILE] = module.to_json() + "\n"
    for name, text in texts.items():
        write_text(folder / name, text)
    for name, network in networks.items():
        with atomic_path(folder / name) as temporary:
            save_file(weights_of(network), temporary)
    names = [*texts, *networks]
    if isinstance(model, LabelModel):
        names += _save_lexical(model.scorer, folder)
    checksums = {name: _checksum(folder / name) for name in sorted(names)}
    manifest = {"format_version": FORMAT_VERSION, "nlpcapsule": __version__, "sha256": checksums}
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    return names


def _save_lexical(scorer: LabelScorer, folder: Path) -> list[str]:
    """Write the files of a lexical system, if any, and return their names, relative to the model folder."""
    lexical: LexicalRanker | WordEvidence
    match scorer:
        case LexicalScorer():
            lexical = scorer.ranker
        case HybridScorer():
            lexical = scorer.lexical
        case _:
            return []
    place = folder / LEXICAL
    place.mkdir()
    lexical.save(place)
    return [path.relative_to(folder).as_posix() for path in place.rglob("*") if path.is_file()]


def _remove(paths: list[Path], folder: Path) -> None:
    """Removes files below a folder, and the folders that are empty without them."""
    for path in paths:
        path.unlink(missing_ok=True)
    places = {parent for path in paths for parent in path.parents if folder in parent.parents}
    for place in sorted(places, reverse=True):  # the inner ones first
        with suppress(OSError):  # something else is in it, or it is gone
            place.rmdir()


def nominator_config(config: Config) -> Config:
    """The Kim-CNN that is trained beside a network on the same words, all labels at once."""
    usual = KimCNNSettings().embedding_size  # a pretrained transformer has no word vectors
    return config.model_copy(
        update={
            "model": KimCNNSettings(embedding_size=config.network.word_vector_size or usual),
            "training": config.training.model_copy(update={"negatives": "all", "loss": "bce"}),
            "inference": config.inference.model_copy(update={"candidates": 0}),
        }
    )


def weights_of(network: nn.Module) -> dict[str, torch.Tensor]:
    """A network's weights, on the CPU."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}


def _read_facts(folder: Path) -> ModelFacts:
    record = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    try:
        return ModelFacts.from_json(record)
    except ModelFolderError as error:
        raise ModelFolderError(f"{folder}: {error}") from None


def _plain(config: Config, facts: ModelFacts) -> Config:
    """Return the configuration with the word vectors' size that the weights have."""
    if not facts.embedding_size:
        return config
    return config.with_network(config.network.with_word_vector_size(facts.embedding_size))


def _transformer(folder: Path, manifest: dict[str, Any]) -> dict[str, Any] | None:
    """The configuration of the pretrained transformer that a model was made from, if it was."""
    if TRANSFORMER_FILE not in manifest["sha256"]:
        return None
    return json.loads((folder / TRANSFORMER_FILE).read_text(encoding="utf-8"))


def _load_weights(network: nn.Module, path: Path) -> None:
    try:
        network.load_state_dict(load_file(path))
    except (SafetensorError, RuntimeError, OSError) as error:
        first = str(error).splitlines()[0]
        raise ModelFolderError(
            f"{path}: these weights do not belong to this configuration: {first}"
        ) from None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
