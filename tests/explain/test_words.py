"""Words of a text are found in its tokens, pieces joined, mentions together."""

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.explain.words import each_left_out, find_words, without

TEXT = "The lamp is dark, and the Lamp-post too."


def words_of(text, tokenizer=None):
    tokenizer = tokenizer or WordTokenizer.train([text], min_count=1)
    tokens = tokenizer.encode_with_offsets(text, 100)
    return tokens, find_words(text, tokens)


def test_mentions_are_one_word_whatever_their_case_and_punctuation_is_none():
    _, words = words_of(TEXT)
    assert [word.text for word in words] == ["The", "lamp", "is", "dark", "and", "post", "too"]
    (lamp,) = [word for word in words if word.text == "lamp"]
    assert [TEXT[start:end] for start, end in lamp.spans] == ["lamp", "Lamp"]


@pytest.mark.parametrize("text", ["東京の天気", "กขค"])
def test_every_character_is_a_word_where_there_are_no_spaces(text):
    assert len(words_of(text)[1]) == len(text)


def test_pieces_are_joined_to_words():
    vocabulary = ["[PAD]", "[UNK]", "street", "##lamp", "##s", "are", "dark"]
    tokenizer = Tokenizer(WordPiece({word: id for id, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    text = "streetlamps are dark streetlamps"
    _, words = words_of(text, WordTokenizer(tokenizer, 0, 1))
    assert [(word.text, len(word.positions)) for word in words] == [
        ("streetlamps", 6),
        ("are", 1),
        ("dark", 1),
    ]
    assert [text[start:end] for start, end in words[0].spans] == ["streetlamps", "streetlamps"]


def test_leaving_words_out_keeps_the_order_of_the_others():
    tokens, words = words_of("a b a c")
    a, b, c = words
    assert without(tokens.ids, [a], 1).tolist() == tokens.ids[[1, 3]].tolist()
    assert without(tokens.ids, [a, c], 1).tolist() == tokens.ids[[1]].tolist()
    assert without(tokens.ids, [a, b, c], 7).tolist() == [7]
    rows = each_left_out(tokens.ids, [b, c], 1)
    assert [len(row) for row in rows] == [4, 3, 3]
    assert np.array_equal(rows[0], tokens.ids)


def test_a_text_without_words_has_none():
    assert words_of("…", WordTokenizer.train(["a"], min_count=1))[1] == []
