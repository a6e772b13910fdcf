"""kill -9 of a service that takes feedback, and of `learn`: nothing acknowledged is lost, no model broken."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import threading
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path

import pytest
from killed_commands import PATIENCE, Commands

sys.path += [str(Path(__file__).parents[1] / "learning")]

from learned_models import TOPICS, texts, train_small_hybrid

from nlpcapsule.learning.store import FeedbackStore
from nlpcapsule.learning.versions import version_numbers
from nlpcapsule.model_folder import load_model
from nlpcapsule.model_folder.current import current_version

pytestmark = pytest.mark.slow

KILLS = 50
TINY = {"embedding_size": 8, "filters": 8, "capsule_size": 8, "document_size": 8, "epochs": 1}
CALLERS = 3


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned") / "model"
    train_small_hybrid(folder, **TINY)
    return folder


def address_in(log: Path) -> str:
    """Wait for the address that a service prints."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = re.search(r"http://\S+", log.read_text(encoding="utf-8") if log.exists() else "")
        if found:
            return found[0]
        time.sleep(0.01)
    raise AssertionError("the service does not start")


def send_feedback(address: str, acknowledged: list[int], stop: threading.Event) -> None:
    """Send feedback until the service is gone; keep the numbers of what it acknowledged."""
    body = json.dumps({"document_id": "d", "text": "word " * 300, "accepted": ["lamp"]}).encode()
    request = urllib.request.Request(f"{address}/v1/feedback", body, {"content-type": "application/json"})
    while not stop.is_set():
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                acknowledged.append(json.loads(answer.read())["id"])
        except (OSError, ValueError, HTTPException):
            continue  # not there yet, or killed


def test_a_killed_service_loses_no_feedback(commands: Commands, trained: Path, tmp_path: Path) -> None:
    feedback, generator, all_acknowledged = tmp_path / "feedback.sqlite", random.Random(0), 0
    for _ in range(KILLS):
        commands.log.unlink(missing_ok=True)
        service = commands.start("serve", trained, "--port", 0, "--feedback", feedback)
        address, acknowledged, stop = address_in(commands.log), [], threading.Event()
        callers = [
            threading.Thread(target=send_feedback, args=(address, acknowledged, stop)) for _ in range(CALLERS)
        ]
        for caller in callers:
            caller.start()
        end = time.monotonic() + PATIENCE
        while not acknowledged and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(generator.uniform(0, 0.3))
        os.kill(service.process, signal.SIGKILL)
        assert commands.wait(service) == -signal.SIGKILL
        stop.set()
        for caller in callers:
            caller.join()
        all_acknowledged += len(acknowledged)
        with FeedbackStore(feedback) as store:
            stored = {row["row"] for row in store.export()}
        assert set(acknowledged) <= stored
    assert all_acknowledged > KILLS, "there was feedback to lose"


def version_folders(folder: Path) -> list[str]:
    """The names of versions, unfinished ones included."""
    return [path.name for path in (folder / "versions").iterdir()]


def test_a_killed_learn_leaves_no_broken_model(commands: Commands, trained: Path, tmp_path: Path) -> None:
    folder, new = tmp_path / "model", tmp_path / "new.jsonl"
    shutil.copytree(trained, folder)
    rows = [
        json.dumps({"text": text.text, "labels": ["lamp"]}) + "\n" for text in texts(3, KILLS + 2, TOPICS)
    ]
    assert len(set(rows)) == KILLS + 2
    generator, checked = random.Random(0), {1}
    new.write_text(rows[0], encoding="utf-8")
    seconds = commands.finish("learn", folder, new, "-q")
    for number in range(1, KILLS + 1):
        new.write_text(rows[number], encoding="utf-8")
        before, places = current_version(folder), set(version_folders(folder))
        if number % 2:
            code = commands.kill(seconds * generator.random(), "learn", folder, new, "-q")
        else:  # while it writes
            code = commands.kill(
                generator.uniform(0, 0.1),
                "learn",
                folder,
                new,
                "-q",
                after=lambda places=places: set(version_folders(folder)) > places,
            )
        after = current_version(folder)
        assert after > before or code != 0, "it ended well, and its version is not the current one"
        load_model(folder)
        for version in set(version_numbers(folder)) - checked:
            load_model(folder, version=version)
            checked.add(version)
    new.write_text(rows[-1].replace("lamp", "lantern"), encoding="utf-8")
    commands.finish("learn", folder, new, "-q")
    assert list((folder / "versions").glob(".*")) == [], "what was left behind is removed"
    for version in version_numbers(folder):
        load_model(folder, version=version)
    assert len(version_numbers(folder)) > 2
