"""Damaged label names, word vectors and tokenizers: they are read, or refused in words."""

from __future__ import annotations

import gzip
import json
import random
from functools import partial
from pathlib import Path

import pytest
from text_faults import check, damaged
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.data.vectors import load_vectors, vector_words

NAMES = {
    "a.json": json.dumps(
        {"1": "school law", "2": {"name": "rain", "alternatives": ["drizzle"]}, "3": {"title": "x"}}
    ),
    "a.jsonl": '{"label": "1", "name": "school law", "alternatives": ["a"]}\n{"label": 2, "name": "rain"}\n',
    "a.csv": 'label,name,alternatives\n1,school law,"a;b"\n2,"rain, and\nsnow",\n',
    "a.tsv": "label\tname\n1\tschool law\n2\train\n",
}
VECTORS = {
    "glove.txt": "the 0.1 0.2 -0.3\ncat 1e-3 2 3\n. . . 4 5 6\ndog 7 8 9\n",
    "word2vec.txt": "3 2\nthe 0.1 0.2\ncat 1 2\ndog 3 4\n",
}
TEXTS = ["the cat", "", "a DOG, a bird!", "[PAD] [UNK] \ud83d", "é" * 50, "的猫", " " * 500 + "x"]


def read_names(path: Path) -> None:
    thesaurus = Thesaurus.read(path)
    for text in thesaurus.texts(["1", "2", "4"]):
        text.encode()
    thesaurus.to_json().encode()


def read_vectors(path: Path) -> None:
    load_vectors(path, ["", "the", "cat", "dog"])
    for word in vector_words(path):
        word.encode()


def use_tokenizer(path: Path) -> None:
    tokenizer = WordTokenizer.from_file(path)
    for max_tokens in (1, 20):
        for ids in tokenizer.encode(TEXTS, max_tokens):
            assert 0 <= ids.min() <= ids.max() < tokenizer.size
            assert 1 <= len(ids) <= max_tokens
    tokenizer.encode_with_offsets(TEXTS[2], 20)
    again = WordTokenizer.from_json(tokenizer.to_json())
    assert (again.padding_id, again.unknown_id) == (tokenizer.padding_id, tokenizer.unknown_id)


def tokenizers() -> dict[str, str]:
    """Tokenizers of each kind, as their files hold them."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "dog", "##s", "c", "##at"]
    vocabulary = {word: place for place, word in enumerate(words)}
    word_piece = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    word_piece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    word_piece.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    word_piece.enable_truncation(10)
    word_piece.enable_padding(pad_id=0, pad_token="[PAD]")
    letters = {
        "<pad>": 0,
        "<unk>": 1,
        **{letter: place + 2 for place, letter in enumerate("acdeghot")},
        "at": 10,
    }
    pairs = Tokenizer(models.BPE(letters, [("a", "t")], unk_token="<unk>"))
    pairs.pre_tokenizer = pre_tokenizers.Whitespace()
    unigram = Tokenizer(
        models.Unigram([("<unk>", 0.0), ("<pad>", 0.0), ("the", -1.0), ("c", -2.0)], unk_id=0)
    )
    ours = WordTokenizer.train(["the cat, the dog", "a bird"], min_count=1)
    found = {"word-piece": word_piece.to_str(), "bpe": pairs.to_str(), "unigram": unigram.to_str()}
    return {**found, "ours": ours.to_json()}


@pytest.mark.parametrize("name", NAMES)
def test_label_names(name: str, tmp_path: Path, fault_count: int) -> None:
    generator = random.Random(name)
    for trial in range(2 * fault_count):
        content, told = damaged(NAMES[name].encode(), generator)
        path = tmp_path / (name if trial % 4 else f"{name}.gz")
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        check(partial(read_names, path), told)


@pytest.mark.parametrize("name", VECTORS)
def test_word_vectors(name: str, tmp_path: Path, fault_count: int) -> None:
    generator = random.Random(name)
    for trial in range(2 * fault_count):
        content, told = damaged(VECTORS[name].encode(), generator)
        path = tmp_path / name
        path.write_bytes(content if trial % 4 else gzip.compress(content))
        check(partial(read_vectors, path), told)
        if trial % 4 == 0:
            broken, told = damaged(path.read_bytes(), generator)
            path.write_bytes(broken)
            check(partial(read_vectors, path), f"gzip, {told}")


@pytest.mark.parametrize("kind", ["word-piece", "bpe", "unigram", "ours"])
def test_tokenizers(kind: str, tmp_path: Path, fault_count: int) -> None:
    generator = random.Random(kind)
    content = tokenizers()[kind].encode()
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    use_tokenizer(path)
    for _ in range(4 * fault_count):
        changed, told = damaged(content, generator)
        path.write_bytes(changed)
        check(partial(use_tokenizer, path), told)


@pytest.mark.parametrize("read", [read_names, read_vectors, use_tokenizer])
def test_what_is_no_file(read, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    for place in (
        "/dev/zero",
        "/dev/null",
        tmp_path / "folder.json",
        tmp_path / "nowhere.json",
        "a\0b.json",
        "x" * 300,
    ):
        check(partial(read, Path(place)), str(place)[:40])
