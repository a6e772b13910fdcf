"""A data set as compact arrays comes back as it was."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_texts import WORDS
from tiny_data import tiny_parts
from tiny_transformer import CLS, PAD, SEP, write_tokenizer

from benchmarks.encoded_parts import EncodedParts, load_documents, save_documents
from nlpcapsule.data.encoded import EncodedDocuments, encode_texts
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.encoders.windowed_transformer import cut_windows
from nlpcapsule.errors import DataError


@pytest.mark.parametrize("vectors", [True, False])
def test_a_data_set_comes_back_as_it_was(tmp_path, vectors):
    parts = tiny_parts(vectors)
    parts.save(tmp_path / "folder")
    loaded = EncodedParts.load(tmp_path / "folder")
    assert (loaded.name, loaded.fingerprint()) == ("letters", parts.fingerprint())
    assert loaded.tokenizer.to_json() == parts.tokenizer.to_json()
    assert loaded.labels.ids == parts.labels.ids
    assert loaded.labels.counts.tolist() == parts.labels.counts.tolist()
    for part in ("train", "select", "report"):
        before, after = getattr(parts, part), getattr(loaded, part)
        assert [row.tolist() for row in after.tokens] == [row.tolist() for row in before.tokens]
        assert [row.tolist() for row in after.labels] == [row.tolist() for row in before.labels]
    if vectors:
        assert loaded.vectors.dtype == np.float32
        np.testing.assert_allclose(loaded.vectors, parts.vectors, rtol=1e-3)  # two bytes a number
    else:
        assert loaded.vectors is None


@pytest.mark.parametrize("part", ["train", "select", "report"])
def test_the_fingerprint_sees_a_change_in_any_part(part):
    parts = tiny_parts()
    fewer = getattr(parts, part).take(range(len(getattr(parts, part)) - 1))
    assert replace(parts, **{part: fewer}).fingerprint() != parts.fingerprint()


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"not a folder of encoded documents \(about\.json is missing\)"):
        EncodedParts.load(tmp_path)


TEXTS = [" ".join(WORDS[:count]) for count in (0, 1, 5, 6, 7, 18)] + [" ".join(["nowhere"] * 12)]


def in_tokens_of(tokenizer, length=16):
    """Parts whose training documents are `TEXTS`."""
    tokens = encode_texts(TEXTS, tokenizer, length)
    return replace(
        tiny_parts(),
        tokenizer=tokenizer,
        train=EncodedDocuments(tokens, Ragged.from_rows([[0]] * len(tokens))),
    )


@pytest.mark.parametrize("length", [1, 2, 3, 8, 15, 16, 17])
@pytest.mark.parametrize("marks", ["[CLS] $A [SEP]", "$A [SEP]", "[CLS] $A", None])
def test_cut_rows_are_those_of_texts_read_so_far(tmp_path, length, marks):
    path = tmp_path / "tokenizer.json"
    write_tokenizer(path, special_tokens=marks is not None)
    if marks is not None:
        path.write_text(with_template(path.read_text(), marks))
    tokenizer = WordTokenizer.from_file(path)
    cut = in_tokens_of(tokenizer).cut(length).train.tokens
    direct = tokenizer.encode(TEXTS, min(length, 16))
    assert [row.tolist() for row in cut] == [row.tolist() for row in direct]


def with_template(text, template):
    """A tokenizer.json with other special tokens around a text."""
    settings = json.loads(text)
    names = {"$A": {"Sequence": {"id": "A", "type_id": 0}}}
    names |= {mark: {"SpecialToken": {"id": mark, "type_id": 0}} for mark in ("[CLS]", "[SEP]")}
    settings["post_processor"]["single"] = [names[word] for word in template.split()]
    return json.dumps(settings)


def test_every_window_of_a_cut_row_ends_with_the_last_mark(tmp_path):
    write_tokenizer(tmp_path / "tokenizer.json")
    cut = in_tokens_of(WordTokenizer.from_file(tmp_path / "tokenizer.json")).cut(9).train.tokens
    rows = torch.from_numpy(cut.padded(range(len(cut)), PAD))
    windows = cut_windows(rows, PAD, window=5)
    ends = windows.tokens.gather(1, windows.mask.sum(dim=1, keepdim=True) - 1)
    assert set(ends.flatten().tolist()) == {SEP}
    assert set(windows.tokens[:, 0].tolist()) == {CLS}


def test_rows_of_a_word_tokenizer_are_simply_cut():
    parts = tiny_parts()
    for part in ("train", "select", "report"):
        before, after = (getattr(x, part).tokens for x in (parts, parts.cut(7)))
        assert [row.tolist() for row in after] == [row[:7].tolist() for row in before]


@pytest.mark.parametrize("largest", [5, 70_000])
def test_a_file_gives_the_same_documents_back(tmp_path, largest):
    saved = EncodedDocuments(Ragged.from_rows([[2, 3], [largest]]), Ragged.from_rows([[0], [1, 2]]))
    save_documents(saved, tmp_path / "a.safetensors")
    loaded = load_documents(tmp_path / "a.safetensors")
    assert [row.tolist() for row in loaded.tokens] == [[2, 3], [largest]]
    assert [row.tolist() for row in loaded.labels] == [[0], [1, 2]]
    assert loaded.tokens.values.dtype == np.int32
    assert loaded.fingerprint() == saved.fingerprint()


def test_token_ids_that_fit_take_two_bytes(tmp_path):
    for name, token in (("small", 2**16 - 1), ("large", 2**16)):
        documents = EncodedDocuments(Ragged.from_rows([[token] * 5000]), Ragged.from_rows([[0]]))
        save_documents(documents, tmp_path / name)
    assert (tmp_path / "large").stat().st_size - (tmp_path / "small").stat().st_size > 9_000
