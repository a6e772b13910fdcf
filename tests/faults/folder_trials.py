"""Tries so many faults of a kind on model folders and collects what went wrong."""

from __future__ import annotations

import random
from pathlib import Path

from child import Child
from folder_faults import KINDS, copy_model
from tiny_models import TinyModels

FEWEST_REFUSED = 0.3  # of the faults: a check that refuses nothing is none


def assert_all_refused_or_working(
    models: TinyModels, child: Child, systems: str, kind: str, count: int, folder: Path
) -> None:
    """Damage models of a kind of systems, and open them.

    Args:
        models: The models.
        child: Opens them.
        systems: "lexical", "networks" or "answers".
        kind: One of `KINDS`.
        count: Faults to try.
        folder: For the copy that is damaged.
    """
    names = models.names(systems)
    folders = [models(systems, name) for name in names]
    problems, refused = [], 0
    for number in range(count):
        generator = random.Random(f"{systems} {kind} {number}")
        place = number % len(folders)
        copy = copy_model(folders[place], folder / "model")
        fault = KINDS[kind](copy, generator, folders[:place] + folders[place + 1 :])
        outcome = child.run(action="open", folder=str(copy))
        refused += outcome.refused is not None
        case = f"{kind} {number}, {names[place]}, {fault.what}"
        if outcome.problem is not None:
            problems.append(f"{case}: {outcome.problem}")
        elif fault.must_be_refused and outcome.refused is None:
            problems.append(f"{case}: it was not refused")
    assert not problems, f"{len(problems)} of {count}:\n" + "\n".join(problems)
    assert refused >= FEWEST_REFUSED * count
