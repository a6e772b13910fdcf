"""Render docs/configuration.md from the settings themselves, so that it stays up to date.

python -m docs.write_configuration > docs/configuration.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from nlpcapsule.config.nesting import NESTED, flatten
from nlpcapsule.config.settings import (
    InferenceSettings,
    TextSettings,
    TrainingSettings,
)
from nlpcapsule.registry import ENCODER_MODULES, ENCODERS, find_system, system_names

_INTRODUCTION = """\
# Configuration

This page is written by `python -m docs.write_configuration > docs/configuration.md`.

A configuration has four sections: `text`, `model`, `training` and `inference`. Inside `model`, a hybrid has
the section of its network, and a network with an encoder has the section of the encoder:

```toml
[model]
name = "hybrid"
lexical = "one-vs-rest"

[model.network]
name = "label-query"
capsule_size = 128

[model.network.encoder]
name = "convolution"
filters = 128

[training]
epochs = 5
```

Each source below wins over those before it:

1. the defaults on this page, with those of the system where it has its own;
2. a preset, given with `--preset`;
3. a TOML file, given with `--config`;
4. single settings, given with `--set`.

`--set` takes a setting's full name, as in `--set model.network.encoder.filters=128`, or leaves sections out:
`--set encoder.filters=128`, `--set filters=128`. A short name that several sections have is looked for in
`model` first, then in `training`: `--set batch_size=16` is the training's, and that of ranking is
`inference.batch_size`.

A text in place of a nested section is short for it: `--set network=paper` is `model.network.name=paper`, and
`--set encoder=bilstm` chooses an encoder by its name. A text that is no encoder's name is a pretrained
transformer, its folder or its id on the Hugging Face hub: `--set encoder=FOLDER`, or `--encoder FOLDER`.

An unknown setting is refused, as is a value out of its bounds or one that does not go with the others.
"""

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def render_reference() -> str:
    """Return all sections, settings and system-dependent defaults as Markdown."""
    blocks = [
        _INTRODUCTION,
        _section("## `[text]`", TextSettings),
        "## `[model]`\n\n"
        f"`name` (or `--model`) chooses the system: {_codes(system_names())}; `hybrid` if nothing is said. "
        f"For the task `answers`: {_codes(system_names('answers'))}; `label-query` if nothing is said. The "
        "other settings depend on it.\n",
        *(
            _section(f"### `name = {json.dumps(name)}`", find_system(name).settings)
            for name in system_names()
        ),
        "## `[model.encoder]`\n\n"
        f"The encoder of a network, in a hybrid `[model.network.encoder]`: {_codes(ENCODER_MODULES)}.\n",
        *(
            _section(f"### `name = {json.dumps(name)}`", ENCODERS[name].settings_type)
            for name in ENCODER_MODULES
        ),
        _section("## `[training]`", TrainingSettings),
        _section("## `[inference]`", InferenceSettings),
        _own_defaults(),
    ]
    return "\n".join(blocks)


def _section(heading: str, settings: type[BaseModel]) -> str:
    """Return a heading, a description of the section, and a row for each setting."""
    about = (settings.__doc__ or "").strip()
    rows = [_row(name, schema) for name, schema in settings.model_json_schema()["properties"].items()]
    rows = [row for row in rows if row]
    table = ["| setting | values | default | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([heading, "", about, "", *(table if rows else ["It has no settings."]), ""])


def _row(name: str, schema: dict[str, Any]) -> str:
    if name == "name":
        return ""
    if name in NESTED:
        return f"| `{name}` | section | | {schema['description']} |"
    return f"| `{name}` | {_values(schema)} | {_default(schema['default'])} | {schema['description']} |"


def _values(schema: dict[str, Any]) -> str:
    """Describe the values of a setting, from its JSON schema."""
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
        f"| {task} | {system} | `{setting}` | {_default(value)} |"
        for task, system, setting, value in _each_own_default()
    ]
    table = ["| task | system | setting | default |", "|---|---|---|---|", *rows]
    about = "A hybrid also takes those of its network."
    return "\n".join(["## Defaults of single systems", "", about, "", *table, ""])


def _each_own_default() -> Iterator[tuple[str, str, str, Any]]:
    systems = [find_system(name) for name in system_names()]
    for whose in ("", " on a pretrained transformer"):
        for system in systems:
            defaults = system.pretrained_defaults if whose else system.defaults
            for task, sections in defaults.items():
                for section, values in sections.items():
                    for name, value in flatten(values, section):
                        yield task, f"`{system.name}`{whose}", name, value


def _default(value: Any) -> str:
    return "none" if value is None else f"`{json.dumps(value)}`"


def _codes(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.stdout.buffer.write(render_reference().encode("utf-8"))
