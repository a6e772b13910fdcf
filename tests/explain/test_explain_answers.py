"""An explained answer says what the model does: its numbers are those that deleting words gives."""

import json
import re
from html import escape

import numpy as np
import pytest

from nlpcapsule import AnswerRanker
from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.errors import DataError
from nlpcapsule.sample import load_questions

SIZES = {"embedding_size": 8, "filters": 8, "capsule_size": 8, "condensed": 4, "max_tokens": 30}
SETTINGS = {"label-query": SIZES, "paper": SIZES, "bm25": {}, "lstm": {"embedding_size": 8}}
ASKED = "Where does the new statue of the mayor stand, and where was the statue cast?"
ANSWERS = ["The statue stands on the market square.", "Blue.", "", "The mayor opened the festival."]


@pytest.fixture(scope="session")
def rankers():
    """Rankers by the name of their system, each trained when it is first asked for."""
    rows, fitted = load_questions("train")[:24], {}

    def ranker(name):
        if name not in fitted:
            fitted[name] = AnswerRanker(name, epochs=3, settings=SETTINGS[name]).fit(
                [row.text for row in rows],
                [[answer.text for answer in row.candidates] for row in rows],
                [[answer.label for answer in row.candidates] for row in rows],
            )
        return fitted[name]

    return ranker


def log_odds(ranker, question, answer):
    return float(ranker.model_.log_odds([Question(question, (Candidate(answer),))])[0][0])


def deleted(text, word):
    for start, end in sorted(word.spans, reverse=True):
        text = text[:start] + text[end:]
    return text


@pytest.mark.parametrize("name", SETTINGS)
def test_importance_is_what_deleting_the_word_takes_away(rankers, name):
    ranker = rankers(name)
    found = ranker.explain(ASKED, ANSWERS)
    (ranked,) = ranker.rank([ASKED], [ANSWERS])
    assert [row.position for row in found.answers] == [row.position for row in ranked]
    named = 0
    for row, expected in zip(found.answers, ranked, strict=True):
        assert row.answer == ANSWERS[row.position]
        assert row.probability == pytest.approx(expected.score, abs=1e-5)
        texts = [(row.question_words, lambda word, row=row: (deleted(ASKED, word), row.answer))]
        texts += [(row.answer_words, lambda word, row=row: (ASKED, deleted(row.answer, word)))]
        for words, changed in texts:
            for word in words[:3]:
                after = log_odds(ranker, *changed(word))
                assert word.importance == pytest.approx(row.log_odds - after, abs=1e-4)
                assert word.importance > 0
                named += 1
            falls = [word.importance for word in words]
            assert falls == sorted(falls, reverse=True)
    assert named > 3


def test_all_mentions_are_one_word_at_their_places(rankers):
    row = rankers("label-query").explain(ASKED, ANSWERS, words=100).answers[0]
    for text, words in ((ASKED, row.question_words), (row.answer, row.answer_words)):
        for word in words:
            assert {text[start:end].casefold() for start, end in word.spans} == {word.word.casefold()}
    mentions = {word.word: len(word.spans) for word in row.question_words}
    assert mentions.get("statue", 2) == 2


@pytest.mark.parametrize(
    ("name", "parts"),
    [("label-query", {"capsules", "overlap"}), ("paper", {"capsules"}), ("bm25", {"model"})],
)
def test_parts_add_up(rankers, name, parts):
    for row in rankers(name).explain(ASKED, ANSWERS).answers:
        assert set(row.log_odds_by_source) == parts
        assert not row.shares or set(row.shares) == parts
        assert sum(row.shares.values()) == pytest.approx(1 if row.shares else 0)
        assert sum(row.log_odds_by_source.values()) == pytest.approx(row.log_odds)
        for word in (*row.question_words, *row.answer_words):
            assert sum(word.by_source.values()) == pytest.approx(word.importance)


def test_shares_are_those_of_what_lifts_an_answer_above_the_average(rankers):
    found = rankers("label-query").explain(ASKED, ANSWERS).answers
    shared = 0
    for row in found:
        lifts = {
            name: max(0.0, value - np.mean([other.log_odds_by_source[name] for other in found]))
            for name, value in row.log_odds_by_source.items()
        }
        total = sum(lifts.values())
        expected = {name: lift / total for name, lift in lifts.items()} if total else {}
        assert row.shares == pytest.approx(expected, abs=1e-5)
        shared += bool(expected)
    assert 1 <= shared < len(found)


def test_words_depend_on_no_other_candidate(rankers):
    ranker = rankers("label-query")
    together = {row.answer: row.to_json() for row in ranker.explain(ASKED, ANSWERS).answers}
    for answer in ANSWERS:
        alone = ranker.explain(ASKED, [answer]).answers[0].to_json()
        assert alone.pop("shares") == {}
        expected = {name: value for name, value in together[answer].items() if name != "shares"}
        assert alone == expected | {"position": 0}


def test_named_words_matter_more_than_others(rankers):
    """Deleting the two most important words of the answer takes more than deleting two others."""
    ranker, random = rankers("label-query"), np.random.default_rng(0)
    named, others = [], []
    for question in load_questions("test")[:20]:
        row = ranker.explain(question.text, [answer.text for answer in question.candidates], 1).answers[0]
        words = row.answer.split()
        texts = [row.answer]
        for word in row.answer_words[:2]:
            texts.append(texts[-1].replace(word.word, ""))
        left_out = random.choice(len(words), 2, replace=False)
        texts.append(" ".join(word for place, word in enumerate(words) if place not in left_out))
        scores = [log_odds(ranker, question.text, text) for text in texts]
        named.append(scores[0] - scores[2] if len(scores) > 3 else 0.0)
        others.append(scores[0] - scores[-1])
    assert np.mean(named) > 2 * max(np.mean(others), 0.01)


def test_how_many_answers_and_words_can_be_chosen(rankers):
    found = rankers("label-query").explain(ASKED, ANSWERS, top_k=2, words=1)
    assert len(found.answers) == 2
    assert all(len(words) <= 1 for row in found.answers for words in (row.question_words, row.answer_words))
    assert rankers("label-query").explain("", ["", "…"]).answers[0].answer_words == ()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((ASKED, "one text"), r"candidates\[0\] must be a list"),
        ((3, ANSWERS), r"questions\[0\] must be a str"),
        ((ASKED, ANSWERS, 0), "top_k"),
        ((ASKED, ANSWERS, 1, 0), "words"),
    ],
)
def test_wrong_arguments_are_refused(rankers, arguments, told):
    with pytest.raises(DataError, match=told):
        rankers("label-query").explain(*arguments)


def test_it_is_json_and_texts_are_escaped_in_a_notebook(rankers):
    answers = ["The statue stands <b>here</b> & <script>alert(1)</script>.", "Blue."]
    found = rankers("label-query").explain(ASKED, answers)
    row = json.loads(json.dumps(found.answers[0].to_json()))
    assert {"position", "probability", "shares", "question_words", "answer_words"} <= set(row)
    assert "answer" not in row
    shown = found._repr_html_()
    quoted = re.findall("<blockquote[^>]*>(.*?)</blockquote>", re.sub("</?mark[^>]*>", "", shown))
    ranked = [escape(row.answer) for row in found.answers]
    assert quoted == [escape(ASKED), ranked[0], escape(ASKED), ranked[1]]
    assert "word overlap" in shown or "capsules" in shown
    assert shown.count("<mark") >= 1
