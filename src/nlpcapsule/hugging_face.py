"""Exchange data and models with Hugging Face: `datasets` in, model folders to and from the hub.

Both packages are optional. Datasets are recognised by what they can do, so that none needs to be imported.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from nlpcapsule.atomic_files import write_text
from nlpcapsule.errors import DataError, MissingExtraError, NlpCapsuleError, did_you_mean, first_line
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.model_folder.card import model_card
from nlpcapsule.model_folder.manifest import CARD
from nlpcapsule.scoring.models import AnswerModel, LabelModel

README = "README.md"  # what the hub shows; it is not part of the model
_FIGURES = ("P@1", "P@5", "nDCG@5", "MAP", "MRR")


def is_dataset(value: Any) -> bool:
    """Return whether a value is of the package `datasets`, or looks like it: it has named columns."""
    return hasattr(value, "column_names") and hasattr(value, "__getitem__")


def dataset_columns(
    dataset: Any, text: str = "text", labels: str = "labels"
) -> tuple[list[str], list[list[str]]]:
    """Return the texts and label lists of a dataset.

    Labels may be names, or numbers of a `ClassLabel` feature, alone or in lists.

    Args:
        dataset: A `datasets.Dataset`, one part of a `DatasetDict`.
        text: Its column of texts.
        labels: Its column of labels.

    Raises:
        DataError: If a column is missing, or numbers have no names.
    """
    texts, rows = dataset_values(dataset, text, labels)
    names = _class_names(dataset.features[labels])
    return texts, [_label_row(row, names, labels) for row in rows]


def dataset_values(dataset: Any, *columns: str) -> tuple[list[Any], ...]:
    """Return the values of a dataset's columns.

    Raises:
        DataError: If a column is missing, or it is a dictionary of datasets.
    """
    if hasattr(dataset, "keys"):
        parts = ", ".join(map(repr, dataset.keys()))
        raise DataError(
            f"this is a dictionary of datasets ({parts})", hint="choose one, as in dataset['train']"
        )
    for name in columns:
        if name not in dataset.column_names:
            raise DataError(f"the dataset has no column {name!r}; {did_you_mean(name, dataset.column_names)}")
    return tuple(list(dataset[name]) for name in columns)


def _class_names(feature: Any) -> Sequence[str] | None:
    """Return the names of a `ClassLabel`, alone or inside of a list; None for other features."""
    if isinstance(feature, list):
        feature = feature[0]
    return getattr(feature, "names", None) or getattr(getattr(feature, "feature", None), "names", None)


def _label_row(row: Any, names: Sequence[str] | None, column: str) -> list[str]:
    values = [] if row is None else row if isinstance(row, list | tuple) else [row]
    numbers = [value for value in values if not isinstance(value, str)]
    if numbers and names is None:
        raise DataError(
            f"the column {column!r} holds numbers such as {numbers[0]!r} without names",
            hint="cast it to a ClassLabel, or map it to strings",
        )
    for value in numbers:
        if value not in range(len(names or ())):
            raise DataError(f"the column {column!r} holds {value!r}, which is no number of its ClassLabel")
    return [value if isinstance(value, str) else names[int(value)] for value in values]  # type: ignore[index]


def save_pretrained(model: LabelModel | AnswerModel, folder: str | Path) -> None:
    """Save a model folder with a README.md whose front matter the hub reads.

    Args:
        model: The model.
        folder: A new or empty folder, or one with a model, which is replaced.
    """
    save_model(model, Path(folder))
    write_text(Path(folder) / README, f"---\n{_front_matter(model)}---\n\n{model_card(model)}")


def _front_matter(model: LabelModel | AnswerModel) -> str:
    """Return YAML; JSON values are valid in it."""
    is_labels = isinstance(model, LabelModel)
    rows: dict[str, Any] = {
        "library_name": "nlpcapsule",
        "pipeline_tag": "text-classification" if is_labels else "text-ranking",
        "tags": ["nlpcapsule", "capsule-network", *(["multi-label"] if is_labels else ["answer-selection"])],
    }
    dev = model.facts.dev or {}
    figures = [{"type": name, "value": round(dev[name], 4)} for name in _FIGURES if name in dev]
    if figures:
        rows["model-index"] = [
            {
                "name": model.config.model.name,
                "results": [
                    {
                        "task": {"type": rows["pipeline_tag"]},
                        "dataset": {"name": "held-out part of the training data", "type": "private"},
                        "metrics": figures,
                    }
                ],
            }
        ]
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in rows.items())


def from_pretrained(source: str | Path, revision: str | None = None) -> LabelModel | AnswerModel:
    """Load a model folder, or download a repository of the hub and load it.

    Args:
        source: A folder, or the hub's "owner/name" if there is no such folder.
        revision: A branch, tag or commit of the hub's repository.

    Raises:
        MissingExtraError: If it must be downloaded and huggingface_hub is not installed.
        NlpCapsuleError: If the download fails.
    """
    if Path(source).exists():
        return load_model(source)
    hub = _library()
    with tempfile.TemporaryDirectory() as place:
        try:
            # Plain files: the hub's cache has links, which a model folder must not have.
            hub.snapshot_download(str(source), revision=revision, local_dir=place)
        except (hub.errors.HfHubHTTPError, hub.errors.HFValidationError, OSError, ValueError) as error:
            raise NlpCapsuleError(
                f"{source} is no folder, and cannot be downloaded: {first_line(error)}"
            ) from None
        return load_model(place)


def push_to_hub(
    model: LabelModel | AnswerModel, repository: str, private: bool = True, token: str | None = None
) -> str:
    """Upload a model to the hub and return the address of its commit.

    Args:
        model: The model.
        repository: "owner/name"; created if it does not exist.
        private: Whether a new repository is private: a hybrid holds the words of its training documents.
        token: An access token; None uses that of `huggingface-cli login`.

    Raises:
        MissingExtraError: If huggingface_hub is not installed.
    """
    api = _library().HfApi(token=token)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        save_pretrained(model, folder)
        api.create_repo(repository, private=private, exist_ok=True)
        return str(
            api.upload_folder(
                repo_id=repository, folder_path=folder, commit_message=f"Upload a model ({CARD} describes it)"
            )
        )


class HubMethods:
    """The methods of an estimator that exchange its model with the hub."""

    def save_pretrained(self, folder: str | Path) -> None:
        """Save a model folder in the layout of the Hugging Face hub, with a README.md."""
        save_pretrained(self._fitted(), folder)

    def push_to_hub(self, repository: str, private: bool = True, token: str | None = None) -> str:
        """Upload the model to the Hugging Face hub (extra `hub`); return the address of the commit."""
        return push_to_hub(self._fitted(), repository, private, token)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> Self:
        """Load a model folder, or a repository of the Hugging Face hub by its "owner/name"."""
        return cls._of_task(from_pretrained(source, revision), source)

    def _fitted(self) -> Any:
        raise NotImplementedError

    @classmethod
    def _of_task(cls, model: LabelModel | AnswerModel, source: str | Path) -> Self:
        raise NotImplementedError


def _library() -> ModuleType:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError("huggingface_hub", "hub") from None
    return huggingface_hub
