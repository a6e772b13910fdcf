"""Word vectors land on the right rows, and a damaged file is refused with its line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nlpcapsule.data.vectors import load_vectors
from nlpcapsule.errors import DataError

VOCABULARY = ["[PAD]", "[UNK]", "cat", "dog", "zebra"]
GLOVE = "cat 1 2 3\nbird 4 5 6\ndog -0.5 1e-2 7\n"
DATA = Path(os.environ.get("NLPCAPSULE_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))
REAL_VECTORS = DATA / "vectors" / "glove.6B.100d.trimmed.txt.gz"


@pytest.fixture
def write(tmp_path: Path):
    def write_file(text: str, name: str = "vectors.txt") -> Path:
        path = tmp_path / name
        content = text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write_file


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz", "vectors.gz"])
@pytest.mark.parametrize("header", ["", "3 3\n"])
@pytest.mark.parametrize("line_end", ["\n", " \n", "\r\n"])
def test_glove_and_word2vec_plain_and_compressed_read_alike(
    write, name: str, header: str, line_end: str
) -> None:
    matrix, found = load_vectors(write((header + GLOVE).replace("\n", line_end), name), VOCABULARY)
    assert matrix.shape == (5, 3)
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix[2], [1, 2, 3])
    np.testing.assert_allclose(matrix[3], [-0.5, 0.01, 7])
    assert found == 2


def test_words_not_found_are_small_random_vectors_and_padding_is_zero(write) -> None:
    matrix = load_vectors(write(GLOVE), VOCABULARY)[0]
    assert (matrix[0] == 0).all()
    for row in (matrix[1], matrix[4]):
        assert (np.abs(row) <= 0.25).all()
        assert row.any()
    assert not np.array_equal(matrix[1], matrix[4])


def test_the_seed_decides_the_random_vectors(write) -> None:
    path = write(GLOVE)
    first, same, other = (load_vectors(path, VOCABULARY, seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first[4], other[4])
    np.testing.assert_array_equal(first[2], other[2])


def test_a_random_vector_does_not_depend_on_which_other_words_the_file_has(write) -> None:
    all_words = load_vectors(write(GLOVE), VOCABULARY)[0]
    one_word = load_vectors(write("cat 1 2 3\n", "smaller.txt"), VOCABULARY)[0]
    np.testing.assert_array_equal(all_words[4], one_word[4])


def test_padding_stays_zero_wherever_it_is_and_whatever_the_file_says(write) -> None:
    path = write("[PAD] 9 9 9\ncat 1 2 3\n")
    assert (load_vectors(path, ["cat", "dog", "[PAD]"], padding_id=2)[0][2] == 0).all()


def test_a_word_with_spaces_takes_the_last_fields_as_its_vector(write) -> None:
    path = write("the 0 0 0\n. . . 7 8 9\nat name@domain.com 4 5 6\n")
    matrix = load_vectors(path, ["[PAD]", ". . .", "at name@domain.com"])[0]
    np.testing.assert_allclose(matrix[1:], [[7, 8, 9], [4, 5, 6]])


def test_the_first_vector_of_a_repeated_word_counts(write) -> None:
    matrix, found = load_vectors(write("cat 1 2 3\ncat 9 9 9\n"), VOCABULARY)
    np.testing.assert_allclose(matrix[2], [1, 2, 3])
    assert found == 1


def test_words_that_are_unusual_spaces_or_line_separators_are_read_as_words(write) -> None:
    path = write("\u00a0 1 2\n\x85 3 4\n\u2028 5 6\ncat 7 8\n")
    matrix = load_vectors(path, ["[PAD]", "\u00a0", "\x85", "\u2028", "cat"])[0]
    np.testing.assert_allclose(matrix[1:], [[1, 2], [3, 4], [5, 6], [7, 8]])


def test_invalid_utf8_in_another_word_does_no_harm(write, tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"caf\xe9 1 2\ncat 3 4\n")
    np.testing.assert_allclose(load_vectors(path, VOCABULARY)[0][2], [3, 4])


def test_an_id_without_a_word_is_never_found(write) -> None:
    _, found = load_vectors(write("cat 1 2\n 3 4\n"), ["[PAD]", "", "cat"])
    assert found == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cat 1 2 3\ndog 1 2\n", "line 2: 2 numbers after the word, expected 3"),
        ("cat 1 2 3\ndog 1 2 3 4\n", "line 2: 4 numbers after the word, expected 3"),
        ("bird 1 2 3\n\nfish 1\ncat 1 2 3", "line 3: 1 numbers"),
        ("1 3\ncat 1 2\n", "line 2: 2 numbers after the word, expected 3"),
        ("cat\n", "line 1: a word without numbers"),
        ("bird 1 2\ncat 1 two\n", "line 2: 'two' is not a number"),
        ("cat 1 nan\n", "line 1: a number that is not finite"),
        ("cat -inf 1\n", "line 1: a number that is not finite"),
        ("cat 1e300 1\n", "line 1: a number that is not finite"),
        ("", "the file has no vectors"),
        ("\n\n", "the file has no vectors"),
        ("3 2\ncat 1 2\n", "header promises 3 words and the file has 1"),
        ("cat " + "1 " * 20_000 + "\n", "line 1: 20,000 numbers after the word, expected at most 16,384"),
        ("CAT 1 2\n", "none of the vocabulary's 5 words"),
    ],
)
def test_a_wrong_file_is_refused_with_path_and_line(write, text: str, problem: str) -> None:
    with pytest.raises(DataError, match=rf"vectors\.txt.*{problem}"):
        load_vectors(write(text), VOCABULARY)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.txt: there is no such file"):
        load_vectors(tmp_path / "absent.txt", VOCABULARY)


@pytest.mark.parametrize("kept", [5, 30, -9])
def test_a_damaged_archive_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(gzip.compress(GLOVE.encode())[:kept])
    with pytest.raises(DataError, match=r"vectors\.txt\.gz: (the gzip file is broken|it is named .gz)"):
        load_vectors(path, VOCABULARY)


@given(
    st.dictionaries(
        st.text(st.characters(categories=["L"]), min_size=1, max_size=6),
        st.lists(st.floats(-10, 10, width=32), min_size=4, max_size=4),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_what_is_read(tmp_path: Path, rows: dict[str, list[float]]) -> None:
    path = tmp_path / "written.txt"
    lines = [" ".join([word, *map(repr, numbers)]) for word, numbers in rows.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    matrix, found = load_vectors(path, ["[PAD]", *rows])
    assert found == len(rows)
    np.testing.assert_array_equal(matrix[1:], np.array(list(rows.values()), dtype=np.float32))


@pytest.mark.skipif(not REAL_VECTORS.exists(), reason="the real GloVe file is not here (set NLPCAPSULE_DATA)")
def test_related_words_are_near_in_the_real_vectors() -> None:
    matrix, found = load_vectors(REAL_VECTORS, ["[PAD]", "law", "legislation", "banana", "qzxqzx"])
    assert found == 3
    unit = matrix[1:4] / np.linalg.norm(matrix[1:4], axis=1, keepdims=True)
    assert unit[0] @ unit[1] > unit[0] @ unit[2] + 0.2
