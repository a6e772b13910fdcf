"""Seeded damage to model folders: bytes, JSON, arrays, whole files, with renewed checksums or without."""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from byte_faults import damaged
from safetensors.numpy import load_file, save_file

ODD_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2**31,
    2**63,
    10**400,
    -(2**70),
    0.5,
    1e308,
    math.nan,
    math.inf,
    "",
    "x",
    "../../../etc/passwd",
    "some-owner/some-model",
    "\ud83d",
    "\0",
    [],
    {},
    [1, 2, 3],
    {"x": 1},
]
ODD_NUMBERS = [-1, 0, 1, 7, 255, 2**31 - 1, -(2**31), 2**62, math.nan, math.inf, -math.inf, 1e30]
NESTING_BOMB = "[" * 100_000 + "]" * 100_000


class Fault(NamedTuple):
    """What was done to a folder, and whether it has to be refused."""

    what: str
    must_be_refused: bool = False


def copy_model(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target))


def listed(folder: Path) -> dict[str, str]:
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["sha256"]


def seal(folder: Path) -> None:
    """Give every file that is there its checksum, as somebody who means it would."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    manifest["sha256"] = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in sorted(names)
        if name not in ("manifest.json", "metrics.jsonl", "nominator-metrics.jsonl")
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def damage_bytes(folder: Path, generator: random.Random, _: list[Path]) -> Fault:
    """Some file has other bytes than its checksum says; the manifest itself may still be right."""
    name = generator.choice([*listed(folder), "manifest.json"])
    before = (folder / name).read_bytes()
    after, how = damaged(before, generator)
    (folder / name).write_bytes(after)
    return Fault(f"{name}: {how}", must_be_refused=before != after and name != "manifest.json")


def damage_sealed_bytes(folder: Path, generator: random.Random, _: list[Path]) -> Fault:
    """As above, with renewed checksums."""
    name = generator.choice(list(listed(folder)))
    after, how = damaged((folder / name).read_bytes(), generator)
    (folder / name).write_bytes(after)
    seal(folder)
    return Fault(f"{name}, sealed: {how}")


def edit_json(folder: Path, generator: random.Random, _: list[Path]) -> Fault:
    """A value of a JSON file is replaced, removed or given twice."""
    names = [name for name in listed(folder) if name.endswith(".json")]
    name = generator.choice([*names, "manifest.json"])
    path = folder / name
    value = json.loads(path.read_text(encoding="utf-8"))
    holder, key = _some_place(value, generator)
    kind = generator.choice(["replace", "replace", "replace", "remove", "add", "twice", "bomb"])
    odd = generator.choice(ODD_VALUES)
    what = f"{name}: {kind} {key!r} {str(odd)[:40]!r}"
    if kind == "remove":
        del holder[key]
    elif kind == "add" and isinstance(holder, dict):
        holder[generator.choice(["auto_map", "attn_implementation", "backbone", "x", ""])] = odd
    elif kind == "add":
        holder.insert(key, odd)
    elif kind != "twice":
        holder[key] = odd if kind == "replace" else "BOMB"
    text = json.dumps(value)
    if kind == "twice" and text.startswith("{"):
        text = '{"config": 1, "config": 2, ' + text[1:]
    path.write_text(text.replace('"BOMB"', NESTING_BOMB), encoding="utf-8")
    if name != "manifest.json":
        seal(folder)
    return Fault(what, must_be_refused=kind == "bomb" or (kind == "twice" and text.startswith("{")))


def edit_arrays(folder: Path, generator: random.Random, _: list[Path]) -> Fault:
    """An array of a safetensors file is changed: a number, its shape, its type, its name."""
    names = [name for name in listed(folder) if name.endswith(".safetensors")]
    lexical = [name for name in names if name.startswith("lexical/")]
    name = generator.choice(lexical if lexical and generator.random() < 0.8 else names)
    arrays = load_file(folder / name)
    indices = [key for key in arrays if key.endswith((".indices", ".indptr", ".shape"))]
    key = generator.choice(indices if indices and generator.random() < 0.6 else sorted(arrays))
    before = arrays[key].dtype
    what, must_be_refused = _edit_array(arrays, key, generator)
    is_network = name in ("network.safetensors", "nominator.safetensors")
    if is_network and key in arrays and arrays[key].dtype != before:
        must_be_refused = True
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / name)
    seal(folder)
    return Fault(f"{name}: {what}", must_be_refused)


def mix_up(folder: Path, generator: random.Random, others: list[Path]) -> Fault:
    """Files are removed, added, linked, or another model's; labels change places."""
    names = [name for name in listed(folder) if name != "manifest.json"]
    name = generator.choice(names)
    kind = generator.choice(list(MIX_UPS))
    return MIX_UPS[kind](folder, name, generator, others)


def _remove(folder: Path, name: str, generator: random.Random, _: list[Path]) -> Fault:
    (folder / name).unlink()
    if generator.random() < 0.5:
        seal(folder)
        return Fault(f"{name}: removed, sealed")
    return Fault(f"{name}: removed", must_be_refused=True)


def _other_models(folder: Path, name: str, generator: random.Random, others: list[Path]) -> Fault:
    donors = [other for other in others if (other / name).is_file()]
    if not donors:
        return _remove(folder, name, generator, others)
    donor = generator.choice(donors)
    shutil.copyfile(donor / name, folder / name)
    seal(folder)
    return Fault(f"{name}: that of {donor.name}, sealed")


def _unlisted(folder: Path, name: str, generator: random.Random, _: list[Path]) -> Fault:
    place = generator.choice(["", "lexical/"])
    (folder / place).mkdir(exist_ok=True)
    added = generator.choice(["x.bin", "whole-words.safetensors", "name-match.safetensors", "fusion.json"])
    if (folder / place / added).exists():
        return _linked(folder, name, generator, [])
    (folder / place / added).write_bytes(b"{}")
    if generator.random() < 0.5:
        seal(folder)
        return Fault(f"{place}{added}: added, sealed", must_be_refused=True)
    return Fault(f"{place}{added}: added and not listed", must_be_refused=True)


def _linked(folder: Path, name: str, generator: random.Random, _: list[Path]) -> Fault:
    outside = folder.with_name("outside")
    shutil.copyfile(folder / name, outside)
    (folder / name).unlink()
    (folder / name).symlink_to(outside)
    return Fault(f"{name}: a link to a file outside", must_be_refused=True)


def _odd_name(folder: Path, name: str, generator: random.Random, _: list[Path]) -> Fault:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    outside = folder.with_name("outside")
    shutil.copyfile(folder / name, outside)
    odd = generator.choice(["../outside", str(outside), "..\\outside", "./config.json", "a//b", ""])
    manifest["sha256"][odd] = manifest["sha256"][name]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return Fault(f"manifest.json lists {odd!r}", must_be_refused=True)


def _no_checksums(folder: Path, name: str, generator: random.Random, _: list[Path]) -> Fault:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    if generator.random() < 0.5:
        manifest["sha256"] = {}
    else:
        del manifest["sha256"][name]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return Fault(f"manifest.json does not list {name}", must_be_refused=True)


def _labels(folder: Path, name: str, generator: random.Random, others: list[Path]) -> Fault:
    path = folder / "labels.json"
    if not path.exists():
        return _remove(folder, name, generator, others)
    rows = json.loads(path.read_text(encoding="utf-8"))
    kind = generator.choice(["permuted", "twice", "negative", "huge", "dropped", "one more"])
    match kind:
        case "permuted":
            generator.shuffle(rows)
        case "twice":
            rows[0]["label"] = rows[-1]["label"]
        case "negative":
            rows[-1]["documents"] = -1
        case "huge":
            rows[0]["documents"] = 2**40
        case "dropped":
            rows.pop(generator.randrange(len(rows)))
        case _:
            rows.append({"label": "one more", "documents": 1})
    path.write_text(json.dumps(rows), encoding="utf-8")
    seal(folder)
    return Fault(f"labels.json: {kind}, sealed", must_be_refused=True)


Change = Callable[[Path, str, random.Random, list[Path]], Fault]
MIX_UPS: dict[str, Change] = {
    "removed": _remove,
    "other model's": _other_models,
    "unlisted": _unlisted,
    "linked": _linked,
    "odd name": _odd_name,
    "no checksums": _no_checksums,
    "labels": _labels,
}
KINDS: dict[str, Callable[[Path, random.Random, list[Path]], Fault]] = {
    "bytes": damage_bytes,
    "sealed bytes": damage_sealed_bytes,
    "json": edit_json,
    "arrays": edit_arrays,
    "mixed up": mix_up,
}


def _some_place(value: Any, generator: random.Random) -> tuple[Any, Any]:
    """A container inside a JSON value, and a key or a place in it."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = generator.choice(keys)
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or generator.random() < 0.15:
            return value, key
        value = inner


def _edit_array(arrays: dict[str, np.ndarray], key: str, generator: random.Random) -> tuple[str, bool]:
    array = arrays[key].copy()
    kind = generator.choice(["number", "number", "number", "number", "cut", "type", "rename", "drop", "axis"])
    must_be_refused = False
    match kind:
        case "number" if array.size:
            place, odd = generator.randrange(array.size), generator.choice(ODD_NUMBERS)
            with np.errstate(all="ignore"):
                array.flat[place] = np.float64(odd).astype(array.dtype)
            kind = f"number {place} = {odd}"
            must_be_refused = array.dtype.kind == "f" and not math.isfinite(odd)
            arrays[key] = array
        case "cut" if array.ndim and len(array):
            arrays[key] = array[:-1]
        case "type":
            arrays[key] = array.astype(generator.choice([np.float64, np.int32, np.uint8, np.float16, bool]))
        case "rename":
            arrays[f"{key}x"] = arrays.pop(key)
        case "drop":
            del arrays[key]
        case _:
            arrays[key] = array[None]
    return f"{key}: {kind}", must_be_refused
