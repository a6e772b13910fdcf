"""What every answer ranker promises, whatever it computes."""

import numpy as np
import pytest
import torch
from small_rankers import SIZES, VARIANTS, VOCABULARY, small_ranker, token_rows, variant_name

from nlpcapsule.data.word_frequency import inverse_document_frequency
from nlpcapsule.networks.answer_ranker import answer_loss
from nlpcapsule.registry import find_system

every_variant = pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=variant_name)
QUESTION_OF = torch.tensor([0, 1, 1, 2, 0])
IDF = np.linspace(0.1, 3, VOCABULARY)


def batch(width=None):
    """Texts of one word, of two, and of more than the convolutions see at once."""
    return token_rows(6, 1, 3, width=width), token_rows(14, 5, 1, 2, 9, width=width, seed=9), QUESTION_OF


def test_every_setting_class_says_its_own_name():
    assert all(find_system(name).settings().name == name for name in SIZES)


@every_variant
def test_scores_are_finite_float32_one_per_answer(name, settings):
    scores = small_ranker(name, idf=IDF, **settings)(*batch())
    assert scores.shape == (5,)
    assert scores.dtype == torch.float32
    assert scores.isfinite().all()


@every_variant
def test_gradients_are_finite_and_reach_every_parameter(name, settings):
    network = small_ranker(name, idf=IDF, **settings)
    answer_loss("pointwise", network(*batch()), torch.tensor([1, 0, 1, 0, 0]), QUESTION_OF).backward()
    for parameter_name, parameter in network.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert parameter.grad.any(), parameter_name


@every_variant
def test_filling_rows_up_further_changes_nothing(name, settings):
    network = small_ranker(name, idf=IDF, **settings).eval()
    with torch.no_grad():
        torch.testing.assert_close(network(*batch(width=25)), network(*batch()), atol=1e-5, rtol=0)


@every_variant
def test_a_pair_scores_the_same_alone_and_in_company(name, settings):
    network = small_ranker(name, idf=IDF, **settings).eval()
    questions, answers, question_of = batch()
    with torch.no_grad():
        together = network(questions, answers, question_of)
        for pair, question in enumerate(question_of):
            asked, answer = questions[question], answers[pair]
            alone = network(asked[asked != 0][None], answer[answer != 0][None], torch.tensor([0]))
            torch.testing.assert_close(alone[0], together[pair], atol=1e-5, rtol=0)


@every_variant
def test_both_texts_matter(name, settings):
    network = small_ranker(name, idf=IDF, **settings).eval()
    questions, answers, question_of = batch()
    with torch.no_grad():
        scores = network(questions, answers, question_of)
        others_asked = network(questions.roll(1, 0), answers, question_of)
        others_answered = network(questions, answers.roll(1, 0), question_of)
    assert ((scores - others_asked).abs() > 1e-7).all()
    assert ((scores - others_answered).abs() > 1e-7).all()


@every_variant
def test_a_text_without_words_gets_a_finite_score(name, settings):
    network = small_ranker(name, idf=IDF, **settings).eval()
    nothing, something = torch.zeros(1, 4, dtype=torch.int64), token_rows(4)
    with torch.no_grad():
        for question, answer in ((nothing, something), (something, nothing), (nothing, nothing)):
            assert network(question, answer, torch.tensor([0])).isfinite().all()


@pytest.mark.parametrize("name", SIZES)
def test_half_precision_gives_close_float32_scores(name):
    network = small_ranker(name, idf=IDF).eval()
    with torch.no_grad():
        expected = network(*batch())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = network(*batch())
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, expected, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("name", SIZES)
def test_a_loaded_state_brings_its_word_weights_along(name):
    idf = inverse_document_frequency(list(token_rows(6, 14, 3).numpy()), VOCABULARY)
    trained, opened = small_ranker(name, idf=idf).eval(), small_ranker(name).eval()
    assert not opened.idf.any()
    opened.load_state_dict(trained.state_dict())
    np.testing.assert_array_equal(opened.idf.numpy(), idf)
    with torch.no_grad():
        assert torch.equal(opened(*batch()), trained(*batch()))


@pytest.mark.parametrize("name", SIZES)
def test_dropout_acts_in_training_only(name):
    network = small_ranker(name, dropout=0.5)
    assert not torch.equal(network(*batch()), network(*batch()))
    network.eval()
    assert torch.equal(network(*batch()), network(*batch()))
