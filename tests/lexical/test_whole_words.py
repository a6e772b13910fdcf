"""Word pieces make up the words they were cut from."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nlpcapsule.dataset.ragged import Ragged
from nlpcapsule.lexical.whole_words import UNKNOWN, WholeWords

VOCABULARY = ["[PAD]", "[UNK]", "law", "re", "##gula", "##tion", "act", "##s"]
LAW, RE, GULA, TION, ACT, S = range(2, 8)


def ragged(*rows):
    return Ragged.from_rows([np.array(row, dtype=np.int64) for row in rows])


def rows_of(words):
    return [row.tolist() for row in words]


def test_pieces_of_one_word_count_as_one():
    pieces = ragged([LAW, RE, GULA, TION, ACT, S], [RE, GULA, TION, LAW, ACT, S])
    first, second = rows_of(WholeWords.fit(pieces, VOCABULARY)(pieces))
    law, regulation, acts = first
    assert second == [regulation, law, acts]
    assert len({law, regulation, acts, UNKNOWN}) == 4


def test_the_order_of_pieces_tells_words_apart():
    pieces = ragged([RE, GULA, TION], [RE, TION, GULA], [RE, GULA, TION], [RE, TION, GULA])
    one, other, again, other_again = rows_of(WholeWords.fit(pieces, VOCABULARY)(pieces))
    assert one == again != other == other_again


def test_rare_words_are_unknown():
    train = ragged([LAW, LAW, ACT])
    whole = WholeWords.fit(train, VOCABULARY)
    assert rows_of(whole(ragged([ACT, LAW, RE]))) == [[UNKNOWN, 1, UNKNOWN]]
    assert whole.size == 2


def test_a_row_that_begins_inside_a_word_keeps_to_itself():
    pieces = ragged([LAW], [TION, LAW], [], [LAW, TION], [TION])
    whole = WholeWords.fit(ragged([LAW, LAW]), VOCABULARY)
    assert rows_of(whole(pieces)) == [[1], [UNKNOWN, 1], [], [UNKNOWN], [UNKNOWN]]


def test_marks_at_the_start_of_words_do_as_well():
    vocabulary = ["<pad>", "Ġlaw", "s", "Ġact"]
    pieces = ragged([1, 2, 3, 2], [1, 2, 1])
    whole = WholeWords.fit(ragged([1, 2, 1, 2, 3, 2, 3, 2, 1, 1]), vocabulary)
    assert [len(row) for row in rows_of(whole(pieces))] == [2, 2]
    assert rows_of(whole(pieces))[0][0] == rows_of(whole(pieces))[1][0]


def test_words_need_no_putting_together():
    assert WholeWords.fit(ragged([1, 2]), ["<padding>", "law", "act"]) is None


@given(st.lists(st.lists(st.integers(2, 7), max_size=9), min_size=1, max_size=5))
def test_a_row_does_not_depend_on_the_others(rows):
    whole = WholeWords.fit(ragged([LAW, RE, GULA, ACT] * 2, *rows, *rows), VOCABULARY)
    together = rows_of(whole(ragged(*rows)))
    assert together == [rows_of(whole(ragged(row)))[0] for row in rows]
    assert [len(row) for row in together] == [
        sum(place == 0 or piece not in (GULA, TION, S) for place, piece in enumerate(row)) for row in rows
    ]
