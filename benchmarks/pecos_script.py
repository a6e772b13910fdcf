"""Train PECOS XR-Linear on matrices in a folder; run by a Python with libpecos, never imported here.

FOLDER/
settings.json                        seed and the settings of `PecosSettings`
features-train.npz, labels-train.npz, features-select.npz, features-report.npz      what is read
predicted-select.npz, predicted-report.npz, about.json                              what is written
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import scipy.sparse

TOP_K = 200


def main(folder: Path) -> None:
    """Train, rank the labels of both held-out parts, and write the rankings and the costs."""
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    features = scipy.sparse.load_npz(folder / "features-train.npz").tocsr()  # (N, V)
    labels = scipy.sparse.load_npz(folder / "labels-train.npz").tocsc()  # (N, n)

    started = time.perf_counter()
    embeddings = LabelEmbeddingFactory.create(labels.tocsr(), features, method="pifa")  # (n, V)
    clusters = Indexer.gen(
        embeddings,
        indexer_type="hierarchicalkmeans",
        nr_splits=settings["splits"],
        max_leaf_size=settings["largest_leaf"],
        seed=settings["seed"],
    )
    model = XLinearModel.train(
        features,
        labels,
        C=clusters,
        Cp=settings["C"],
        Cn=settings["C"],
        threshold=settings["smallest_weight"],
    )
    about: dict[str, Any] = {"training seconds": time.perf_counter() - started}

    for part in ("select", "report"):
        rows = scipy.sparse.load_npz(folder / f"features-{part}.npz").tocsr()
        started = time.perf_counter()
        predicted = model.predict(rows, only_topk=TOP_K, beam_size=settings["beam"])  # (N, n), sparse
        about[f"{part} seconds"] = time.perf_counter() - started
        scipy.sparse.save_npz(folder / f"predicted-{part}.npz", predicted.tocsr())

    with tempfile.TemporaryDirectory() as saved:
        model.save(saved)
        about["model bytes"] = sum(path.stat().st_size for path in Path(saved).rglob("*") if path.is_file())
    about["peak bytes"] = _peak_bytes()
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def _peak_bytes() -> int | None:
    """Return the peak memory of this process, if the system reports it."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return None if found is None else 1024 * int(found[1])


if __name__ == "__main__":
    from processes import end_with_parent  # copied next to this file

    end_with_parent()
    main(Path(sys.argv[1]))
