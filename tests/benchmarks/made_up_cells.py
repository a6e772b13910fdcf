"""Finished cells that nothing was trained for."""

import json
from dataclasses import asdict

import numpy as np

from nlpcapsule.compare.record import save_per_document

DOCUMENTS = 40


def write_cell(cell, folder, level):
    """A made-up finished cell whose documents score about `level`; its scores."""
    random = np.random.default_rng([cell.seed, int(1000 * level)])
    rows = 4 if cell.kind == "labels" else 1
    scores = (random.random((rows, DOCUMENTS)) < level).astype(np.float32)
    named = dict(zip(("P@1", "P@3", "P@5", "nDCG@5"), map(float, scores.mean(axis=1)), strict=False))
    if cell.kind == "labels":
        figures = {**named, "PSP@5": level / 2, "documents": DOCUMENTS}
    else:
        mean = float(scores.mean())
        part = {"MAP": mean, "MAP 95% low": mean - 0.1, "MAP 95% high": mean + 0.1, "MRR": level}
        figures = {"dev-clean": part, "dev-raw": {**part, "MAP": mean / 2}}
    record = {
        "cell": asdict(cell),
        "figures": figures,
        "selected on": {},
        "epochs": [{"loss": 2.0}, {"loss": 1.0}],
        "training seconds": 1.5,
        "parameters": 7,
        "gpu memory GiB": None,
        "config": json.loads(cell.config.model_dump_json()),
        "data": "fingerprint",
        "hardware": "a toaster",
        "commit": "abc123",
    }
    path = folder / f"{cell.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    save_per_document(path, scores if cell.kind == "labels" else scores[0])
    return scores
