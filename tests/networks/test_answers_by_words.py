"""Training answer rankers that look at words: rare words, unknown words, vector files, transformers."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_texts import FILLERS, fitted, planted_questions
from tiny_transformer import SIZE, write_transformer

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.encoders.windowed_transformer import WindowedTransformer
from nlpcapsule.model_folder import load_model
from nlpcapsule.training.fit_answers import prepare_answers
from nlpcapsule.training.optimizers import build_optimizers

SIZES = {
    "embedding_size": 8,
    "filters": 8,
    "capsule_size": 8,
    "condensed": 4,
    "max_tokens": 16,
    "routing": "dot",
    "iterations": 1,
    "training.batch_size": 8,
}
WORDS = ("embedding_size", "filters")  # settings of an encoder that reads words
PRETRAINED = {key: value for key, value in SIZES.items() if key not in WORDS} | {
    "word_dropout": 0.0,
    "token_dropout": 0.0,
}


def name(draw):
    return "".join(draw.choices("aeioubdgklmnrst", k=7))


def questions_about_names(count, seed):
    """The right answer repeats the question's name; each name occurs in one question alone."""
    draw = random.Random(seed)
    questions = []
    for _ in range(count):
        names = [name(draw) for _ in range(4)]
        candidates = [
            Candidate(" ".join([one, *draw.sample(FILLERS, 4)]), int(one == names[0])) for one in names
        ]
        draw.shuffle(candidates)
        questions.append(Question(" ".join(["who", "is", names[0]]), tuple(candidates)))
    return questions


def vector_file(path, words, size=8):
    generator = np.random.default_rng(0)
    lines = [" ".join([word, *(f"{x:.3f}" for x in generator.normal(size=size))]) for word in words]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def words_of(questions):
    return sorted(
        {
            word
            for q in questions
            for text in (q.text, *(c.text for c in q.candidates))
            for word in text.split()
        }
    )


def right_first(model, questions):
    return np.mean(
        [
            question.candidates[np.argmax(scores)].label
            for question, scores in zip(questions, model.log_odds(questions), strict=True)
        ]
    )


def test_a_vector_files_words_are_known_beside_those_of_training(tmp_path):
    train, test = questions_about_names(3, seed=1), questions_about_names(3, seed=2)
    vectors = vector_file(tmp_path / "vectors.txt", [*words_of(test), "never"])
    config = Config.build("answers", overrides={**SIZES, "vectors": vectors})
    tokenizer = prepare_answers(train, None, config).tokenizer
    assert set(tokenizer.vocabulary) == {"[PAD]", "[UNK]", *words_of(train), *words_of(test), "never"}
    few = config.model_copy(update={"text": config.text.model_copy(update={"vocabulary_size": 45})})
    assert prepare_answers(train, None, few).tokenizer.size <= 45
    without = Config.build("answers", overrides={**SIZES, "vectors": vectors, "overlap": False})
    assert set(prepare_answers(train, None, without).tokenizer.vocabulary).isdisjoint({"never"})


def test_names_that_training_never_saw_are_found_again(tmp_path):
    train, test = questions_about_names(40, seed=1), questions_about_names(30, seed=2)
    vectors = vector_file(tmp_path / "vectors.txt", [*words_of(train), *words_of(test)])
    settings = {
        **SIZES,
        "vectors": vectors,
        "training.epochs": 12,
        "loss": "pairwise",
        "training.batch_size": 4,
    }
    by_words = fitted(tmp_path / "words", "label-query", train, **settings)
    assert right_first(by_words, test) >= 0.95


def test_the_unknown_word_weighs_nothing_and_other_words_by_their_rarity(tmp_path):
    train = [Question("who batan", (Candidate("batan kivel", 1), Candidate("kivel dosor", 0)))]
    model = fitted(tmp_path / "model", "label-query", train, **SIZES, **{"training.epochs": 1})
    idf = model.network.match.idf
    ids = {word: id for id, word in enumerate(model.tokenizer.vocabulary)}
    assert idf[model.tokenizer.unknown_id] == 0
    assert idf[ids["kivel"]] == 0  # in both answers
    torch.testing.assert_close(idf[ids["batan"]], torch.tensor(3 / 2).log())


@pytest.mark.parametrize("model", ["label-query", "paper", "cap-zhao"])
def test_a_saved_ranker_scores_as_before(model, tmp_path):
    sizes = {key: value for key, value in SIZES.items() if key != "routing"}
    if model == "cap-zhao":
        del sizes["condensed"], sizes["iterations"]
    questions = planted_questions(12)
    trained = fitted(tmp_path / "model", model, questions, **sizes, overlap=True, **{"training.epochs": 1})
    loaded = load_model(tmp_path / "model", "cpu")
    assert loaded.network.match.idf.any()
    for before, after in zip(trained.log_odds(questions), loaded.log_odds(questions), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-6)


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    return write_transformer(tmp_path_factory.mktemp("transformer"))


@pytest.mark.parametrize("overlap", [True, False])
def test_a_transformer_reads_answers_and_is_saved_with_them(transformer, overlap, tmp_path):
    settings = {**PRETRAINED, "encoder": str(transformer), "overlap": overlap, "training.epochs": 1}
    questions = planted_questions(10)
    trained = fitted(tmp_path / "model", "label-query", questions, **settings)
    loaded = load_model(tmp_path / "model", "cpu")
    assert trained.network.text.word_size == SIZE
    together = loaded.log_odds(questions)
    for before, after in zip(trained.log_odds(questions), together, strict=True):
        np.testing.assert_allclose(after, before, atol=1e-6)
    question = questions[0]
    for candidate, score in zip(question.candidates, together[0], strict=True):
        alone = loaded.log_odds([replace(question, candidates=(candidate,))])[0][0]
        np.testing.assert_allclose(alone, score, atol=1e-5)


def test_a_transformer_learns_which_word_goes_with_the_question(transformer, tmp_path):
    settings = {**PRETRAINED, "encoder": str(transformer), "encoder_learning_rate": 5e-3}
    schedule = {"training.epochs": 8, "learning_rate": 5e-3, "loss": "pairwise"}
    model = fitted(tmp_path / "model", "label-query", planted_questions(120), **settings, **schedule)
    assert right_first(model, planted_questions(40, seed=7)) >= 0.8


def test_transformer_words_and_the_rest_have_learning_rates_of_their_own(transformer, tmp_path):
    settings = {
        **PRETRAINED,
        "encoder": str(transformer),
        "encoder_learning_rate": 2e-5,
        "training.epochs": 1,
    }
    model = fitted(tmp_path / "model", "label-query", planted_questions(4), **settings)
    training = model.config.training
    rates = {
        parameter: group["factor"] * training.learning_rate
        for group in build_optimizers(model.network, training)[0].param_groups
        for parameter in group["params"]
    }
    assert isinstance(model.network.text.capsules.encoder, WindowedTransformer)
    peaks = {
        "transformer": {rates[p] for p in model.network.text.capsules.encoder.parameters()},
        "words": {rates[p] for p in model.network.match.parameters()},
        "query": {rates[model.network.text.query]},
    }
    expected = {"transformer": 2e-5, "words": 0.01, "query": training.learning_rate}
    assert {
        part: [pytest.approx(rate)] == list(peaks[part]) for part, rate in expected.items()
    } == dict.fromkeys(expected, True)
