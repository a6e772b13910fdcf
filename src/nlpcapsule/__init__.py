"""nlpcapsule: capsule networks that tag text with thousands of labels and pick the best answer.

The main path, folder by folder:

    data → capsules → encoders → lexical → networks → evaluation → scoring → training

`CapsuleClassifier` and `AnswerRanker` cover the whole path; `load` opens a trained model folder.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["AnswerRanker", "CapsuleClassifier", "__version__", "load"]

if TYPE_CHECKING:
    from nlpcapsule.estimators import AnswerRanker, CapsuleClassifier, load


def __getattr__(name: str) -> Any:
    """Import the estimators, and with them torch, on first use."""
    if name in ("AnswerRanker", "CapsuleClassifier", "load"):
        from nlpcapsule import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'nlpcapsule' has no attribute {name!r}")
