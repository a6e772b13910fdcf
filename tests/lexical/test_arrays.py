"""Arrays come back as they were; a sparse matrix that compiled code would stumble over is refused."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from scipy import sparse

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.arrays import check_array, check_range, load_arrays, save_arrays, single_integer

MATRIX = sparse.csr_matrix(np.array([[0, 1, 2], [0, 0, 3]], dtype=np.float32))


@pytest.fixture
def path(tmp_path):
    save_arrays(tmp_path / "a.safetensors", words=np.arange(3.0), matrix=MATRIX)
    return tmp_path / "a.safetensors"


def edit(path, change):
    """Changes arrays and leaves the checksum out, as somebody who means it might."""
    arrays = {name: array.copy() for name, array in load_file(path).items()}
    change(arrays)
    save_file(arrays, path)


def test_arrays_come_back(path):
    arrays = load_arrays(path, needs_checksum=True)
    assert set(arrays) == {"words", "matrix"}
    assert arrays["words"].tolist() == [0, 1, 2]
    assert (arrays["matrix"].toarray() == MATRIX.toarray()).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays["matrix.indices"].__setitem__(0, 3),
        lambda arrays: arrays["matrix.indices"].__setitem__(0, -1),
        lambda arrays: arrays["matrix.indptr"].__setitem__(1, 2**30),
        lambda arrays: arrays["matrix.indptr"].__setitem__(0, 1),
        lambda arrays: arrays["matrix.indptr"].__setitem__(1, -1),
        lambda arrays: arrays["matrix.data"].__setitem__(0, np.nan),
        lambda arrays: arrays["matrix.shape"].__setitem__(0, 2**60),
        lambda arrays: arrays["matrix.shape"].__setitem__(1, 1),
        lambda arrays: arrays.update({"matrix.shape": np.array([2, 3, 1])}),
        lambda arrays: arrays.update({"matrix.indices": arrays["matrix.indices"].astype(np.float32)}),
        lambda arrays: arrays.update({"matrix.data": arrays["matrix.data"][:-1]}),
        lambda arrays: arrays.pop("matrix.indices"),
    ],
)
def test_a_sparse_matrix_that_leads_outside_itself_is_refused(path, change):
    edit(path, change)
    with pytest.raises(ModelFolderError, match=r"a\.safetensors is damaged: matrix is no sparse matrix"):
        load_arrays(path)


def test_a_single_changed_bit_is_noticed(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFolderError, match="its numbers are not those that were written"):
        load_arrays(path)


def test_a_checkpoint_needs_its_checksum(path):
    edit(path, lambda arrays: None)
    load_arrays(path)
    with pytest.raises(ModelFolderError, match="its numbers are not those that were written"):
        load_arrays(path, needs_checksum=True)


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8 + b"{}", b"\x02\0\0\0\0\0\0\0{}x", b"\x08\0\0\0\0\0\0\0[[[[[[[["]
)
def test_a_file_that_is_no_safetensors_file_is_refused(tmp_path, content):
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(ModelFolderError, match=r"a\.safetensors is damaged"):
        load_arrays(tmp_path / "a.safetensors")


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ModelFolderError, match="idf is missing"):
        check_array(None, "idf", (3,))
    with pytest.raises(ModelFolderError, match=r"idf has the shape \(2,\), .* ask for \(3,\)"):
        check_array(np.zeros(2), "idf", (3,))
    with pytest.raises(ModelFolderError, match="idf is made of int64"):
        check_array(np.zeros(3, dtype=np.int64), "idf", (3,))
    with pytest.raises(ModelFolderError, match="infinite or NaN"):
        check_array(np.array([0, np.inf, 0]), "idf", (3,))
    with pytest.raises(ModelFolderError, match="not between 0 and 4"):
        check_range(np.array([0, 5]), "labels", 0, 4)
    with pytest.raises(ModelFolderError, match="it is not one integer"):
        single_integer(np.array([1.0]), "label_count")
    assert single_integer(np.array([7]), "label_count") == 7
    check_array(MATRIX, "matrix", (2, 3))
