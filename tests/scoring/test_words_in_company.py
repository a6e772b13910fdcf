"""What words add to an answer's score depends on nothing but the question and the answer."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import questions, word_tokenizer
from scipy.special import expit

from nlpcapsule.config import Config
from nlpcapsule.networks.build import build_network
from nlpcapsule.scoring.models import AnswerModel

TOLERANCE = 1e-5


@cache
def weighted_model(model):
    """A random ranker whose words have weights, and whose score hangs on them."""
    sizes = {"embedding_size": 16, "filters": 8, "capsule_size": 8, "condensed": 5, "max_tokens": 20}
    config = Config.build("answers", model, overrides={**sizes, "overlap": True})
    tokenizer = word_tokenizer()
    idf = np.random.default_rng(1).uniform(0, 4, tokenizer.size)
    network = build_network(config, tokenizer.size, padding_id=tokenizer.padding_id, idf=idf).eval()
    with torch.no_grad():
        for parameter in network.match.parameters():
            parameter.mul_(3)
    return AnswerModel(config, tokenizer, network)


@pytest.mark.parametrize("model", ["label-query", "paper"])
@settings(max_examples=10)
@given(asked=st.lists(questions(), min_size=2, max_size=4))
def test_words_score_alike_in_any_company(model, asked):
    ranker = weighted_model(model)
    together = ranker.log_odds(asked)
    for question, scores in zip(asked, together, strict=True):
        for candidate, score in zip(question.candidates, scores, strict=True):
            alone = ranker.log_odds([replace(question, candidates=(candidate,))])[0][0]
            np.testing.assert_allclose(expit(alone), expit(score), rtol=0, atol=TOLERANCE)
