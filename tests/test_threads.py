"""Many threads may share one model: they get exactly what one thread gets."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import torch

from nlpcapsule import AnswerRanker, CapsuleClassifier, load
from nlpcapsule.sample import load_documents, load_questions

THREADS = 8
TINY = {"embedding_size": 8, "filters": 8, "capsule_size": 8, "condensed": 4, "max_tokens": 30}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "hybrid": {"settings": TINY | {"document_size": 8, "candidates": 12, "lexical": "one-vs-rest"}},
    "paper": {"model": "paper", "settings": TINY | {"candidates": 12, "routing": "adaptive-kde"}},
    "one-vs-rest": {"model": "one-vs-rest", "settings": {}},
}
DOCUMENTS = load_documents("train")[:100]
QUESTIONS = load_questions("train")[:20]


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual, so that shared state would be caught."""
    interval, threads = sys.getswitchinterval(), torch.get_num_threads()
    sys.setswitchinterval(5e-6)
    torch.set_num_threads(1)
    yield
    sys.setswitchinterval(interval)
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=[*CLASSIFIERS, "answers"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("threads") / request.param
    if request.param == "answers":
        ranker = AnswerRanker(epochs=1, settings=TINY | {"routing": "adaptive-kde"})
        marks = [[row.label for row in question.candidates] for question in QUESTIONS]
        ranker.fit([question.text for question in QUESTIONS], answers(QUESTIONS), marks).save(place)
    else:
        classifier = CapsuleClassifier(**{"epochs": 1, **CLASSIFIERS[request.param]})
        texts = [document.text for document in DOCUMENTS]
        classifier.fit(texts, [document.labels for document in DOCUMENTS]).save(place)
    return place


def answers(questions: list[Any]) -> list[list[str]]:
    return [[candidate.text for candidate in question.candidates] for question in questions]


def jobs(model: CapsuleClassifier | AnswerRanker) -> list[Callable[[], Any]]:
    """What the threads ask for: rows of different lengths, in different numbers."""
    generator = random.Random(0)
    work: list[Callable[[], Any]] = []
    for _ in range(4 * THREADS):
        if isinstance(model, AnswerRanker):
            asked = generator.sample(QUESTIONS, generator.randint(1, 4))
            texts, given = [question.text for question in asked], answers(asked)
            work += [lambda t=texts, c=given: (model.rank(t, c), model.predict(t, c))]
        else:
            texts = [document.text for document in generator.sample(DOCUMENTS, generator.randint(1, 6))]
            work += [lambda t=texts: (model.rank(t, 6), model.predict(t), model.predict_proba(t).tolist())]
    return work


def test_eight_threads_get_what_one_thread_gets(folder: Path) -> None:
    expected = [job() for job in jobs(load(folder))]
    shared = load(folder)  # a new one: what is built at first use is built by several threads
    work, barrier = jobs(shared), Barrier(THREADS)

    def run(thread: int) -> dict[int, Any]:
        barrier.wait()
        return {number: work[number]() for number in range(thread, len(work), THREADS)}

    with ThreadPoolExecutor(THREADS) as pool:
        found = {number: result for part in pool.map(run, range(THREADS)) for number, result in part.items()}
    assert [found[number] for number in range(len(work))] == expected
