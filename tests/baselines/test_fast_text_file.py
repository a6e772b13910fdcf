"""fastText's file is checked before the library reads it."""

import struct

import numpy as np
import pytest

from nlpcapsule.baselines.fast_text_file import check_fasttext_file
from nlpcapsule.errors import ModelFolderError

fasttext = pytest.importorskip("fasttext", reason="needs pip install 'nlpcapsule[fasttext]'")

SIZE, PREFIX = 4, "__label__"
ENTRIES = 8 + 12 * 4 + 8  # where the dictionary's sizes begin


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fasttext")
    rows = [f"{PREFIX}{number % 3} {number % 5} {number % 7} 11" for number in range(40)]
    (folder / "train.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    words = [*map(str, range(7)), "11", "</s>"]
    vectors = [
        f"{word} {' '.join(['0.1'] * SIZE)}" for word in words
    ]  # or they start as whatever is in memory
    (folder / "start.vec").write_text("\n".join([f"{len(words)} {SIZE}", *vectors]) + "\n", encoding="utf-8")
    model = fasttext.train_supervised(
        input=str(folder / "train.txt"),
        pretrainedVectors=str(folder / "start.vec"),
        dim=SIZE,
        loss="ova",
        thread=1,
        verbose=0,
        epoch=1,
    )
    model.save_model(str(folder / "model.bin"))
    return (folder / "model.bin").read_bytes()


def check(path, content, **changed):
    path.write_bytes(content)
    return check_fasttext_file(path, **{"size": SIZE, "loss": "ova", "prefix": PREFIX, **changed})


def test_a_whole_file_passes_and_names_its_labels(content, tmp_path):
    assert sorted(check(tmp_path / "a.bin", content)) == [0, 1, 2]


def test_every_cut_and_every_tail_is_noticed(content, tmp_path):
    for damaged in [*(content[:end] for end in range(len(content))), content + b"\0"]:
        with pytest.raises(ModelFolderError, match=r"a\.bin is damaged or belongs to another model"):
            check(tmp_path / "a.bin", damaged)


@pytest.mark.parametrize("number", [0, -1, 2**31 - 1])
@pytest.mark.parametrize(
    "place", [0, 4, 8, 8 + 5 * 4, 8 + 6 * 4, 8 + 7 * 4, ENTRIES, ENTRIES + 4, ENTRIES + 8]
)
def test_sizes_that_the_library_would_believe_are_refused(content, tmp_path, place, number):
    damaged = content[:place] + struct.pack("<i", number) + content[place + 4 :]
    with pytest.raises(ModelFolderError, match="is damaged or belongs to another model"):
        check(tmp_path / "a.bin", damaged)


def test_numbers_that_are_none_are_refused(content, tmp_path):
    damaged = content[:-4] + np.float32(np.nan).tobytes()
    with pytest.raises(ModelFolderError, match="infinite or NaN"):
        check(tmp_path / "a.bin", damaged)


def test_labels_that_are_no_ids_and_words_among_labels_are_refused(content, tmp_path):
    with pytest.raises(ModelFolderError, match="a label is called"):
        check(tmp_path / "a.bin", content.replace(b"__label__2", b"__label__x"))
    with pytest.raises(ModelFolderError, match="twice"):
        check(tmp_path / "a.bin", content.replace(b"__label__2", b"__label__1"))
    place = content.index(b"__label__1\0") + 11 + 8
    with pytest.raises(ModelFolderError, match="words and labels are mixed up"):
        check(tmp_path / "a.bin", content[:place] + b"\0" + content[place + 1 :])


def test_a_file_of_other_settings_is_refused(content, tmp_path):
    for changed in ({"size": SIZE + 1}, {"loss": "softmax"}):
        with pytest.raises(ModelFolderError, match="trained with other settings"):
            check(tmp_path / "a.bin", content, **changed)
    with pytest.raises(ModelFolderError, match="cannot be read"):
        check_fasttext_file(tmp_path / "nowhere.bin", SIZE, "ova", PREFIX)
