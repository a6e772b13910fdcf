"""Names of labels are looked for in documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.word_frequency import inverse_document_frequency
from nlpcapsule.lexical.name_match import LEAD_TOKENS, NameMatch, fold_words, word_texts
from nlpcapsule.lexical.whole_words import WholeWords

PAD, UNKNOWN = 0, 1
WORDS = ["[PAD]", "[UNK]", "fish", "imports", "import", "duty", "milk", "duties", "the"]
THE = WORDS.index("the")


def rows(*texts):
    ids = {word: number for number, word in enumerate(WORDS)}
    return Ragged.from_rows([[ids.get(word, UNKNOWN) for word in text.split()] for text in texts])


TRAINING = rows("the fish", "the fish milk", "the import duty", "the")
LABELS = {"import duty": (rows("import duty", "customs duty"), 2), "fish": (rows("fish"), 3),
          "milk": (rows("milk"), 0), "milk duty": (rows("milk duty"), 0)}  # fmt: skip


def fitted():
    names, counts = zip(*LABELS.values(), strict=True)
    return NameMatch.fit(names, np.array(counts) > 0, TRAINING, WORDS, (PAD, UNKNOWN))


def plain_match(form, document):
    """The formula, word by word."""
    singular = {"imports": "import", "duties": "duty"}
    training = [set(text.split()) for text in ("the fish", "the fish milk", "the import duty", "the")]

    def idf(word):
        return np.log((1 + 4) / (1 + sum(word in text for text in training)))

    present = {singular.get(word, word) for word in document.split() if word in WORDS}
    words = form.split()
    return sum(idf(w) for w in set(words) if w in present) / np.sqrt(sum(idf(w) for w in words))


@pytest.mark.parametrize(
    "document", ["the imports of fish", "duty", "milk duties", "the", "customs", "milk fish"]
)
def test_the_match_is_the_formula(document):
    found = fitted()(rows(document), np.array([[0, 1, 2, 3]]))[0, :, 0]
    expected = [
        max(plain_match("import duty", document), plain_match("customs duty", document)),
        plain_match("fish", document),
        plain_match("milk", document),
        plain_match("milk duty", document),
    ]
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_word_behind_the_opening_matches_the_document_and_not_its_opening():
    late = rows(" ".join(["the"] * LEAD_TOKENS + ["fish"]), "fish " + "the " * LEAD_TOKENS)
    matches = fitted()(late, np.array([[1], [1]]))
    assert matches[0, 0, 0] == matches[1, 0, 0] == matches[1, 0, 1] > 0
    assert matches[0, 0, 1] == 0


def test_only_labels_without_examples_are_nominated_best_match_first():
    assert fitted().nominate(rows("fish duty import milk", "the"), 2).tolist() == [[3, 2], [2, 3]]
    assert fitted().nominate(rows("milk"), 9).tolist() == [[2, 3]]
    assert fitted().nominate(rows("milk"), 0).shape == (1, 0)


def test_labels_are_parted_by_their_examples():
    match = fitted()
    assert match.with_examples.tolist() == [0, 1]


def test_what_is_saved_matches_the_same_when_opened(tmp_path):
    match, asked = fitted(), np.array([[0, 1, 2, 3]] * 2)
    match.save(tmp_path)
    documents = rows("imports of milk", "fish")
    again = NameMatch.load(tmp_path)
    assert np.array_equal(again(documents, asked), match(documents, asked))
    assert np.array_equal(again.nominate(documents, 2), match.nominate(documents, 2))


@given(st.lists(st.sampled_from(WORDS[2:]), min_size=1, max_size=6), st.randoms())
def test_neither_order_nor_company_of_documents_matters(words, random):
    shuffled = random.sample(words, len(words))
    match, asked = fitted(), np.array([[3, 1, 0, 2]] * 3)
    together = match(rows(" ".join(words), "fish", " ".join(shuffled)), asked)
    assert np.allclose(together[0], match(rows(" ".join(words)), asked[:1])[0])
    assert np.allclose(together[0], together[2])


def test_a_word_of_every_document_says_nothing():
    assert inverse_document_frequency(TRAINING, len(WORDS))[THE] == 0


def test_plurals_are_folded_and_short_words_are_left_alone():
    words = ["duty", "duties", "gas", "gass", "class", "clas", "ties", "tie", "lies"]
    folded = fold_words(words).tolist()
    assert folded[0] == folded[1]
    assert folded[6] == folded[7]
    assert len(set(folded[2:6])) == 4


def test_the_texts_of_whole_words_are_put_together_from_pieces():
    vocabulary = ["[PAD]", "[CLS]", "im", "##port", "fish", "##s"]
    tokens = Ragged.from_rows([[1, 2, 3, 5, 4], [1, 4, 5], [1, 2, 3, 5]])
    whole = WholeWords.fit(tokens, vocabulary)
    texts = word_texts(whole, tokens, vocabulary)
    words = [[texts[word] for word in row] for row in whole(tokens)]
    assert words[2] == ["[CLS]", "imports"]
    assert words[0][:2] == ["[CLS]", "imports"]
