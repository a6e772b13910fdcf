"""The base class of the estimators: parameters, training, saving and loading."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError, ModelFolderError
from nlpcapsule.hugging_face import HubMethods
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

_FILES = "model_files"  # in a pickle, in place of the model

ModelType = TypeVar("ModelType", LabelModel, AnswerModel)


class CapsuleEstimator(HubMethods, BaseEstimator, Generic[ModelType]):
    """Base class of both estimators: parameters, saving and loading."""

    _task: ClassVar[str]

    def __init__(
        self,
        model: str | None = None,
        *,
        epochs: int | None = None,
        seed: int = 1,
        settings: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.seed = seed
        self.settings = settings
        self.verbose = verbose

    def save(self, folder: str | Path) -> None:
        """Save a model folder that the command line and `load` can read, replacing an earlier model."""
        save_model(self._fitted(), Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a model folder."""
        return cls._of_task(load_model(folder), folder)

    @classmethod
    def _of_task(cls, model: LabelModel | AnswerModel, source: str | Path) -> Self:
        if model.config.task != cls._task:
            other = "AnswerRanker" if cls._task == "labels" else "CapsuleClassifier"
            raise ModelFolderError(f"{source} ranks {model.config.task}: open it with {other}.load")
        return cls._holding(model)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: parameters, and the files of the model folder if fitted.

        Some systems cannot be pickled, and later versions can read the folder, too.
        """
        state = {**super().__getstate__()}
        model = state.pop("model_", None)
        if model is not None:
            with tempfile.TemporaryDirectory() as folder:
                save_model(model, Path(folder) / "model")
                files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
                state[_FILES] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {**state}
        files = state.pop(_FILES, None)
        super().__setstate__(state)
        if files is not None:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in files.items():
                    path = Path(folder) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                model: Any = load_model(Path(folder) / "model")
                self.model_ = model

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is texts, not a matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    @classmethod
    def _holding(cls, model: LabelModel | AnswerModel) -> Self:
        """Create an estimator around a trained model, with the parameters of its configuration."""
        config = model.config
        settings = {
            f"{section}.{name}": value
            for section in Config.SECTIONS
            for name, value in getattr(config, section).model_dump().items()
            if name not in ("name", "seed", "epochs")
        }
        training = config.training
        estimator = cls(config.model.name, epochs=training.epochs, seed=training.seed, settings=settings)
        estimator.model_ = model
        return estimator

    def _config(self) -> Config:
        settings = self.settings or {}
        if {"seed", "training.seed"} & settings.keys():
            raise ConfigError(
                "the seed is a parameter of its own: give it as seed=…, and leave it out of `settings`"
            )
        epochs = {} if self.epochs is None else {"training.epochs": self.epochs}
        overrides = {**settings, "training.seed": self.seed, **epochs}
        return Config.build(self._task, self.model, overrides=overrides)

    def _train(self, prepare: Callable[[Config], Any], fit: Callable[..., Any]) -> Self:
        """Prepare data and fit a model to them; its checkpoints are temporary."""
        config = self._config()
        with tempfile.TemporaryDirectory() as folder, TrainingProgress(not self.verbose) as progress:
            self.model_ = fit(prepare(config), config, RunFolder(Path(folder)), progress)
        return self

    def _fitted(self) -> ModelType:
        if not hasattr(self, "model_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted yet: call fit, or open one with load")
        return self.model_
