"""Every answer ranker is trained, saved and opened through the same doors as our own."""

import numpy as np
import pytest
from small_rankers import SIZES

from nlpcapsule.config import Config
from nlpcapsule.errors import ConfigError
from nlpcapsule.model_folder import load_model
from nlpcapsule.sample import load_questions
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


@pytest.mark.parametrize("name", SIZES)
def test_ranker_trained_from_a_configuration_is_the_same_when_opened_again(name, tmp_path):
    config = Config.build("answers", name, overrides={"training.epochs": 1, "embedding_size": 12})
    questions = load_questions("train")[:12]
    data = prepare_answers(questions, questions[:4], config)
    trained = fit_answers(data, config, RunFolder(tmp_path / "model"), TrainingProgress(quiet=True))
    opened = load_model(tmp_path / "model")
    assert opened.config == config
    for before, after in zip(trained.log_odds(questions), opened.log_odds(questions), strict=True):
        np.testing.assert_array_equal(before, after)
    assert opened.network.idf.sum() > 0


def test_answer_rankers_are_refused_for_labels():
    with pytest.raises(ConfigError, match="'hd-lstm' does not rank labels: use one of hybrid, label-query"):
        Config.build("labels", "hd-lstm")
