"""docs/configuration.md, rendered from the settings themselves so that it cannot go out of date.

python -m nlpcapsule.config.reference > docs/configuration.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from nlpcapsule.config.settings import (
    InferenceSettings,
    TextSettings,
    TrainingSettings,
)
from nlpcapsule.registry import find_system, system_names

_INTRODUCTION = """\
# Configuration

This page is written by `python -m nlpcapsule.config.reference > docs/configuration.md`.

A configuration has four sections: `text`, `model`, `training` and `inference`. Each source below wins over
those before it:

1. the defaults on this page, with those of the network where it has its own;
2. a TOML file, given with `--config`;
3. single settings, given with `--set`.

```toml
[model]
name = "paper"
routing = "dynamic"

[training]
epochs = 5
```

`--set training.epochs=5` is the same as `--set epochs=5`, as no other section has `epochs`. An unknown
setting is refused, as is a value out of its bounds or one that does not go with the others.
"""

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def render_reference() -> str:
    """All sections, all settings and the defaults that depend on the network, as Markdown."""
    blocks = [
        _INTRODUCTION,
        _section("## `[text]`", TextSettings),
        "## `[model]`\n\n"
        f"`name` (or `--model`) chooses the network: {_codes(system_names())}; `label-query` if nothing is "
        f"said. For the task `answers`: {_codes(system_names('answers'))}. The other settings depend on "
        "it.\n",
        *(
            _section(f"### `name = {json.dumps(name)}`", find_system(name).settings)
            for name in system_names()
        ),
        _section("## `[training]`", TrainingSettings),
        _section("## `[inference]`", InferenceSettings),
        _own_defaults(),
    ]
    return "\n".join(blocks)


def _section(heading: str, settings: type[BaseModel]) -> str:
    """A heading, what the section is about, and a row for each setting."""
    about = (settings.__doc__ or "").strip()
    rows = [
        f"| `{name}` | {_values(schema)} | {_default(schema['default'])} | {schema['description']} |"
        for name, schema in settings.model_json_schema()["properties"].items()
        if name != "name"
    ]
    table = ["| setting | values | default | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([heading, "", about, "", *table, ""])


def _values(schema: dict[str, Any]) -> str:
    """The values a setting can have, in words, from its JSON schema."""
    if "anyOf" in schema:
        return " or ".join("none" if kind["type"] == "null" else _values(kind) for kind in schema["anyOf"])
    if "enum" in schema:
        return _codes(schema["enum"])
    if schema["type"] == "array":
        return f"list, each {_values(schema['items'])}"
    if schema["type"] == "boolean":
        return "`true`, `false`"
    bounds = [f"{sign} {schema[bound]:g}" for bound, sign in _BOUNDS.items() if bound in schema]
    return ", ".join([{"string": "text"}.get(schema["type"], schema["type"]), *bounds])


def _own_defaults() -> str:
    rows = [
        f"| {task} | {network} | `{setting}` | {_default(value)} |"
        for task, network, setting, value in _each_own_default()
    ]
    table = ["| task | network | setting | default |", "|---|---|---|---|", *rows]
    return "\n".join(["## Defaults of single networks", "", *table, ""])


def _each_own_default() -> Iterator[tuple[str, str, str, Any]]:
    systems = [find_system(name) for name in system_names()]
    for whose in ("", " on a pretrained transformer"):
        for system in systems:
            defaults = system.pretrained_defaults if whose else system.defaults
            for task, sections in defaults.items():
                for section, values in sections.items():
                    for name, value in values.items():
                        yield task, f"`{system.name}`{whose}", f"{section}.{name}", value


def _default(value: Any) -> str:
    return "none" if value is None else f"`{json.dumps(value)}`"


def _codes(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.stdout.buffer.write(render_reference().encode("utf-8"))
