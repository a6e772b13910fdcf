"""Runs in a process of its own: opens damaged model folders one after another and says what came of it.

Reads a line of JSON per case from standard input, writes one per outcome to what was standard output. A case
that ends the process, or does not end, is seen by who started it.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "training")]

import numpy as np
import torch
from outcomes import NetworkUsed, refused_or_works

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.export.prediction import load_for_prediction
from nlpcapsule.model_folder import load_model
from nlpcapsule.scoring.models import AnswerModel, LabelModel

TEXTS = ["The street lamp outside our house has been dark for a week.", ""]
QUESTION = Question(TEXTS[0], (Candidate("the lamp is dark"), Candidate(TEXTS[0]), Candidate("")))
MEMORY = 2**34  # bytes of addresses: what asks for more gets a MemoryError, and the machine lives on


def open_and_rank(case: dict[str, Any]) -> None:
    rank(load_model(case["folder"], device="cpu"))
    if Path(case["folder"], "onnx").exists():
        rank(load_for_prediction(case["folder"]))


def rank(model: LabelModel | AnswerModel) -> None:
    if isinstance(model, LabelModel):
        ranked = [(row.label, row.name, row.score) for found in model.rank(TEXTS, top_k=7) for row in found]
        assert ranked, "no labels"
    else:
        ranked = [(row.answer, None, row.score) for row in model.rank([QUESTION])[0]]
        assert len(ranked) == 3, "answers are lost"
    assert np.isfinite([score for _, _, score in ranked]).all(), "scores are no numbers"
    json.dumps(ranked, ensure_ascii=False).encode()  # as it would be printed


def resume(case: dict[str, Any]) -> None:
    from tiny_runs import fit_documents

    from nlpcapsule.config import Config

    fit_documents(Path(case["folder"]), Config.model_validate(case["config"]), resume=True)


def without_network() -> None:
    def refuse(*arguments: Any, **_: Any) -> None:
        raise NetworkUsed(f"the network was used: {arguments[-1]!r}")

    socket.getaddrinfo = refuse  # type: ignore[assignment]
    connect = socket.socket.connect
    socket.socket.connect = lambda self, address: (  # type: ignore[method-assign]
        connect(self, address) if self.family == socket.AF_UNIX else refuse(address)
    )


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    without_network()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print as they like
    actions = {"open": open_and_rank, "resume": resume}
    for line in sys.stdin:
        case = json.loads(line)
        problem, message = refused_or_works(lambda case=case: actions[case["action"]](case))
        answers.write(json.dumps({"problem": problem, "refused": message}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
