"""`nlpcapsule serve` as a process: it starts, answers, swaps models, and stops in good order."""

import json
import shlex
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from running import running
from typer.testing import CliRunner

from nlpcapsule.cli.app import app

sys.path.append(str(Path(__file__).parents[1] / "cli"))

from run_command import run_command


def test_it_answers_and_stops_after_the_requests_that_it_accepted(label_folder, tmp_path):
    with running(label_folder, "--feedback", tmp_path / "feedback.sqlite") as service:
        service.ask()
        found = []
        askers = [threading.Thread(target=lambda: found.append(service.ask())) for _ in range(8)]
        for asker in askers:
            asker.start()
        while not found:
            askers[0].join(0.01)
        code, told = service.stop()
        for asker in askers:
            asker.join()
    assert code == 0
    assert told.count('"path": "/v1/labels", "status": 200') == len(found) + 1
    assert '"stopped"' in told
    assert "street lamp" not in told


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_it_stops_in_good_order_when_told_right_after_its_address(label_folder, workers, name):
    program = (
        "import signal, sys\n"
        "from pathlib import Path\n"
        "from nlpcapsule.service.run import serve\n"
        "from nlpcapsule.service.settings import ServiceSettings\n"
        "if __name__ == '__main__':\n"
        f"    settings = ServiceSettings(model=Path(sys.argv[1]), port=0, workers={workers})\n"
        f"    serve(settings, lambda address: signal.raise_signal(signal.{name}))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, label_folder],
        timeout=300,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


def test_it_ends_with_the_command_that_teaches_what_was_reviewed(label_folder, tmp_path):
    store = tmp_path / "feed back.sqlite"
    review = {"document_id": "1", "person": "ada", "text": "It is dark.", "accepted": ["street-light-out"]}
    with running(label_folder, "--feedback", store) as service:
        assert "nlpcapsule learn" not in service.stop()[1]
    with running(label_folder, "--feedback", store) as service:
        service.ask("/v1/feedback", json.dumps(review).encode())
        code, told = service.stop()
    assert code == 0
    command, following = told.splitlines()[-1].split(" && ")
    exported = run_command(*shlex.split(command)[1:-1], tmp_path / "new.jsonl")
    assert exported.code == 0, exported.err
    assert json.loads((tmp_path / "new.jsonl").read_text())["labels"] == ["street-light-out"]
    assert Path(shlex.split(following)[2]).samefile(label_folder)


@pytest.mark.slow
def test_several_workers_share_the_port_and_add_up_their_figures(label_folder, tmp_path):
    with running(label_folder, "--feedback", tmp_path / "feedback.sqlite", "--workers", "2") as service:
        assert len({service.ask()["version"] for _ in range(20)}) == 1
        expected = 'nlpcapsule_requests_total{path="/v1/labels",status="200"} 20.0'
        for _ in range(50):  # a request is counted after its answer is sent
            figures = service.ask("/metrics", None)
            if expected in figures:
                break
            time.sleep(0.1)
        assert expected in figures
        assert service.stop()[0] == 0


@pytest.mark.slow
def test_workers_import_nothing_from_the_working_folder(label_folder, tmp_path, monkeypatch):
    """As the installed command, which does not look there either."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "signal.py").write_text("open('imported', 'w')")
    program = tmp_path / "command.py"
    program.write_text("from nlpcapsule.__main__ import main\nif __name__ == '__main__':\n    main()\n")
    monkeypatch.chdir(tmp_path / "here")
    with running(label_folder, "--workers", "2", program=[str(program)]) as service:
        stop = time.monotonic() + 300
        while not psutil.Process(service.process.pid).children() and time.monotonic() < stop:
            time.sleep(0.1)
        time.sleep(2)  # a worker that imports the file dies, so that an answer cannot be waited for
        assert not Path("imported").exists()
        service.ask()


@pytest.mark.slow
def test_workers_end_with_a_service_that_is_killed(label_folder):
    with running(label_folder, "--workers", "2") as service:
        service.ask()
        workers = psutil.Process(service.process.pid).children(recursive=True)
        assert len(workers) >= 2
        service.process.kill()
        service.process.wait()
        _, left = psutil.wait_procs(workers, timeout=300)
        for worker in left:
            worker.kill()
    assert not left


def refused(*arguments):
    done = CliRunner().invoke(app, ["serve", *map(str, arguments)])
    assert done.exit_code == 1
    return str(done.exception)


def test_a_folder_without_a_model_is_refused(tmp_path):
    assert "is not a model folder" in refused(tmp_path)


def test_a_port_that_is_taken_is_refused(label_folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = refused(label_folder, "--port", taken.getsockname()[1])
    assert "give another --host or --port" in told


def test_an_empty_token_file_is_refused(label_folder, tmp_path):
    (tmp_path / "token").write_text("\n", encoding="utf-8")
    for path in (tmp_path / "token", "/dev/zero"):
        assert "holds no token" in refused(label_folder, "--token-file", path)


def test_no_more_processes_are_started_than_a_machine_bears(label_folder):
    done = CliRunner().invoke(app, ["serve", str(label_folder), "--workers", "100000000"])
    assert done.exit_code == 2
    assert "--workers" in done.output


@pytest.mark.parametrize("workers", [1, 2])
def test_a_feedback_store_that_is_none_is_refused_before_the_port_is_open(
    label_folder, tmp_path, monkeypatch, workers
):
    def too_early(*_):
        raise AssertionError("the port is opened: several workers would fail and be started again, for ever")

    monkeypatch.setattr("nlpcapsule.service.run._open_socket", too_early)
    told = refused(label_folder, "--feedback", tmp_path, "--port", 0, "--workers", workers)
    assert "the feedback store cannot be used" in told


def test_a_hierarchy_that_is_none_is_refused(label_folder, tmp_path):
    (tmp_path / "broader.json").write_text('{"a": {"broader": "b"}}', encoding="utf-8")
    told = refused(label_folder, "--hierarchy", tmp_path / "broader.json", "--port", 0)
    assert "has no list of broader labels" in told


def test_without_the_extra_it_says_how_to_install_it(label_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "nlpcapsule.service.run", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'nlpcapsule[serve]'" in refused(label_folder)


def test_the_demo_ends_with_the_page(monkeypatch, tmp_path):
    from nlpcapsule.cli import demo

    served = []
    monkeypatch.setattr("nlpcapsule.demo.run_demo", lambda *arguments: None)
    monkeypatch.setattr(demo, "start_service", lambda model, **options: served.append((model, options)))
    runner = CliRunner()
    assert runner.invoke(app, ["demo", "--output", str(tmp_path / "out")]).exit_code == 0
    assert not served
    done = runner.invoke(app, ["demo", "--output", str(tmp_path / "out"), "--serve", "--port", "0"])
    assert done.exit_code == 0, done.output
    ((model, options),) = served
    assert model == tmp_path / "out" / "models" / "hybrid"
    assert (options["port"], "street lamp" in options["example"]) == (0, True)
    assert options["open_page"]


@pytest.mark.parametrize(("display", "is_terminal"), [(":0", True), (None, True), (":0", False)])
def test_the_page_is_opened_only_in_front_of_a_screen(monkeypatch, tmp_path, display, is_terminal):
    from nlpcapsule.cli import serve

    opened = []
    monkeypatch.setattr(serve.webbrowser, "open", opened.append)
    monkeypatch.setattr(serve.sys, "platform", "linux")
    monkeypatch.setattr(serve.sys.stdout, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(
        "nlpcapsule.service.run.serve", lambda settings, tell, say: tell("http://127.0.0.1:8000")
    )
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    if display:
        monkeypatch.setenv("DISPLAY", display)
    serve.start_service(tmp_path)
    assert not opened
    serve.start_service(tmp_path, open_page=True)
    assert opened == (["http://127.0.0.1:8000"] if display and is_terminal else [])
