"""Arrays come back as they were; a sparse matrix that compiled code would stumble over is refused."""

import json
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from scipy import sparse

from nlpcapsule.data.growing_array import GrowingArray
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical import arrays
from nlpcapsule.lexical.arrays import (
    check_array,
    check_range,
    is_finite,
    load_arrays,
    release,
    save_arrays,
    single_integer,
)

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


@pytest.fixture
def large(tmp_path):
    words = np.arange(2**20, dtype=np.float32)  # 4 MiB
    save_arrays(tmp_path / "large.safetensors", words=words, matrix=sparse.csr_matrix(words[:, None] + 1))
    return tmp_path / "large.safetensors"


def test_large_arrays_of_a_model_cannot_be_changed_and_those_of_a_checkpoint_can(large):
    found = load_arrays(large)
    for array in (found["words"], found["matrix"].data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    kept = load_arrays(large, needs_checksum=True)
    kept["words"][0] = kept["matrix"].data[0] = 5
    assert kept["words"][0] == kept["matrix"].data[0] == 5


@pytest.mark.parametrize(
    "kind",
    ["bool", "float16", "float32", "float64"] + [f"{u}int{8 << i}" for u in ("", "u") for i in range(4)],
)
def test_arrays_keep_their_type_and_shape(tmp_path, kind):
    arrays = {
        "some": np.arange(6).reshape(2, 3).astype(kind),
        "none": np.zeros((0, 4), kind),
        "one": np.array(1, kind),
    }
    save_arrays(tmp_path / "a.safetensors", **arrays)
    for name, found in load_arrays(tmp_path / "a.safetensors").items():
        assert (found.dtype, found.shape) == (arrays[name].dtype, arrays[name].shape)
        assert found.tolist() == arrays[name].tolist()


def test_numbers_at_odd_places_are_moved_to_even_ones(tmp_path):
    count = 2**20
    record = {"words": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}
    header = json.dumps(record).encode()
    header += b" " * (1 - len(header) % 2)
    content = len(header).to_bytes(8, "little") + header + np.arange(count, dtype=np.float32).tobytes()
    (tmp_path / "a.safetensors").write_bytes(content)
    words = load_arrays(tmp_path / "a.safetensors")["words"]
    assert words.flags.aligned
    assert words[[0, 1, -1]].tolist() == [0, 1, count - 1]


def test_releasing_memory_changes_no_array(large):
    grown = GrowingArray(np.int32)
    grown.append(np.zeros(2**22 + 1))  # in a file that is mapped into memory
    own, mapped = np.arange(3), grown.array()
    own[0] = mapped[0] = 7
    for array in (own, mapped, words := load_arrays(large)["words"]):
        release(array)
    assert (own[0], mapped[0]) == (7, 7)
    assert words[[0, 1, -1]].tolist() == [0, 1, 2**20 - 1]


_LOADING = """
import re, sys
from pathlib import Path
from nlpcapsule.lexical.arrays import check_array, load_arrays
def memory(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 2**10
before = memory("VmHWM")
words = load_arrays(Path(sys.argv[1]))["words"]
check_array(words, "words", words.shape)
print(memory("VmRSS") - before, memory("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the memory of a process")
def test_loading_takes_no_memory_for_numbers_that_are_not_in_use(tmp_path):
    save_arrays(tmp_path / "a.safetensors", words=np.arange(2**24, dtype=np.float32))  # 64 MiB
    command = [sys.executable, "-c", _LOADING, str(tmp_path / "a.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kept, most = map(float, done.stdout.split())
    assert kept < 16
    assert most < 64 + 32  # while it is checked, with a byte for each number


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


def test_a_single_changed_bit_of_a_checkpoint_is_noticed(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFolderError, match="its numbers are not those that were written"):
        load_arrays(path, needs_checksum=True)


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


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_found_in_any_part(number, monkeypatch):
    monkeypatch.setattr(arrays, "_AT_A_TIME", 4)
    assert is_finite(np.zeros(0, np.float32))
    assert is_finite(np.full((3, 3), 3e38, np.float32))
    for place in range(9):
        array = np.zeros((3, 3), np.float32)
        array.flat[place] = number
        assert not is_finite(array)


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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="elsewhere workers map the new file")
def test_workers_map_the_file_of_a_large_array_even_if_it_was_replaced(tmp_path):
    path, numbers = tmp_path / "a.safetensors", np.arange(2**19, dtype=np.float32)
    save_arrays(path, numbers=numbers)
    found = load_arrays(path)["numbers"]
    save_arrays(path, numbers=np.zeros_like(numbers))
    run = joblib.Parallel(n_jobs=2)
    (filename,) = run([joblib.delayed(mapped_from)(found)])
    assert path.name in str(filename) or "/fd/" in str(filename)
    totals = run(joblib.delayed(np.sum)(found[start:]) for start in (0, 7))
    np.testing.assert_allclose(totals, [numbers.sum(), numbers[7:].sum()])


def mapped_from(array):
    """Return the file that an array is mapped from; "nothing" if it is a copy."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return array.filename
        array = array.base
    return "nothing"
