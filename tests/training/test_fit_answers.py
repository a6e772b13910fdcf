"""From questions to a trained answer model."""

import json

import numpy as np
import pytest
from tiny_runs import fit_questions, some_questions, tiny_config

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.errors import DataError
from nlpcapsule.model_folder import load_model
from nlpcapsule.networks.paper import PaperCapsules
from nlpcapsule.training.answer_task import AnswerTask
from nlpcapsule.training.fit_answers import prepare_answers


@pytest.mark.parametrize("model", ["label-query", "paper"])
@pytest.mark.parametrize("loss", ["pointwise", "pairwise"])
def test_both_networks_learn_with_both_losses(tmp_path, model, loss):
    config = tiny_config("answers", model, loss=loss, epochs=3, learning_rate=0.02)
    trained = fit_questions(tmp_path, config)
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert records[-1]["loss"] < records[0]["loss"]
    assert trained.facts.dev["MAP"] == max(record["MAP"] for record in records)
    questions = some_questions(4, "dev")
    assert load_model(tmp_path).rank(questions) == trained.rank(questions)


def test_same_seed_same_model_other_seed_other_model(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fit_questions(tmp_path / name, tiny_config("answers", seed=seed), dev=0)
    first, second, other = ((tmp_path / name / "network.safetensors").read_bytes() for name in "abc")
    assert first == second
    assert first != other


def test_without_a_dev_part_nothing_is_measured(tmp_path):
    trained = fit_questions(tmp_path, tiny_config("answers"), dev=0)
    assert trained.facts.dev is None
    assert "MAP" not in json.loads((tmp_path / "metrics.jsonl").read_text(encoding="utf-8"))


def test_dev_fraction_holds_questions_out():
    data = prepare_answers(some_questions(20), None, tiny_config("answers", dev_fraction=0.25))
    assert (len(data.train), len(data.dev)) == (15, 5)


def test_without_a_right_answer_there_is_nothing_to_learn():
    questions = [Question("why?", (Candidate("because", 0), Candidate("therefore", 0)))]
    with pytest.raises(DataError, match="no candidate is marked right"):
        prepare_answers(questions, None, tiny_config("answers"))


def test_the_epoch_with_the_best_map_is_kept(tmp_path):
    trained = fit_questions(tmp_path, tiny_config("answers", epochs=2))
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert trained.facts.dev["MAP"] == max(record["MAP"] for record in records)


def test_of_many_candidates_every_right_one_is_trained_on():
    right = [Candidate(f"right {number}", 1) for number in range(3)]
    wrong = [Candidate(f"wrong {number}", 0) for number in range(40)]
    data = prepare_answers([Question("which?", (*wrong, *right))], None, tiny_config("answers"))
    task = AnswerTask(tiny_config("answers"), data.train, None)
    draws = [task._candidates(0, np.random.default_rng(seed)) for seed in range(5)]
    assert all(len(rows) == 16 for rows in draws)
    assert all(data.train.labels[rows].sum() == 3 for rows in draws)
    assert len({tuple(sorted(rows)) for rows in draws}) > 1  # the wrong ones change from step to step


def test_paper_starts_from_its_training_answers(tmp_path, monkeypatch):
    seen, start = [], PaperCapsules.start_from
    monkeypatch.setattr(
        PaperCapsules,
        "start_from",
        lambda text, answers: (seen.append(len(answers)), start(text, answers)),
    )
    fit_questions(tmp_path, tiny_config("answers", "paper"))
    fit_questions(tmp_path / "other", tiny_config("answers", "label-query"))
    assert seen == [sum(len(question.candidates) for question in some_questions(24))]


def test_word_vectors_start_the_embedding(tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 0.5 0.25 1 2 3 4 5 6 7 8\nis 1 1 1 1 1 1 1 1 1 1\n", encoding="utf-8")
    config = tiny_config("answers", vectors=str(vectors))
    data = prepare_answers(some_questions(), None, config)
    assert data.vectors.shape == (data.tokenizer.size, 10)
    assert "word vectors: 2 of" in data.notes[-1]
    trained = fit_questions(tmp_path / "model", config)
    questions = some_questions(3, "dev")
    assert load_model(tmp_path / "model").rank(questions) == trained.rank(questions)


def test_a_given_tokenizer_is_used_as_it_is(tmp_path):
    first = prepare_answers(some_questions(), None, tiny_config("answers", vocabulary_size=40))
    (tmp_path / "tokenizer.json").write_text(first.tokenizer.to_json(), encoding="utf-8")
    config = tiny_config("answers", tokenizer=str(tmp_path / "tokenizer.json"))
    assert prepare_answers(some_questions(), None, config).tokenizer.size == first.tokenizer.size


def test_the_fingerprint_sees_where_one_text_ends_and_the_next_begins():
    def fingerprint(first, second):
        questions = [Question("q", (Candidate(first, 1), Candidate(second, 0)))]
        return prepare_answers(questions, None, tiny_config("answers", min_count=1)).fingerprint()

    assert fingerprint("one two", "three") != fingerprint("one", "two three")
