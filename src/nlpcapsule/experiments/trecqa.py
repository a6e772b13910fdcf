"""TREC QA: rankers trained on train-all, selected on 150 of its questions, reported on both dev versions."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nlpcapsule.config import Config
from nlpcapsule.errors import DataError
from nlpcapsule.text.documents import Question
from nlpcapsule.text.question_files import read_questions
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

SELECTED_ON = 150
SPLIT_SEED = 2019
REPORTED = ("dev-clean", "dev-raw")


def run_trecqa(
    data: Path, systems: dict[str, dict[str, Any]], seeds: Sequence[int]
) -> tuple[dict[str, Any], str]:
    """Trains every system with every seed.

    Args:
        data: The folder with `trecqa/` and `vectors/`.
        systems: System → {"model": name, "settings": settings}.
        seeds: The seeds.

    Returns:
        System → figures over seeds, and the data's fingerprint.
    """
    folder = data / "trecqa"
    if not folder.is_dir():
        raise DataError("expected a folder that holds trecqa/", data)
    questions = list(read_questions(folder / "train-all.tsv.gz"))
    chosen = set(np.random.default_rng(SPLIT_SEED).permutation(len(questions))[:SELECTED_ON].tolist())
    train = [question for index, question in enumerate(questions) if index not in chosen]
    select = [question for index, question in enumerate(questions) if index in chosen]
    report = {part: list(read_questions(folder / f"{part}.tsv.gz")) for part in REPORTED}
    vectors = str(data / "vectors" / "glove.6B.100d.trimmed.txt.gz")
    results: dict[str, Any] = {}
    for name, system in systems.items():
        runs = []
        for seed in seeds:
            settings = {"vectors": vectors, **system["settings"], "training.seed": seed}
            runs.append(
                _run(Config.build("answers", system["model"], overrides=settings), train, select, report)
            )
        results[name] = {"runs": runs, "mean": _means(runs)}
    return results, _fingerprint([*train, *select, *report["dev-raw"], *report["dev-clean"]])


def _run(
    config: Config, train: list[Question], select: list[Question], report: dict[str, list[Question]]
) -> dict[str, Any]:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, TrainingProgress() as progress:
        prepared = prepare_answers(train, select, config)
        model = fit_answers(prepared, config, RunFolder(Path(folder)), progress)
    seconds = time.perf_counter() - started
    figures = {part: model.evaluate(questions) for part, questions in report.items()}
    settings = config.model_dump(mode="json")
    settings["text"]["vectors"] = "GloVe 6B 100-d"  # the file's place is this machine's own
    return {
        "seed": config.training.seed,
        "selected on": model.facts["dev"],
        "report": figures,
        "training seconds": round(seconds, 1),
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "config": settings,
    }


def _means(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    return {
        part: {
            name: float(np.mean([run["report"][part][name] for run in runs]))
            for name in runs[0]["report"][part]
        }
        for part in REPORTED
    }


def _fingerprint(questions: list[Question]) -> str:
    digest = hashlib.sha256()
    for question in questions:
        digest.update(question.text.encode())
        for candidate in question.candidates:
            digest.update(f"{candidate.label}{candidate.text}".encode())
    return digest.hexdigest()[:16]
