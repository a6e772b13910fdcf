"""Put a running service under load: latency, throughput, errors, and acknowledged feedback that was lost."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np

from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.learning.store import FeedbackStore
from nlpcapsule.processes import module_command
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.service.batching import Batcher

FEEDBACK_EVERY, EXPLAIN_EVERY = 5, 50  # requests of a caller
BATCH = 32
_WARM_UP, _REPEATS = 3, 60  # turns
_TIMEOUT = 60.0  # seconds until a request counts as failed


@dataclass
class Answers:
    """What callers got.

    Attributes:
        seconds: Path → seconds of each request that was answered.
        errors: Messages of requests that were not.
        acknowledged: Numbers of stored feedback.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)


def load_test(
    folder: Path, texts: Sequence[str], callers: int, seconds: float, workers: int
) -> dict[str, Any]:
    """Serve a model in a process of its own and call it.

    Args:
        folder: The model folder.
        texts: Texts to send.
        callers: Callers at a time; each sends its next request when the last one is answered.
        seconds: How long.
        workers: Processes of the service.
    """
    with tempfile.TemporaryDirectory() as place:
        feedback = Path(place) / "feedback.sqlite"
        command = [*module_command("nlpcapsule"), "serve", str(folder), "--port", "0"]
        command += ["--feedback", str(feedback), "--workers", str(workers)]
        log = Path(place) / "log"
        with log.open("w") as file:
            process = subprocess.Popen(command, stderr=file, stdout=subprocess.DEVNULL)
        try:
            address = _address(process, log)
            answers, elapsed = asyncio.run(_call(address, texts, callers, seconds))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_TIMEOUT)
        with FeedbackStore(feedback) as store:
            stored = {row["row"] for row in store.export()}
    requests = sum(map(len, answers.seconds.values()))
    return {
        "callers": callers,
        "seconds": round(elapsed, 1),
        "workers": workers,
        "requests": requests,
        "requests per second": round(requests / elapsed, 1),
        "errors": len(answers.errors),
        "first errors": answers.errors[:5],
        "feedback acknowledged": len(answers.acknowledged),
        "feedback lost": len(set(answers.acknowledged) - stored),
        "latency": {path: _percentiles(found) for path, found in sorted(answers.seconds.items())},
    }


def batch_costs(model: LabelModel, texts: Sequence[str]) -> dict[str, float]:
    """Return what one document costs alone and in a batch of 32, and what the batcher adds to one alone.

    All are timed in turn, and compared within a turn: other processes slow them down alike.
    """
    batch = (list(texts) * BATCH)[:BATCH]
    batcher: Batcher[str, Any] = Batcher(lambda items: model.rank(items, 10), BATCH)
    calls: list[Callable[[], object]] = [
        lambda: model.rank(batch[:1], 10),
        lambda: model.rank(batch, 10),
        lambda: batcher.submit(batch[:1]).result(),
    ]
    turns = np.array([[_seconds(call) for call in calls] for _ in range(_WARM_UP + _REPEATS)])[_WARM_UP:]
    batcher.close()
    alone, together, waited = turns.T * [[1000], [1000 / BATCH], [1000]]
    return {
        "alone ms": round(float(np.median(alone)), 3),
        "in a batch of 32 ms": round(float(np.median(together)), 3),
        "batch / alone": round(float(np.median(together / alone)), 3),
        "added by the batcher ms": round(float(np.median(waited - alone)), 3),
    }


async def _call(address: str, texts: Sequence[str], callers: int, seconds: float) -> tuple[Answers, float]:
    answers = Answers()
    limits = httpx.Limits(max_connections=callers)
    async with httpx.AsyncClient(base_url=address, timeout=_TIMEOUT, limits=limits) as client:
        started = time.perf_counter()
        until = started + seconds
        await asyncio.gather(*(_caller(client, texts, number, until, answers) for number in range(callers)))
        return answers, time.perf_counter() - started


async def _caller(
    client: httpx.AsyncClient, texts: Sequence[str], number: int, until: float, answers: Answers
) -> None:
    turn = 0
    while time.perf_counter() < until:
        text = texts[(number * 31 + turn) % len(texts)]
        path, body = _request(text, number, turn)
        turn += 1
        started = time.perf_counter()
        try:
            response = await client.post(path, json=body)
            response.raise_for_status()
        except httpx.HTTPError as error:
            answers.errors.append(f"{path}: {error!r:.200}")
            continue
        answers.seconds.setdefault(path, []).append(time.perf_counter() - started)
        if path == "/v1/feedback":
            answers.acknowledged.append(response.json()["id"])


def _request(text: str, number: int, turn: int) -> tuple[str, dict[str, Any]]:
    """Return what a caller sends: mostly documents to label, sometimes feedback, seldom an explanation."""
    place = number + turn  # callers do not all send the same at the same time
    if place % EXPLAIN_EVERY == 0:
        return "/v1/explain", {"text": text}
    if place % FEEDBACK_EVERY == 0:
        body = {"document_id": f"{number}-{turn}", "text": text, "person": "load", "accepted": ["a"]}
        return "/v1/feedback", body
    return "/v1/labels", {"documents": [{"text": text}]}


def _address(process: subprocess.Popen, log: Path) -> str:
    """Wait until the service is ready, and return its address."""
    until = time.monotonic() + _TIMEOUT
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"http://\S+", log.read_text(encoding="utf-8"))
        if found:
            try:
                if httpx.get(f"{found[0]}/readyz", timeout=_TIMEOUT).is_success:
                    return found[0]
            except httpx.HTTPError:
                pass
        time.sleep(0.1)
    raise NlpCapsuleError(f"the service did not start: {log.read_text(encoding='utf-8')[-500:]}")


def _percentiles(seconds: list[float]) -> dict[str, float]:
    p50, p99 = np.percentile(seconds, [50, 99])
    return {"requests": len(seconds), "p50 ms": round(1000 * p50, 1), "p99 ms": round(1000 * p99, 1)}


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
