"""The plan of a training: what it counts, what it times, and that nothing is trained or written."""

import numpy as np
import pytest
import torch
from tiny_runs import some_documents, some_questions, tiny_config
from toy_task import ToyTask, toy_network

from nlpcapsule.config import Config
from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.training import plan
from nlpcapsule.training.fit_answers import prepare_answers
from nlpcapsule.training.plan import plan_training, time_steps
from nlpcapsule.training.prepared_labels import prepare_labels


def test_a_plan_multiplies_the_time_of_a_batch(monkeypatch):
    monkeypatch.setattr(plan, "time_steps", lambda *_: np.array([[1.0, 9.0], [3.0, 9.0]]))
    config = tiny_config(epochs=90, negatives="hard", negative_count=7, lexical="one-vs-rest")
    data = prepare_labels(some_documents(64), some_documents(16, "dev"), config)
    lines = "\n".join(plan_training(data, config, print))
    assert "64 training documents" in lines
    assert f"{len(data.labels)} labels" in lines
    assert f"one-vs-rest is fitted and nominates at least {len(data.labels)} candidates per doc" in lines
    assert "weighing its scores may take more memory" in lines
    assert "its labels and 7 others (hard)" in lines
    assert "4 batches of 16 an epoch, 1 batch(es) a step" in lines
    assert "about 8 s an epoch, 12 min for 90 epochs (2000 ms a batch)" in lines


@pytest.mark.parametrize("model", ["label-query", "paper", "kim-cnn"])
def test_plans_of_networks_time_real_steps(model, monkeypatch):
    monkeypatch.setattr(plan, "peak_process_memory", lambda: 3 * 2**29)
    config = tiny_config(model=model)
    data = prepare_labels(some_documents(48), None, config)
    assert "peak so far: 1.5 GiB of memory" in plan_training(data, config, print)


def test_plans_of_answers_time_real_steps():
    config = tiny_config("answers")
    lines = plan_training(prepare_answers(some_questions(20), None, config), config, print)
    assert any("2 batches of 16 an epoch" in line for line in lines)


def test_a_lexical_system_has_no_epochs():
    config = Config.build("labels", "one-vs-rest")
    assert "no epochs" in plan_training(prepare_labels(some_documents(40), None, config), config, print)[-1]


def test_steps_are_timed_from_the_shortest_to_the_longest_texts():
    class Noted(ToyTask):
        def __init__(self):
            super().__init__()
            self.lengths = np.arange(len(self.inputs))
            self.longest = []

        def loss(self, network, rows, step_seed):
            self.longest.append(int(self.lengths[rows].max()))
            return super().loss(network, rows, step_seed)

    task = Noted()
    seconds = time_steps(toy_network(), task, TrainingSettings(gradient_accumulation_steps=3), 4)
    assert seconds.shape == (4, 2)
    assert (seconds > 0).all()
    warm_up, timed = task.longest[:2], task.longest[2:]
    assert warm_up == [27, 27]
    assert timed == sorted(timed)
    assert timed[-1] == 27


def test_a_plan_tells_that_memory_ran_out():
    class Short(ToyTask):
        def loss(self, network, rows, step_seed):
            if len(rows) > 2:
                raise torch.OutOfMemoryError("simulated")
            return super().loss(network, rows, step_seed)

    told = []
    seconds = time_steps(toy_network(), Short(), TrainingSettings(), 3, told.append)
    assert len(seconds) == 3, "a batch in two parts is one batch"
    assert told == ["out of memory: every batch is processed in 2 parts from now on"]
