"""`nlpcapsule serve --threads`: the workers share the threads."""

import os

import pytest
from typer.testing import CliRunner

from nlpcapsule import threads
from nlpcapsule.cli.app import app
from nlpcapsule.service import run
from nlpcapsule.service.settings import ServiceSettings


@pytest.fixture(autouse=True)
def nothing_is_chosen(monkeypatch):
    """Before the test, nor after it."""
    monkeypatch.setattr(threads, "_chosen", None)
    monkeypatch.setattr(threads, "_is_asked_for", False)
    for name in (*threads._POOLS, "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, "1")


def test_the_number_of_threads_can_be_chosen(label_folder, monkeypatch):
    seen = []
    monkeypatch.setattr(run, "serve", lambda *_: seen.append((threads.thread_count(), threads._is_asked_for)))
    command = ["serve", str(label_folder), "--threads"]
    done = CliRunner().invoke(app, [*command, "3"])
    assert (done.exit_code, seen) == (0, [(3, True)]), done.output
    assert CliRunner().invoke(app, [*command, "0"]).exit_code == 2


@pytest.mark.parametrize(("chosen", "workers", "each"), [(7, 2, "3"), (2, 2, "1"), (2, 3, "1")])
def test_workers_share_the_threads(label_folder, monkeypatch, chosen, workers, each):
    seen = []

    class Workers:
        def __init__(self, config, sockets):
            self.count = config.workers

        def run(self):
            seen.append((self.count, os.environ["OMP_NUM_THREADS"], os.environ["RAYON_NUM_THREADS"]))

    monkeypatch.setattr(run, "Multiprocess", Workers)
    monkeypatch.setattr(run, "set_up_logs", lambda: None)
    for name in (run.SETTINGS, run.MULTIPROCESS_FOLDER, run.PARENT_VARIABLE, "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # set and deleted, so that it is deleted again after the test
    threads.use_threads(chosen)
    run.serve(ServiceSettings(model=label_folder, port=0, workers=workers))
    assert seen == [(workers, each, each)]
