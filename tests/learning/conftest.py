from pathlib import Path

import pytest
from learned_models import train_small_hybrid

from nlpcapsule.model_folder import load_model
from nlpcapsule.scoring.models import LabelModel


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small hybrid; copy it before changing it."""
    folder = tmp_path_factory.mktemp("learning") / "model"
    train_small_hybrid(folder)
    return folder


@pytest.fixture
def model(trained: Path) -> LabelModel:
    loaded = load_model(trained)
    assert isinstance(loaded, LabelModel)
    return loaded
