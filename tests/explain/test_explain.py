"""An explanation says what the model does: its numbers are those that deleting words gives."""

import json
import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from scipy.special import expit

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import DataError
from nlpcapsule.explain import explain
from nlpcapsule.explain.network_words import trace_labels
from nlpcapsule.explain.sources import shares
from nlpcapsule.sample import load_documents

SYSTEMS = ["hybrid", "label-query", "paper", "kim-cnn", "one-vs-rest"]
LETTER = "The street lamp outside our house has been dark for a week. The lamp was new."


def probability(model, ids, label):
    """The probability of a label, against the candidates of the whole letter."""
    tokens = Ragged.from_rows([ids])
    nominated = model.scorer.candidates(Ragged.from_rows(model.tokenizer.encode([LETTER], 60)))
    scored = model.scorer.score(tokens, nominated)
    labels = np.broadcast_to(scored.labels, scored.log_odds.shape)[0]
    return float(expit(scored.log_odds[0][labels == label][0]))


@pytest.mark.parametrize("name", SYSTEMS)
def test_importance_is_what_deleting_the_word_takes_away(estimators, name):
    model = estimators(name).model_
    found = explain(model, LETTER, top_k=2)
    ranked = model.rank([LETTER], 2)[0]
    assert [row.label for row in found.labels] == [row.label for row in ranked]
    for row, label in zip(found.labels, ranked, strict=True):
        assert row.probability == pytest.approx(label.score, abs=1e-5)
        (number,) = model.labels.numbers([label.label], {})
        for word in row.words[:3]:
            ids = model.tokenizer.encode_with_offsets(LETTER, 60)
            starts = [start for start, _ in word.spans]
            kept = ids.ids[~np.isin(ids.offsets[:, 0], starts)]
            fall = row.probability - probability(model, kept, number)
            assert word.probability_drop == pytest.approx(fall, abs=1e-5)
            assert word.importance > 0
        assert [word.importance for word in row.words] == sorted(
            (word.importance for word in row.words), reverse=True
        )


@pytest.mark.parametrize("name", SYSTEMS)
def test_sources_add_up_to_the_log_odds(estimators, name):
    (row,) = estimators(name).explain(LETTER, top_k=1).labels
    assert sum(row.log_odds_by_source.values()) == pytest.approx(row.log_odds)
    assert sum(row.shares.values()) == pytest.approx(1)
    for word in row.words:
        assert sum(word.by_source.values()) == pytest.approx(word.importance)
    expected = {"network", "lexical", "neighbours", "prior"} if name == "hybrid" else None
    assert expected is None or set(row.shares) == expected


def test_a_source_has_its_share_of_what_lifts_a_label_above_the_average():
    rows = {"network": np.array([4.0, 1.0, 1.0]), "lexical": np.array([2.0, 0.5, 0.5]), "prior": -np.ones(3)}
    assert shares(rows, 0) == pytest.approx({"network": 2 / 3, "lexical": 1 / 3, "prior": 0})
    assert shares(rows, 1) == pytest.approx(dict.fromkeys(rows, 1 / 3))


def test_words_go_through_the_capsules_that_attend_to_them(estimators):
    model = estimators("hybrid").model_
    (row,) = explain(model, LETTER, top_k=1).labels
    (number,) = model.labels.numbers([row.label], {})
    ids = model.tokenizer.encode_with_offsets(LETTER, 60)
    trace = trace_labels(model.network, ids.ids, np.array([number]))
    assert [share.capsule for share in row.capsules] == np.argsort(-trace.coupling[0], kind="stable").tolist()
    assert sum(share.share for share in row.capsules) == pytest.approx(1, abs=1e-5)
    word = row.words[0]
    places = np.isin(ids.offsets[:, 0], [start for start, _ in word.spans])
    carried = trace.coupling[0] * trace.attention[:, places].sum(axis=1)
    assert word.capsules[0].capsule == carried.argmax()
    assert word.capsules[0].share == pytest.approx(carried.max() / carried.sum(), abs=1e-5)


def test_the_gradient_estimates_what_a_small_change_does(estimators):
    model = estimators("label-query").model_
    ids = model.tokenizer.encode([LETTER], 60)[0]
    labels = np.array([0, 3])
    trace = trace_labels(model.network, ids, labels)
    table = model.network.document.encoder.embedding.table
    before = model.scorer.score(Ragged.from_rows([ids])).log_odds[0, labels]
    word, step = ids[2], 1e-2
    original = table.weight.data[word].clone()
    table.weight.data[word] *= 1 - step
    after = model.scorer.score(Ragged.from_rows([ids])).log_odds[0, labels]
    table.weight.data[word] = original
    estimated = trace.gradient[:, ids == word].sum(axis=1)
    np.testing.assert_allclose((before - after) / step, estimated, rtol=0.1, atol=1e-3)


def test_tracing_leaves_no_gradient_and_no_hook_behind(estimators):
    model = estimators("label-query").model_
    trace_labels(model.network, np.array([2, 3, 4]), np.array([0]))
    assert all(weights.grad is None for weights in model.network.parameters())
    assert not any(module._forward_hooks for module in model.network.modules())


def test_long_texts_try_the_words_that_estimates_name(estimators):
    """Of hundreds of words only some are left out in turn; the most important ones are among them."""
    text = " ".join(row.text for row in load_documents("test-seen")[:6])
    estimator = estimators("one-vs-rest")
    model = estimator.model_
    (row,) = explain(model, text, top_k=1).labels
    exact = explain_all_words(model, text, row.label)
    assert len(exact) > 100
    assert [word.word for word in row.words][:5] == exact[:5]


def explain_all_words(model, text, label):
    from nlpcapsule.explain.sources import score_by_source
    from nlpcapsule.explain.words import each_left_out, find_words

    tokens = model.tokenizer.encode_with_offsets(text, model.config.text.max_tokens)
    words = find_words(text, tokens)
    rows = each_left_out(tokens.ids, words, 1)
    log_odds = score_by_source(model, rows, np.array(model.labels.numbers([label], {}))).log_odds[:, 0]
    return [words[index].text for index in np.argsort(log_odds[1:], kind="stable")]


def test_similar_documents_are_named_by_their_ids_where_they_are_known(estimators, tmp_path):
    from nlpcapsule.model_folder import load_model, save_model

    model = estimators("hybrid").model_
    found = explain(model, LETTER).similar
    assert found
    assert all(row.id.startswith("row ") for row in found)
    assert [row.similarity for row in found] == sorted((row.similarity for row in found), reverse=True)
    neighbours = model.scorer.lexical.neighbours
    numbers = [int(row.id.removeprefix("row ")) - 1 for row in found]
    ids = [f"letter-{number}" if number % 2 else None for number in range(neighbours.documents.shape[0])]
    object.__setattr__(neighbours, "ids", ids)
    try:
        save_model(model, tmp_path / "model")
        again = explain(load_model(tmp_path / "model"), LETTER).similar
    finally:
        object.__setattr__(neighbours, "ids", None)
    assert [row.id for row in again] == [ids[number] or f"row {number + 1}" for number in numbers]
    assert [row.labels for row in again] == [row.labels for row in found]


def test_training_documents_keep_their_ids():
    from nlpcapsule.config import Config
    from nlpcapsule.data.documents import Document
    from nlpcapsule.training.prepared_labels import prepare_labels

    rows = [Document("rain and wind", ("weather",), "a"), Document("a goal and wind", ("sport",), None)] * 6
    config = Config.build("labels", "label-query")
    assert prepare_labels(rows, rows, config).ids == ("a", None) * 6
    without = [Document(row.text, row.labels) for row in rows]
    assert prepare_labels(without, rows, config).ids is None


@pytest.mark.parametrize("text", ["", "…", "zzzz", " "])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_text_without_known_words_is_explained_too(estimators, name, text):
    found = estimators(name).explain(text, top_k=1)
    assert len(found.labels) == 1


def test_labels_can_be_chosen_and_must_be_known(estimators):
    estimator = estimators("hybrid")
    last = estimator.classes_[-1]
    assert [row.label for row in estimator.explain(LETTER, [last]).labels] == [last]
    assert estimator.explain(LETTER, []).labels == ()
    with pytest.raises(DataError, match="does not know the label 'no-such'"):
        estimator.explain(LETTER, ["no-such"])


def test_an_explanation_is_json_and_the_text_is_escaped_in_a_notebook(estimators):
    text = "<b>street lamp</b> & dark <script>alert(1)</script>"
    found = estimators("hybrid").explain(text, top_k=2)
    assert json.loads(json.dumps(found.to_json()))["labels"][0]["label"] == found.labels[0].label
    (label, _), (similar, *_) = found.labels, found.similar
    label = replace(label, name="<i>dark</i>")
    similar = replace(similar, id="<u>7</u>", labels=("<s>off</s>",))
    shown = replace(found, labels=(label,), similar=(similar,))._repr_html_()
    assert shown.count("<mark") >= 1
    (quoted,) = re.findall("<blockquote[^>]*>(.*)</blockquote>", re.sub("</?mark[^>]*>", "", shown))
    assert quoted == escape(text)
    for hostile in ("<i>dark</i>", "<u>7</u>", "<s>off</s>"):
        assert escape(hostile) in shown
        assert hostile not in shown


def test_it_says_how_much_of_the_text_is_read(estimators):
    found = estimators("hybrid").explain(" ".join(["lamp"] * 100), top_k=1)
    assert found.read_until == 60 * 5 - 1


def test_the_same_explanation_whoever_asked_before(estimators):
    estimator = estimators("hybrid")
    first = estimator.explain(LETTER).to_json()
    estimator.explain("another letter about bins")
    assert estimator.explain(LETTER).to_json() == first


def test_contributions_of_a_linear_model_add_up_to_its_margin(estimators):
    from nlpcapsule.explain.lexical_words import lexical_weights

    model = estimators("hybrid").model_
    ranker = model.scorer.lexical.ranker
    assert ranker.bag.lead_tokens
    ids = model.tokenizer.encode([LETTER], 60)[0]
    labels, margins = ranker.top(Ragged.from_rows([ids]), 5)
    weights = lexical_weights(model, ids, labels[0])
    np.testing.assert_allclose(weights.sum(axis=1) + ranker.bias[labels[0]], margins[0], rtol=1e-4, atol=1e-5)
