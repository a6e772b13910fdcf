"""Check omikuji's tree files before the library reads them: it does not validate indices.

A tree is CBOR: {"Branch": {"weights": W, "children": [tree, …]}} or {"Leaf": {"weights": W, "labels": […]}}.
W is {"Dense": {"v": 1, "dim": [columns, rows], "data": […]}} or {"Sparse": {…}}, column by column, with a row
per child or label and a column per feature, the constant feature's last.

The library writes each number in as few bytes as possible. `rewrite_tree`, which reads this trusted file with
cbor2, gives all numbers of an array the same size. Then the tree can be checked quickly, as arrays: Python
objects would take seconds and gigabytes.
"""

from pathlib import Path
from typing import Any

import numpy as np

from nlpcapsule.atomic_files import atomic_path
from nlpcapsule.errors import ModelFolderError, import_extra
from nlpcapsule.lexical.arrays import check_array, check_range
from nlpcapsule.strict_json import read_json

TREE_FILE, SETTINGS_FILE = "tree0.cbor", "settings.json"
_DEEPEST = 100  # levels: the library itself stops at 128
# An array's numbers of four bytes, each after its head byte, which is the key.
_NUMBERS = {
    head: np.dtype([("head", "u1"), ("number", kind)]) for head, kind in ((0x1A, ">u4"), (0xFA, ">f4"))
}
_INTEGER, _FLOAT = _NUMBERS


def check_tree(folder: Path, width: int, label_count: int) -> None:
    """Reject a tree that the library could not read, or that would make it read out of bounds.

    The tree is that of a model with `width` features and n labels.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
        if names != [SETTINGS_FILE, TREE_FILE]:
            raise ModelFolderError(f"expected {SETTINGS_FILE} and {TREE_FILE}, found {', '.join(names)}")
        settings = read_json(folder / SETTINGS_FILE)
        known = {"n_features": width, "classifier_loss_type": "Hinge"}
        if settings != known or isinstance(settings["n_features"], bool):
            raise ModelFolderError(f"{SETTINGS_FILE} is not {known}")
        _check_node(_Reader((folder / TREE_FILE).read_bytes()).tree(), width + 1, label_count)
    except ModelFolderError as error:
        raise ModelFolderError(f"{folder} is damaged or belongs to another model: {error}") from None
    except OSError as error:
        raise ModelFolderError(f"{folder} cannot be read: {error.strerror or error}") from None


def rewrite_tree(folder: Path) -> None:
    """Rewrite a tree of the library so that `check_tree` can read it; the library still can."""
    path = folder / TREE_FILE
    tree = import_extra("cbor2", "omikuji").loads(path.read_bytes())
    with atomic_path(path) as temporary:
        temporary.write_bytes(_encoded(tree))


def _check_node(node: Any, columns: int, label_count: int) -> None:
    match node:
        case {"Branch": {"weights": weights, "children": list(children), **others}} if not others:
            _check_weights(weights, len(children), columns)
            for child in children:
                _check_node(child, columns, label_count)
        case {"Leaf": {"weights": weights, "labels": np.ndarray() as labels, **others}} if not others:
            _check_weights(weights, len(labels), columns)
            check_array(labels, "labels of a leaf", (len(labels),), "u")
            check_range(labels, "labels of a leaf", 0, label_count - 1)
            if len(np.unique(labels)) < len(labels):
                raise ModelFolderError("a leaf has a label twice")
        case _:
            raise ModelFolderError("a node is neither a branch nor a leaf")
    if len(node) != 1:
        raise ModelFolderError("a node is more than a branch or a leaf")


def _check_weights(weights: Any, rows: int, columns: int) -> None:
    """Check a matrix (rows, columns)."""
    match weights:
        case {"Dense": {"v": 1, "dim": np.ndarray() as size, "data": np.ndarray() as data}}:
            if size.tolist() != [columns, rows]:
                raise ModelFolderError(f"weights have the size {size.tolist()}, expected {[columns, rows]}")
            check_array(data, "weights", (rows * columns,))
        case {"Sparse": {"outer_dim": outer_size, "inner_dim": inner_size, **arrays}}:
            if (outer_size, inner_size) != (columns, rows):
                raise ModelFolderError(f"sparse weights are not those of {rows} rows and {columns} columns")
            _check_sparse(arrays, rows, columns)
        case _:
            raise ModelFolderError("a node has no weights")


def _check_sparse(arrays: dict[Any, Any], rows: int, columns: int) -> None:
    """Check a matrix that stores only its non-empty columns."""
    names = ("indptr", "outer_inds", "inner_inds", "data")
    if set(arrays) != set(names) or not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ModelFolderError("sparse weights are incomplete")
    starts, outer, inner, data = (arrays[name] for name in names)
    check_array(starts, "indptr", (len(outer) + 1,), "u")
    check_array(outer, "outer_inds", (len(outer),), "u")
    check_array(inner, "inner_inds", (len(data),), "u")
    check_array(data, "weights", (len(data),))
    check_range(outer, "outer_inds", 0, columns - 1)
    check_range(inner, "inner_inds", 0, rows - 1)
    if (outer[1:] <= outer[:-1]).any() or (starts[1:] < starts[:-1]).any():
        raise ModelFolderError("columns do not ascend")
    if starts[0] != 0 or starts[-1] != len(data):
        raise ModelFolderError("columns do not end where the numbers end")


class _Reader:
    """Parse CBOR made of maps, arrays, texts and numbers; arrays of numbers become numpy arrays."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def tree(self) -> Any:
        """Return the whole content."""
        try:
            value = self._value(0)
        except (IndexError, ValueError, MemoryError, OverflowError) as error:
            raise ModelFolderError(f"not a tree at byte {self.place} ({error})") from None
        if self.place != len(self.content):
            raise ModelFolderError("bytes are left after the tree")
        return value

    def _value(self, depth: int) -> Any:
        if depth > 4 * _DEEPEST:  # four levels of CBOR per level of the tree
            raise ModelFolderError("the tree is too deep")
        kind, number = self._head()
        match kind:
            case 0:
                return number
            case 3:
                return self._bytes(number).decode("ascii")
            case 4:
                return self._array(number, depth)
            case 5:
                return self._map(number, depth)
        raise ModelFolderError(f"a value of kind {kind} at byte {self.place}")

    def _head(self) -> tuple[int, int]:
        """Return the kind of an item, and the number in its head: its value or its length."""
        head = self.content[self.place]
        self.place += 1
        kind, small = head >> 5, head & 31
        if small > 27:
            raise ModelFolderError(f"an item without a length at byte {self.place}")
        return kind, small if small < 24 else int.from_bytes(self._bytes(2 ** (small - 24)), "big")

    def _bytes(self, count: int) -> bytes:
        if count > len(self.content) - self.place:
            raise ModelFolderError("the file ends too early")
        self.place += count
        return self.content[self.place - count : self.place]

    def _map(self, count: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(min(count, len(self.content))):
            key = self._value(depth + 1)
            if not isinstance(key, str) or key in found:
                raise ModelFolderError(f"a map has the key {key!r} twice, or not as a text")
            found[key] = self._value(depth + 1)
        return found

    def _array(self, count: int, depth: int) -> Any:
        """Return nodes, or integers (uint64) or floats (float32), all of which have four bytes."""
        if count > len(self.content) - self.place:
            raise ModelFolderError("the file ends too early")
        if count == 0:
            return np.zeros(0, dtype=np.uint64)
        kind, start = self.content[self.place] >> 5, self.place
        if kind == 5:
            return [self._value(depth + 1) for _ in range(count)]
        head = _FLOAT if kind == 7 else _INTEGER
        items = np.frombuffer(self._bytes(count * _NUMBERS[head].itemsize), dtype=_NUMBERS[head])
        if (items["head"] != head).any():
            raise ModelFolderError(f"an array with other than numbers of four bytes at byte {start}")
        return items["number"].astype(np.float32 if kind == 7 else np.uint64)


def _encoded(value: Any) -> bytes:
    """Encode as CBOR, with arrays of numbers of one size."""
    if isinstance(value, dict):
        pairs = (_encoded(key) + _encoded(item) for key, item in value.items())
        return _head(5, len(value)) + b"".join(pairs)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return _head(4, len(value)) + b"".join(map(_encoded, value))
    if isinstance(value, str):
        return _head(3, len(value)) + value.encode("ascii")
    if isinstance(value, int):
        return _head(0, value)
    value = np.asarray(value)
    head = _FLOAT if value.dtype.kind == "f" else _INTEGER
    items = np.empty(len(value), dtype=_NUMBERS[head])
    items["head"], items["number"] = head, value
    return _head(4, len(value)) + items.tobytes()


def _head(kind: int, number: int) -> bytes:
    if number < 24:  # the library accepts only the shortest head for a branch or a leaf
        return bytes([kind << 5 | number])
    return bytes([kind << 5 | 27]) + number.to_bytes(8, "big")
