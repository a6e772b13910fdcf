"""The GPU kernels compute what the routings and the optimizer do; Triton interprets them on a CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import torch

from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.capsules.votes import FormedVotes
from nlpcapsule.fused import mean_shift, pair_votes, row_adam, trial
from nlpcapsule.fused.mean_shift import Options, can_fuse
from nlpcapsule.fused.pair_votes import can_form
from nlpcapsule.networks import paper, routing_choice
from nlpcapsule.networks.paper import PaperSettings

OPTIONS = Options(3, -1.0, "leaky", 1.0, 1.0)


TRITON = Path(__file__).parents[2] / ".venv-triton"  # `make test-slow` installs it


@pytest.fixture(scope="module")
def found():
    if not (TRITON / "triton").exists():
        pytest.skip("no Triton in .venv-triton: run `make test-slow`, on Linux")
    path = os.pathsep.join(filter(None, [str(TRITON), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("interpreted.py")],
        env={**os.environ, "PYTHONPATH": path, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", ["capsules", "activations", "coupling", "agreement", "gradient", "no gradient"]
)
def test_the_kernels_route_as_the_equations_do(found, what):
    assert len(found["routing"]) == 144
    assert [case for case in found["routing"] if not case[what] < 1e-5] == []


@pytest.mark.slow
def test_no_kernel_reads_the_memory_that_it_writes_as_another_argument(found):
    """Threads of a program would race: some load what others have already overwritten."""
    assert found["launches"] > 1_000
    assert found["sharing"] == 0


@pytest.mark.slow
def test_documents_stop_after_the_same_iteration(found):
    assert [case for case in found["routing"] if case["iterations"]] == []
    assert sum(case["stopped early"] for case in found["routing"]) > 20


@pytest.mark.slow
@pytest.mark.parametrize("what", ["votes", "capsules", "table"])
def test_votes_and_their_gradients_are_those_of_torch(found, what):
    assert len(found["votes"]) == 3
    assert [case for case in found["votes"] if not case[what] < 1e-4] == []


@pytest.mark.slow
def test_rows_are_updated_as_by_the_optimizer(found):
    assert found["rows"] < 1e-6


@pytest.mark.slow
def test_trials_run_where_kernels_do(found):
    """One that failed for a mistake of its own would turn the kernels off everywhere."""
    assert found["trials"] == 5


def test_votes_on_a_cpu_are_routed_without_kernels():
    assert not can_fuse(FormedVotes(torch.ones(1, 2, 3, 4)), OPTIONS)


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ((65_535, 3, 2, 4), True),
        ((65_536, 3, 2, 4), False),
        ((64, 128, 20_000, 16), False),
        ((2, 1_024, 3, 16), True),
        ((2, 1_025, 3, 16), False),
    ],
    ids=["many documents", "too many documents", "too many votes", "many inputs", "too many inputs"],
)
def test_kernels_route_as_many_votes_as_they_can_number_and_hold(monkeypatch, shape, fits):
    monkeypatch.setattr(mean_shift, "works", lambda *asked: True)
    votes = FormedVotes(torch.empty(shape, device="meta"))
    votes.device = torch.device("cuda")
    assert can_fuse(votes, OPTIONS) == fits


@pytest.mark.parametrize(("routing", "epsilon"), [("kde", -1.0), ("adaptive-kde", 0.05)])
def test_the_network_asks_the_kernels_first(monkeypatch, routing, epsilon):
    asked = []
    monkeypatch.setattr(routing_choice, "can_fuse", lambda votes, options: asked.append(options) or True)
    monkeypatch.setattr(routing_choice, "fused_mean_shift", lambda votes, options, valid: "routed")
    settings = PaperSettings(routing=routing, iterations=4)
    votes = FormedVotes(torch.ones(1, 2, 3, 4))
    assert routing_choice.route(votes, settings) == "routed"
    assert asked == [Options(4, epsilon, "leaky", 1.0, 1.0)]


def test_kernels_need_logits_that_are_not_negative(monkeypatch):
    """A minus sign of theirs says that a vote is outside of the support."""
    monkeypatch.setattr(mean_shift, "works", lambda *asked: True)
    votes = FormedVotes(torch.empty((2, 3, 4, 5), device="meta"))
    votes.device = torch.device("cuda")
    assert can_fuse(votes, OPTIONS)
    assert not can_fuse(votes, OPTIONS._replace(alpha=-1.0))


@pytest.mark.parametrize("can", [True, False])
def test_votes_of_shared_labels_are_formed_by_a_kernel_where_it_can(monkeypatch, can):
    transforms, capsules, ids = (
        PairTransforms(6, 3, 4, 1.0, sparse=True),
        torch.randn(2, 3, 4),
        torch.arange(5),
    )
    monkeypatch.setattr(paper, "can_form", lambda *asked: can)
    monkeypatch.setattr(paper, "form_pair_votes", lambda *asked: "formed")
    found = paper.form_votes(capsules, transforms, ids)
    assert found == "formed" if can else found.shape == (2, 3, 5, 4)


def test_votes_on_a_cpu_are_formed_without_a_kernel():
    transforms = PairTransforms(6, 3, 4, 1.0, sparse=True)
    assert not can_form(torch.randn(2, 3, 4), transforms, torch.arange(5))


@pytest.fixture
def works(monkeypatch):
    """`works` as on a machine with Triton and a GPU, without what earlier trials found."""
    monkeypatch.setattr(trial, "find_spec", lambda name: name)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    trial.works.cache_clear()
    yield trial.works
    trial.works.cache_clear()


def test_kernels_are_tried_once_for_what_they_are_compiled_for(works):
    tried = []

    def run(*sizes):
        torch.ones(1, requires_grad=True).square().backward()
        tried.append(sizes)

    with torch.inference_mode():
        assert [works(run, 128, 16), works(run, 128, 16), works(run, 128, 32)] == [True] * 3
    assert tried == [(128, 16), (128, 32)]


def test_without_triton_nothing_is_tried(works, monkeypatch):
    monkeypatch.setattr(trial, "find_spec", lambda name: None)
    assert not works(lambda: pytest.fail("tried"))


def test_routing_kernels_that_fail_on_a_gpu_are_not_used(works, monkeypatch):
    monkeypatch.setattr(mean_shift, "_trial", lambda *compiled_for: 1 / 0)
    votes = FormedVotes(torch.empty((2, 3, 4, 5), device="meta"))
    votes.device = torch.device("cuda")
    with pytest.warns(UserWarning, match="some kernels are not used: division by zero"):
        assert not can_fuse(votes, OPTIONS)


def test_vote_kernels_that_fail_on_a_gpu_are_not_used(works, monkeypatch):
    monkeypatch.setattr(pair_votes, "_trial", lambda *compiled_for: 1 / 0)
    capsules = MagicMock(is_cuda=True, shape=(70, 3, 4), dtype=torch.float32, device=torch.device("cuda"))
    capsules.numel.return_value, capsules.__len__.return_value = 840, 70
    transforms = PairTransforms(6, 3, 4, 1.0, sparse=True)
    with pytest.warns(UserWarning, match="some kernels are not used: division by zero"):
        assert not can_form(capsules, transforms, torch.arange(5))


def test_a_row_kernel_that_fails_on_a_gpu_is_not_used(works, monkeypatch):
    monkeypatch.setattr(row_adam, "update_rows", lambda *update: 1 / 0)
    with pytest.warns(UserWarning, match="some kernels are not used"):
        assert not works(row_adam._trial, "cpu")
