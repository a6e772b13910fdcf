"""Impossible values of every setting: a configuration comes out, or an error in words."""

from __future__ import annotations

import datetime
import json
import math
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from text_faults import check, damaged

from nlpcapsule.config import Config
from nlpcapsule.registry import find_system, system_names

NESTED: list[Any] = []
for _ in range(500):
    NESTED = [NESTED]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 0.5, -0.5, 1e-320, 1e300, math.inf, -math.inf, math.nan),
    *(2**31, 2**63, 2**64, 10**30, 10**5_000, -(10**30)),
    *("", " ", "x", "none", "1", "nan", "\0", "\ud83d", "9" * 10_000, "../../etc", "/dev/zero", "x\n[model]"),
    *(
        [],
        [0],
        [-1],
        [3, 3],
        [2**40],
        [1.5],
        ["x"],
        [None],
        [[3]],
        NESTED,
        (),
        (3,),
        {},
        {"a": 1},
        {"a": {"b": []}},
    ),
    *(b"bytes", object(), datetime.date(2026, 1, 1)),
]
TEXTS = [
    *(
        "",
        " ",
        "=",
        "==",
        "[",
        "]",
        "[[",
        "[" * 5_000,
        "{",
        "{a = " * 1_000,
        "nan",
        "-inf",
        "1e400",
        "0x" + "f" * 99,
    ),
    *(
        "9" * 5_000,
        "1979-05-27",
        "'",
        '"',
        '"""',
        "# comment",
        "1 # comment",
        "1\nseed = 2",
        "\0",
        "\ud83d",
        "é",
    ),
    *("true", "True", "[1, 2", "[1, 'a']", "{a = 1}", "1_000", "_", "../x", "[,]", "\\"),
]
SYSTEMS = [(task, name) for task in ("labels", "answers") for name in system_names(task)]


def settings_of(task: str, system: str) -> list[str]:
    """All settings of a system, the shared ones only for the first."""
    dumped = Config.build(task, system).model_dump()
    sections = Config.SECTIONS if (task, system) in [*SYSTEMS[:1], ("answers", "label-query")] else ("model",)
    return [name for section in sections for name in names_in(dumped[section], section)]


def names_in(section: dict[str, Any], place: str) -> list[str]:
    """Full names of a section's settings, the sections inside it and their settings among them."""
    names = []
    for key, value in section.items():
        names.append(f"{place}.{key}")
        if isinstance(value, dict):
            names += names_in(value, f"{place}.{key}")
    return names


def test_every_system_has_settings_to_try() -> None:
    assert len(SYSTEMS) > 20
    assert all(settings_of(task, name) for task, name in SYSTEMS)
    assert find_system("label-query").settings.model_fields


@pytest.mark.parametrize(("task", "system"), SYSTEMS)
def test_a_value_from_python(task: str, system: str) -> None:
    for name in settings_of(task, system):
        for value in VALUES:
            check(partial(Config.build, task, system, overrides={name: value}), f"{name}={type(value)}")


@pytest.mark.parametrize("task", ["labels", "answers"])
def test_a_value_from_the_command_line(task: str) -> None:
    for name in settings_of(task, "label-query"):
        for text in TEXTS:
            assignment = f"{name}={text}"
            check(partial(Config.build, task, assignments=[assignment]), assignment[:80])


def test_several_values_at_once(fault_count: int) -> None:
    generator = random.Random("several values")
    for _ in range(3 * fault_count):
        task, system = generator.choice(SYSTEMS)
        dumped = Config.build(task, system).model_dump()
        known = [name for section in Config.SECTIONS for name in names_in(dumped[section], section)]
        chosen = {name: generator.choice(VALUES) for name in generator.sample(known, 3)}
        check(partial(Config.build, task, system, overrides=chosen), f"{system}: {list(chosen)}")


def test_a_damaged_toml_file(tmp_path: Path, fault_count: int) -> None:
    generator = random.Random("toml")
    content = (
        b'[text]\nmax_tokens = 90\nvectors = "vectors.txt"\n\n[model]\nname = "hybrid"\n'
        b'lexical = "auto"\n\n[model.network]\nrouting = "adaptive-kde"\n\n[model.network.encoder]\n'
        b'name = "convolution"\nfilters = 96\nwindows = [3, 5]\n\n[training]\nepochs = 5\n'
        b"learning_rate = 1e-3\n"
    )
    path = tmp_path / "a.toml"
    for _ in range(3 * fault_count):
        changed, told = damaged(content, generator)
        path.write_bytes(changed)
        check(partial(Config.build, file=path), told)


def test_damaged_json_of_a_model_folder(fault_count: int) -> None:
    generator = random.Random("json")
    content = json.dumps(json.loads(Config.build().model_dump_json()), indent=1).encode()
    for _ in range(3 * fault_count):
        changed, told = damaged(content, generator)
        check(partial(Config.from_json, changed.decode(errors="surrogateescape")), told)


@pytest.mark.parametrize("argument", ["task", "model", "preset", "file"])
def test_a_wrong_argument(argument: str) -> None:
    for value in ["", " ", "x" * 300, "\0", "\ud83d", "../x", "/dev/zero", "/", "label-query "]:
        check(partial(Config.build, **{argument: value}), f"{argument}={value[:20]!r}")
