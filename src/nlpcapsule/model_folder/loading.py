"""Load a model folder that may be damaged, inconsistent or malicious."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn
from torch.overrides import TorchFunctionMode

from nlpcapsule.config import Config
from nlpcapsule.config.checks import check_values
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.encoders.transformer import TRANSFORMER_FILE
from nlpcapsule.encoders.transformer_config import loading_saved_model
from nlpcapsule.errors import ConfigError, ModelFolderError
from nlpcapsule.lexical.ranker import LexicalSettings
from nlpcapsule.model_folder.checks import check_model
from nlpcapsule.model_folder.guarded import first_line, load_guarded, read_evidence, read_labels
from nlpcapsule.model_folder.manifest import LEXICAL, ModelFiles, checked_files
from nlpcapsule.networks.build import build_network
from nlpcapsule.scoring.build import hybrid_scorer, network_scorer, nominator_config
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.lexical_scorer import LexicalScorer
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.strict_json import parse_json

NETWORK, NOMINATOR = "network.safetensors", "nominator.safetensors"
_SPARE_NUMBERS = 2**24  # numbers in tensors that are not weights: masks, positions
_COPIES = 8  # maximum copies of a weight while a network is built
_MAKES_TENSORS = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye}


def load_model(
    folder: str | Path, device: str | None = None, version: int | None = None
) -> LabelModel | AnswerModel:
    """Load a model folder; raise `ModelFolderError` if it is incomplete, damaged or of a newer format.

    Nothing is downloaded, and no code of the folder runs. The device is by default a GPU, if there is one,
    and the version is the current one.
    """

    def read(place: Path) -> LabelModel | AnswerModel:
        files = checked_files(place)
        with loading_saved_model():
            model = _read(files, device or ("cuda" if torch.cuda.is_available() else "cpu"))
            files.refuse_unused()
            check_model(model)
        return model

    return load_guarded(Path(folder), read, version)


def _read(files: ModelFiles, device: str) -> LabelModel | AnswerModel:
    for name in ("config.json", "tokenizer.json"):
        parse_json(files.text(name), name)
    config = Config.from_json(files.text("config.json"))
    try:
        check_values(config)  # which could take excessive time or memory
    except ConfigError as error:
        raise ModelFolderError(f"config.json: {error}") from None
    tokenizer = WordTokenizer.from_json(files.text("tokenizer.json"))
    facts = ModelFacts.from_json(files.json("facts.json"))
    # Otherwise a network would look for its transformer at the path, or the hub id, that the folder names.
    transformer = files.json(TRANSFORMER_FILE) if config.transformer is not None else None
    labels = read_labels(files) if config.task == "labels" else None

    def network(name: str, sized: Config, transformer: Any = None) -> nn.Module:
        sizes = (tokenizer.size, tokenizer.padding_id, 0 if labels is None else len(labels))
        return _network(
            lambda: build_network(sized, *sizes, transformer=transformer), files.path(name), device
        )

    sized = config  # with the word vector size of the weights
    if facts.embedding_size:
        sized = config.with_network(config.network.with_word_vector_size(facts.embedding_size))
    if labels is None:
        return AnswerModel(config, tokenizer, network(NETWORK, sized, transformer), facts)
    if isinstance(config.model, LexicalSettings):
        ranker = config.model.ranker.load(config.model, files.folder / LEXICAL)
        files.use_lexical(ranker.files)
        return LabelModel(config, tokenizer, labels, LexicalScorer(ranker, len(labels)), facts)
    main = network(NETWORK, sized, transformer)
    nominator = network(NOMINATOR, nominator_config(sized)) if NOMINATOR in files else None
    evidence = read_evidence(files, facts)
    if evidence is None:
        scorer = network_scorer(config, tokenizer, main, nominator)
        return LabelModel(config, tokenizer, labels, scorer, facts)
    scorer = hybrid_scorer(config, tokenizer, labels, main, *evidence)
    return LabelModel(config, tokenizer, labels, scorer, facts)


def _network(build: Callable[[], nn.Module], path: Path, device: str) -> nn.Module:
    """Build a network with the weights of a file, using little more memory than the weights."""
    try:
        with safe_open(path, framework="pt") as file:
            keys = list(file.keys())
            found = {_name(key): file.get_slice(key).get_shape() for key in keys}
        if len(found) < len(keys):
            raise _other_weights(path, "some have both their current name and an earlier one")
        with _BoundedMemory(sum(map(math.prod, found.values())), path):
            network = build()
        expected = {name: list(tensor.shape) for name, tensor in network.state_dict().items()}
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                raise _other_weights(path, f"{name}: {found.get(name)} and not {expected.get(name)}")
        weights = {_name(key): tensor for key, tensor in load_file(path).items()}
        for name, tensor in network.state_dict().items():  # torch would convert them silently
            if weights[name].dtype != tensor.dtype:
                raise _other_weights(path, f"{name}: {weights[name].dtype} and not {tensor.dtype}")
        network.load_state_dict(weights)
    except (SafetensorError, OSError) as error:
        raise _other_weights(path, first_line(error)) from None
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ModelFolderError(f"{path}: {name} holds a number that is infinite or NaN")
    return network.to(device).eval()


def _name(key: str) -> str:
    """Return the current name of a weight; earlier versions wrote some under another."""
    return key.replace(".beside_examples.", ".with_examples.")


class _BoundedMemory(TorchFunctionMode):
    """Limit the weights that may be allocated in this block, since sizes are read from a file."""

    def __init__(self, weights: int, path: Path) -> None:
        super().__init__()
        self.path, self.most = path, weights + _SPARE_NUMBERS
        self.left = _COPIES * self.most

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if func in _MAKES_TENSORS:
            size = options.get("size", args[0] if args and isinstance(args[0], tuple | list) else args)
            count = math.prod(number for number in size if isinstance(number, int))
            self.left -= count
            if count > self.most or self.left < 0:
                raise _other_weights(self.path, "the settings ask for a far larger network")
        return func(*args, **options)


def _other_weights(path: Path, problem: str) -> ModelFolderError:
    return ModelFolderError(f"{path}: these weights do not belong to this configuration: {problem}")
