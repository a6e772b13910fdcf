"""A data set as compact arrays comes back as it was."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_data import tiny_parts

from nlpcapsule.errors import DataError
from nlpcapsule.experiments.encoded_folder import EncodedParts


@pytest.mark.parametrize("vectors", [True, False])
def test_a_data_set_comes_back_as_it_was(tmp_path, vectors):
    parts = tiny_parts(vectors)
    parts.save(tmp_path / "folder")
    loaded = EncodedParts.load(tmp_path / "folder")
    assert (loaded.name, loaded.fingerprint()) == ("letters", parts.fingerprint())
    assert loaded.tokenizer.to_json() == parts.tokenizer.to_json()
    assert loaded.labels.names == parts.labels.names
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
