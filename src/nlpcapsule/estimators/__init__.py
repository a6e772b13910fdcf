"""Estimators with the scikit-learn interface: fit, predict, score, get_params, clone, save, load."""

from pathlib import Path

from nlpcapsule.estimators.answer_ranker import AnswerRanker
from nlpcapsule.estimators.capsule_classifier import CapsuleClassifier
from nlpcapsule.model_folder import load_model
from nlpcapsule.scoring.models import LabelModel

__all__ = ["AnswerRanker", "CapsuleClassifier", "load"]


def load(folder: str | Path) -> CapsuleClassifier | AnswerRanker:
    """Load a model folder as the estimator that fits its task."""
    model = load_model(folder)
    kind = CapsuleClassifier if isinstance(model, LabelModel) else AnswerRanker
    return kind._holding(model)
