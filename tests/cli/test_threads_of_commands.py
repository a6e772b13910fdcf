"""Every command that computes uses the threads that the machine grants, and not all that torch sees."""

import pytest
from run_command import TINY, run_command

from nlpcapsule.cli import compare, inspect, learn, predict, tune


class ThreadsChosenError(Exception):
    """Raised where a command chooses its threads: what it does then takes too long here."""


@pytest.mark.parametrize(
    ("command", "given"),
    [
        (compare, ("compare", "--data", "{sample}", "--output", "{new}")),
        (inspect, ("inspect", "{model}", "{sample}/documents-train.jsonl", "--output", "{new}")),
        (learn, ("learn", "{model}", "{sample}/documents-train.jsonl", "--output", "{new}")),
        (tune, ("tune", "{sample}/documents-train.jsonl", "--output", "{new}")),
    ],
    ids=["compare", "inspect", "learn", "tune"],
)
def test_a_command_chooses_threads_before_it_computes(sample, tmp_path, monkeypatch, command, given):
    def choose(asked):
        assert asked is None
        raise ThreadsChosenError

    monkeypatch.setattr(command, "use_threads", choose)
    places = {"sample": sample, "model": tmp_path / "model", "new": tmp_path / "new"}
    with pytest.raises(ThreadsChosenError):
        run_command(*(word.format(**places) for word in given), "--debug")


@pytest.mark.parametrize(("model", "times"), [("label-query", 1), ("one-vs-rest", 0)])
def test_predict_tries_fewer_threads_for_torch_alone(sample, tmp_path, monkeypatch, model, times):
    data, folder, tried = sample / "documents-train.jsonl", tmp_path / "model", []
    settings = TINY if model == "label-query" else ()
    done = run_command("train", data, "--output", folder, "--model", model, "--quiet", *settings)
    assert done.code == 0, done.err
    monkeypatch.setattr(predict, "keep_faster_torch_threads", tried.append)
    assert run_command("predict", folder, data, "--quiet").code == 0
    assert len(tried) == times
