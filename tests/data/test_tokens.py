"""Texts become the ids they should, whatever the script, the tokenizer file or the damage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from nlpcapsule.data.tokens import CHARACTERS_PER_TOKEN, WordTokenizer
from nlpcapsule.errors import DataError


def words_of(text: str) -> list[str]:
    """The tokens of a text, read back through a vocabulary trained on that very text."""
    tokenizer = WordTokenizer.train([text], min_count=1)
    return [tokenizer.vocabulary[id] for id in tokenizer.encode([text], max_tokens=1000)[0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World!  It's 3.5%", ["hello", ",", "world", "!", "it", "'", "s", "3", ".", "5", "%"]),
        ("ﬁne ＡＢＣ①", ["fine", "abc1"]),
        ("cafe\u0301 CAFÉ", ["café", "café"]),
        ("東京タワー abc行く", ["東", "京", "タ", "ワ", "ー", "abc", "行", "く"]),
        ("ที่ไทย", ["ที่", "ไ", "ท", "ย"]),
        ("ລາວ ខ្មែរ မြန်", ["ລ", "າ", "ວ", "ខ្", "មែ", "រ", "မြ", "န်"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("안녕하세요 세계", ["안녕하세요", "세계"]),
        ("Привет, мир", ["привет", ",", "мир"]),
        ("می\u200cخواهم co\u00adop one\u200btwo", ["میخواهم", "coop", "one", "two"]),
        ("tabs\tand\x00nulls\nlines\u2028ends", ["tabs", "and", "nulls", "lines", "ends"]),
        ("[PAD] snake_case", ["[", "pad", "]", "snake", "_", "case"]),
    ],
)
def test_words_of_many_scripts(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_vocabulary_is_ordered_by_count_then_word_after_the_special_tokens() -> None:
    tokenizer = WordTokenizer.train(["b a c c", "a b once"], min_count=2)
    assert tokenizer.vocabulary == ["[PAD]", "[UNK]", "a", "b", "c"]
    assert (tokenizer.padding_id, tokenizer.unknown_id, tokenizer.size) == (0, 1, 5)


def test_vocabulary_size_keeps_the_most_frequent_words_and_counts_the_special_tokens() -> None:
    tokenizer = WordTokenizer.train(["z z z y y x"], vocabulary_size=4, min_count=1)
    assert tokenizer.vocabulary == ["[PAD]", "[UNK]", "z", "y"]


def test_training_twice_gives_the_same_json_however_the_texts_arrive() -> None:
    rng = np.random.default_rng(0)
    words = [f"word{rank}" for rank in rng.integers(0, 300, size=5000)]
    texts = [" ".join(words[start : start + 20]) for start in range(0, 5000, 20)]
    once = WordTokenizer.train(texts, vocabulary_size=200).to_json()
    assert WordTokenizer.train(iter(texts), vocabulary_size=200).to_json() == once
    larger_pieces = [" ".join(texts[start : start + 7]) for start in range(0, len(texts), 7)]
    assert WordTokenizer.train(reversed(larger_pieces), vocabulary_size=200).to_json() == once


@pytest.mark.parametrize("texts", [[], [""], ["all words once only"]])
def test_training_without_a_frequent_word_says_what_to_do(texts: list[str]) -> None:
    with pytest.raises(DataError, match=r"no word occurs 2 times.*lower min_count"):
        WordTokenizer.train(texts)


def test_json_round_trip_keeps_every_id() -> None:
    tokenizer = WordTokenizer.train(["ein Wort, ein Satz, 東京 東京"])
    again = WordTokenizer.from_json(tokenizer.to_json())
    assert again.to_json() == tokenizer.to_json()
    assert again.vocabulary == tokenizer.vocabulary
    text = "ein Satz, 東 und mehr"
    assert again.encode([text], 50)[0].tolist() == tokenizer.encode([text], 50)[0].tolist()


@given(st.lists(st.text(st.characters(codec=None), max_size=30), max_size=5), st.integers(1, 6))
@settings(max_examples=50, deadline=None)
def test_any_text_gives_between_one_and_max_tokens_known_ids(texts: list[str], max_tokens: int) -> None:
    encoded = TOKENIZER.encode(texts, max_tokens)
    assert len(encoded) == len(texts)
    for ids in encoded:
        assert ids.dtype == np.int32
        assert 1 <= len(ids) <= max_tokens
        assert ((ids > TOKENIZER.padding_id) & (ids < TOKENIZER.size)).all()


TOKENIZER = WordTokenizer.train(["the law of the land , and the land"], min_count=1)


@pytest.mark.parametrize("text", ["", "  \n\t", "\u00ad\u200b"])
def test_a_text_without_tokens_is_one_unknown_word(text: str) -> None:
    assert TOKENIZER.encode([text], 5)[0].tolist() == [TOKENIZER.unknown_id]


def test_a_lone_surrogate_does_not_stop_training_or_encoding() -> None:
    tokenizer = WordTokenizer.train(["half \ud83d pair"], min_count=1)
    assert "half" in tokenizer.vocabulary
    assert len(tokenizer.encode(["half \ud83d pair"], 10)[0]) == 3


def test_more_texts_than_one_batch_come_back_in_order() -> None:
    tokenizer = WordTokenizer.train([" ".join(f"w{i}" for i in range(1300))], min_count=1)
    encoded = tokenizer.encode([f"w{i}" for i in range(1300)], 3)
    assert [tokenizer.vocabulary[ids[0]] for ids in encoded] == [f"w{i}" for i in range(1300)]


def test_of_a_very_long_text_only_the_lead_is_read() -> None:
    long_text = " " * 1000 + "the law " * 1_000_000
    ids = TOKENIZER.encode([long_text], 100)[0]
    assert ids.tolist() == TOKENIZER.encode(["the law " * 50], 100)[0].tolist()
    longest = 100 * CHARACTERS_PER_TOKEN
    assert len(TOKENIZER.encode(["x" * (longest - 4) + " law"], 100)[0]) == 2
    assert len(TOKENIZER.encode(["x" * longest + " law"], 100)[0]) == 1


def word_piece_tokenizer() -> Tokenizer:
    vocabulary = ["[UNK]", "[CLS]", "play", "##ing", "[SEP]", "<filler>", "chess"]
    tokenizer = Tokenizer(
        models.WordPiece({piece: id for id, piece in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "<filler>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 4), ("[CLS]", 1))
    tokenizer.enable_padding(pad_id=5, pad_token="<filler>", length=32)
    tokenizer.enable_truncation(3)
    return tokenizer


@pytest.fixture
def word_piece_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    word_piece_tokenizer().save(str(path))
    return path


def test_a_word_piece_file_keeps_its_special_tokens_and_loses_its_padding_and_truncation(
    word_piece_file: Path,
) -> None:
    tokenizer = WordTokenizer.from_file(word_piece_file)
    assert (tokenizer.padding_id, tokenizer.unknown_id, tokenizer.size) == (5, 0, 7)
    short, long = tokenizer.encode(["playing chess poker", "chess " * 50], 8)
    assert short.tolist() == [1, 2, 3, 6, 0, 4]
    assert long.tolist() == [1, 6, 6, 6, 6, 6, 6, 4]
    assert tokenizer.encode(["chess chess"], 1)[0].tolist() == [1]
    assert tokenizer.encode([""], 8)[0].tolist() == [1, 4]


def test_special_tokens_written_in_a_text_are_only_text(word_piece_file: Path) -> None:
    tokenizer = WordTokenizer.from_file(word_piece_file)
    ids = tokenizer.encode(["chess [SEP] <filler> chess"], 20)[0].tolist()
    assert ids[0] == 1
    assert ids[-1] == 4
    assert not {1, 4, tokenizer.padding_id} & set(ids[1:-1])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello, World", ["Hello", ",", "World"]),
        (" Привет  мир ", ["Привет", "мир"]),
        ("東京 abc行", ["東", "京", "abc", "行"]),
        ("ﬁne ＡＢＣ①", ["ﬁne", "ＡＢＣ①"]),
        ("co\u00adop one\u200btwo", ["co\u00adop", "one", "two"]),
        ("a 😀 né", ["a", "😀", "né"]),
        ("half \ud83d pair", ["half", "\ud83d", "pair"]),
    ],
)
def test_offsets_cut_the_words_out_of_the_text_as_it_was_given(text: str, found: list[str]) -> None:
    tokens = WordTokenizer.train([text], min_count=1).encode_with_offsets(text, 50)
    assert [text[start:end] for start, end in tokens.offsets] == found
    assert tokens.offsets.shape == (len(found), 2)


@given(st.text(st.characters(codec=None), max_size=60), st.integers(1, 6))
@settings(max_examples=50, deadline=None)
def test_tokens_with_offsets_are_those_without(text: str, max_tokens: int) -> None:
    for tokenizer in (TOKENIZER, WordTokenizer.from_json(word_piece_tokenizer().to_str())):
        tokens = tokenizer.encode_with_offsets(text, max_tokens)
        expected = tokenizer.encode([text], max_tokens)[0]
        assert tokens.ids.dtype == expected.dtype
        assert tokens.ids.tolist() == expected.tolist()
        assert tokens.offsets.shape == (len(expected), 2)
        assert (tokens.offsets[:, 0] <= tokens.offsets[:, 1]).all()
        assert (tokens.offsets <= len(text)).all()


def test_special_tokens_stand_nowhere_in_the_text(word_piece_file: Path) -> None:
    tokenizer = WordTokenizer.from_file(word_piece_file)
    text = "playing né chess"
    assert tokenizer.encode_with_offsets(text, 8).offsets.tolist() == [
        [0, 0],
        *([0, 4], [4, 7]),
        [8, 10],
        [11, 16],
        [0, 0],
    ]
    assert tokenizer.encode_with_offsets(text, 4).offsets.tolist() == [[0, 0], [0, 4], [4, 7], [0, 0]]
    assert tokenizer.encode_with_offsets("", 4).offsets.tolist() == [[0, 0], [0, 0]]


def test_offsets_of_a_long_text_count_the_space_before_it(word_piece_file: Path) -> None:
    text = "\n" * 7 + "chess " * 200
    for tokenizer, ids in (
        (WordTokenizer.train([text], min_count=1), [2, 2, 2]),
        (WordTokenizer.from_file(word_piece_file), [1, 6, 4]),
    ):
        tokens = tokenizer.encode_with_offsets(text, 3)
        assert tokens.ids.tolist() == ids
        for id, (start, end) in zip(ids, tokens.offsets, strict=True):
            assert text[start:end] == ("" if id in (1, 4) else "chess")
            assert id not in (1, 4) or start == 0


def test_a_text_without_tokens_has_one_unknown_word_that_stands_nowhere() -> None:
    tokens = TOKENIZER.encode_with_offsets(" \n", 5)
    assert (tokens.ids.tolist(), tokens.offsets.tolist()) == ([TOKENIZER.unknown_id], [[0, 0]])


def test_a_padding_token_with_its_own_name_survives_the_round_trip(word_piece_file: Path) -> None:
    tokenizer = WordTokenizer.from_file(word_piece_file)
    assert WordTokenizer.from_json(tokenizer.to_json()).padding_id == 5


def test_a_byte_level_file_without_an_unknown_token_is_read() -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(["low lower lowest"], trainer)
    wrapped = WordTokenizer.from_json(tokenizer.to_str())
    assert wrapped.padding_id == tokenizer.token_to_id("<|endoftext|>")
    assert wrapped.unknown_id != wrapped.padding_id
    assert wrapped.encode(["lower", ""], 10)[0].tolist() == tokenizer.encode("lower").ids
    assert wrapped.encode([""], 10)[0].tolist() == [wrapped.unknown_id]


def test_a_unigram_file_names_its_unknown_token_by_id() -> None:
    tokenizer = Tokenizer(models.Unigram([("<pad>", 0.0), ("a", -1.0), ("<oov>", 0.0)], unk_id=2))
    wrapped = WordTokenizer.from_json(tokenizer.to_str())
    assert (wrapped.padding_id, wrapped.unknown_id) == (0, 2)


def test_a_file_without_padding_token_says_which_names_would_do() -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    with pytest.raises(DataError, match=r"no padding token.*<pad>"):
        WordTokenizer.from_json(tokenizer.to_str())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.json: there is no such tokenizer file"):
        WordTokenizer.from_file(tmp_path / "absent.json")


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"model": {"type": "Fancy"}}', b"\xff\xfe\x00"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"tokenizer\.json"):
        WordTokenizer.from_file(path)


def test_a_file_cut_short_is_refused_wherever_it_was_cut() -> None:
    whole = TOKENIZER.to_json()
    for length in range(0, len(whole), 37):
        with pytest.raises(DataError):
            WordTokenizer.from_json(whole[:length])


def test_gaps_between_ids_leave_empty_places_in_the_vocabulary() -> None:
    written = json.loads(TOKENIZER.to_json())
    written["model"]["vocab"]["far"] = 12
    tokenizer = WordTokenizer.from_json(json.dumps(written))
    assert tokenizer.size == 13
    assert tokenizer.vocabulary[11:] == ["", "far"]
