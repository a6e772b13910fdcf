"""Word pieces make up the words they were cut from."""

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Metaspace
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer

from nlpcapsule.data.encoded import encode_texts
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.lexical.arrays import load_arrays, save_arrays
from nlpcapsule.lexical.name_match import NameMatch, word_texts
from nlpcapsule.lexical.whole_words import UNKNOWN, WholeWords

VOCABULARY = ["[PAD]", "[UNK]", "law", "re", "##gula", "##tion", "act", "##s"]
LAW, RE, GULA, TION, ACT, S = range(2, 8)

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
TEXTS = [
    "The cheese, the milk and the butter.",
    "Cheese is made of milk; butter (of cream) is not cheese.",
] * 2
both_kinds = pytest.mark.parametrize("mark", ["Ġ", "▁"])


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


def test_word_pieces_keep_the_hashes_that_saved_models_hold():
    pieces = ragged([LAW, RE, GULA, TION, ACT, S], [LAW, RE, GULA, TION, ACT, S])
    whole = WholeWords.fit(pieces, VOCABULARY)
    assert whole.hashes.tolist() == [0x07EF489F5DC1B013, 0x0ABB8E4DE883AD04, 0x379F23918ABD1796]
    assert set(whole.to_arrays()) == {"continues", "hashes"}
    again = WholeWords.from_arrays({"continues": whole.pieces.continues, "hashes": whole.hashes})
    assert rows_of(again(pieces)) == rows_of(whole(pieces)) == [[1, 3, 2]] * 2


def test_words_need_no_putting_together():
    assert WholeWords.fit(ragged([1, 2]), ["<padding>", "law", "act"]) is None
    assert WholeWords.fit(ragged([1, 2]), ["<padding>", "law", "##", "Ġ", "▁"]) is None


@given(st.lists(st.lists(st.integers(2, 7), max_size=9), min_size=1, max_size=5))
def test_a_row_does_not_depend_on_the_others(rows):
    whole = WholeWords.fit(ragged([LAW, RE, GULA, ACT] * 2, *rows, *rows), VOCABULARY)
    together = rows_of(whole(ragged(*rows)))
    assert together == [rows_of(whole(ragged(row)))[0] for row in rows]
    assert [len(row) for row in together] == [
        sum(place == 0 or piece not in (GULA, TION, S) for place, piece in enumerate(row)) for row in rows
    ]


@cache
def tokenizer(mark):
    """As RoBERTa's ("Ġ", bytes) or as SentencePiece's ("▁"), too small to know every word by one piece."""
    pieces = Tokenizer(BPE(unk_token=None if mark == "Ġ" else "<unk>"))
    pieces.pre_tokenizer = ByteLevel(add_prefix_space=False) if mark == "Ġ" else Metaspace()
    alphabet = ByteLevel.alphabet() if mark == "Ġ" else []
    trainer = BpeTrainer(
        vocab_size=350, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    pieces.train_from_iterator(TEXTS, trainer)
    pieces.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return WordTokenizer(pieces, padding_id=1, unknown_id=3)


def encoded(mark, *texts):
    return encode_texts(texts, tokenizer(mark), max_tokens=200)


def words_of(mark, *texts):
    """Each text's words, as they are written."""
    tokens, vocabulary = encoded(mark, *texts * 2), tokenizer(mark).vocabulary
    whole = WholeWords.fit(tokens, vocabulary)
    written = word_texts(whole, tokens, vocabulary)
    return [[written[word] for word in row] for row in rows_of(whole(tokens))[: len(texts)]]


@both_kinds
def test_special_tokens_and_punctuation_are_words_of_their_own(mark):
    assert [" ".join(words) for words in words_of(mark, *TEXTS[:2])] == [
        "<s> The cheese , the milk and the butter . </s>",
        "<s> Cheese is made of milk ; butter ( of cream ) is not cheese . </s>",
    ]


@both_kinds
def test_a_word_is_the_same_at_the_beginning_and_behind_a_space(mark):
    whole = WholeWords.fit(encoded(mark, *TEXTS), tokenizer(mark).vocabulary)
    asked = encoded(mark, "cheese", "the cheese", "(cheese)", "cheese, milk")
    first, second, third, fourth = rows_of(whole(asked))
    cheese = second[2]
    assert cheese != UNKNOWN
    assert first[1] == third[2] == fourth[1] == cheese
    if mark == "Ġ":  # else the tokenizer puts the mark there itself
        assert asked[0].tolist()[1:-1] != asked[1].tolist()[2:-1]


def test_characters_whose_bytes_are_parted_are_put_together():
    text = "„Käse“ – naïve क़िला \U0001f9c0 x²"
    assert len(encoded("Ġ", "„")[0]) > 3  # a piece per byte
    assert words_of("Ġ", text)[0] == [
        "<s>",
        "„",
        "Käse",
        "“",
        "–",
        "naïve",
        "क़िला",
        "\U0001f9c0",
        "x²",
        "</s>",
    ]


def test_bytes_that_sentencepiece_falls_back_to_spell_characters():
    vocabulary = ["<s>", "▁K", "<0xC3>", "<0xA4>", "se", "▁"]
    tokens = ragged([0, 1, 2, 3, 4, 5, 1, 2], [0, 1, 2, 3, 4])
    whole = WholeWords.fit(tokens, vocabulary)
    assert "Käse" in word_texts(whole, tokens, vocabulary)
    assert rows_of(whole(tokens))[0][:2] == rows_of(whole(tokens))[1]


@settings(deadline=None)  # the first example trains the tokenizer
@given(st.text(max_size=30))
@example("\x1c0:")
def test_words_leave_nothing_out_and_do_not_mix_letters_with_other_characters(text):
    words = words_of("Ġ", text)[0]
    assert (words[0], words[-1]) == ("<s>", "</s>")
    assert "".join(words[1:-1]) == "".join(text.split()).replace("\x1c", "")
    for word in words[1:-1]:
        if word.isascii():
            assert len({character.isalnum() for character in word}) == 1


@both_kinds
def test_a_text_that_names_a_special_token_holds_none(mark):
    whole = WholeWords.fit(encoded(mark, "<s>", "<s>"), tokenizer(mark).vocabulary)
    special, text = rows_of(whole(encoded(mark, "", "<s>")))
    assert special == [text[0], text[-1]]
    assert special[0] not in text[1:]


@both_kinds
def test_a_piece_that_begins_as_word_pieces_do_changes_nothing(mark):
    vocabulary = [*tokenizer(mark).vocabulary, "####"]
    tokens = encoded(mark, *TEXTS)
    with_it, without = (WholeWords.fit(tokens, names) for names in (vocabulary, vocabulary[:-1]))
    assert rows_of(with_it(tokens)) == rows_of(without(tokens))


@both_kinds
def test_spelled_words_come_back_from_disk(mark, tmp_path):
    tokens = encoded(mark, *TEXTS)
    whole = WholeWords.fit(tokens, tokenizer(mark).vocabulary)
    save_arrays(tmp_path / "words.safetensors", **whole.to_arrays())
    again = WholeWords.from_arrays(load_arrays(tmp_path / "words.safetensors"))
    asked = encoded(mark, *TEXTS, "Butter, milk & cheese", "")
    assert rows_of(again(asked)) == rows_of(whole(asked))
    assert again.size == whole.size


@both_kinds
def test_names_are_found_in_documents(mark):
    vocabulary = tokenizer(mark).vocabulary
    tokens = encoded(mark, *TEXTS, "no such thing", "no such thing")
    whole = WholeWords.fit(tokens, vocabulary)
    names = [whole(encoded(mark, name)) for name in ("cheese", "thing", "made of milk")]
    match = NameMatch.fit(
        names, np.ones(3, dtype=bool), whole(tokens), word_texts(whole, tokens, vocabulary), (UNKNOWN,)
    )
    found = match(whole(encoded(mark, "of such cheese, made of milk")), np.array([[0, 1, 2]]))[0, :, 0]
    assert found[0] > 0
    assert found[1] == 0
    assert found[2] > found[0]
