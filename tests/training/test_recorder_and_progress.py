"""What is left of a run to look at, and what a person sees while it runs."""

import io
import sys

import pytest
from rich.console import Console
from tiny_runs import fit_documents, tiny_config

from nlpcapsule.errors import MissingExtraError
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.recorder import Recorder

HISTORY = [{"epoch": 1, "loss": 0.5, "nDCG@5": 0.25}, {"epoch": 2, "loss": 0.25, "nDCG@5": 0.5}]


def test_the_whole_history_is_written_anew_each_time(tmp_path):
    recorder = Recorder(tmp_path)
    recorder.record(HISTORY[:1])
    recorder.record(HISTORY)
    lines = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert lines[1] == '{"epoch": 2, "loss": 0.25, "nDCG@5": 0.5}'


def test_the_nominators_history_has_a_file_of_its_own(tmp_path):
    Recorder(tmp_path, "nominator").record(HISTORY)
    assert [path.name for path in tmp_path.iterdir()] == ["nominator-metrics.jsonl"]


def test_tensorboard_shows_every_figure_of_every_epoch(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    fit_documents(tmp_path / "model", tiny_config(epochs=2), tensorboard=True)
    read = events.EventAccumulator(str(tmp_path / "model" / "tensorboard" / "network")).Reload()
    assert {"loss", "P_at_1", "nDCG_at_5"} <= set(read.Tags()["scalars"])
    assert [event.step for event in read.Scalars("loss")] == [1, 2]


def test_without_tensorboard_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"'tensorboard'.*pip install 'nlpcapsule\[tensorboard\]'"):
        fit_documents(tmp_path / "model", tiny_config(), tensorboard=True)


def test_elsewhere_than_on_a_terminal_there_is_one_line_per_epoch():
    out = io.StringIO()
    with TrainingProgress(console=Console(file=out, width=40)) as progress:
        progress.start("label-query", total=4)
        progress.parts(2, figures="loss 0.7500")
        progress.epoch("label-query", {"epoch": 1, "epochs": 2, "loss": 0.5, "seconds": 9.0, "P@1": 0.25})
    assert out.getvalue() == "label-query: epoch 1/2  loss 0.5000  P@1 0.2500\n"


def test_a_terminal_shows_a_bar_with_the_loss():
    out = io.StringIO()
    with TrainingProgress(console=Console(file=out, force_terminal=True, width=120)) as progress:
        progress.start("kim-cnn (nominates)", total=4)
        progress.parts(4, figures="loss 0.5000")
        progress.start("label-query", total=4, done=1)
        progress.parts(3, figures="loss 0.7500")
    shown = out.getvalue()
    assert "label-query" in shown
    assert "3/4" in shown
    assert "loss 0.7500" in shown


def test_what_is_said_is_printed_as_it_stands():
    out = io.StringIO()
    TrainingProgress(console=Console(file=out, width=20)).say(
        "data[bold].jsonl: 12 rows were read, none skipped"
    )
    assert out.getvalue() == "data[bold].jsonl: 12 rows were read, none skipped\n"


def test_quiet_says_nothing(capsys):
    with TrainingProgress(quiet=True) as progress:
        progress.say("hello")
        progress.start("label-query", total=1)
        progress.parts(1, figures="loss 0.5000")
        progress.epoch("label-query", {"epoch": 1, "epochs": 1, "loss": 0.5})
    assert capsys.readouterr() == ("", "")
