"""Train and measure PECOS, which runs in another Python."""

from __future__ import annotations

from dataclasses import replace

from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.encoded_parts import EncodedParts
from nlpcapsule.compare.measuring import Measured
from nlpcapsule.compare.pecos import needed_python, run_pecos
from nlpcapsule.compare.pecos_settings import PecosSettings
from nlpcapsule.compare.run_labels import per_document, training_data


def run_peer(cell: Cell, parts: EncodedParts, python: str | None) -> Measured:
    """Train and measure PECOS.

    Args:
        cell: Its settings and seed.
        parts: The data.
        python: The Python that has libpecos; None uses the environment's.

    Returns:
        The measurement, and metrics per document (4, documents).
    """
    train = training_data(parts, cell.fraction)
    parts = replace(parts, labels=train.labels, train=train.train)
    settings = PecosSettings.model_validate(cell.settings)
    measurement, rankings, report = run_pecos(parts, settings, cell.seed, needed_python(python))
    return measurement, per_document(rankings, report)
