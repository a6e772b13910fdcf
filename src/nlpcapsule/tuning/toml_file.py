"""Write a configuration as TOML that `train --config` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from nlpcapsule.config import Config


def config_toml(config: Config, note: str) -> str:
    """Return all settings of a configuration as TOML.

    Args:
        config: The configuration.
        note: A comment for the first line.
    """
    lines = [f"# {' '.join(note.split())}"]
    for section in Config.SECTIONS:
        lines += _section(section, getattr(config, section).model_dump())
    return "\n".join(lines) + "\n"


def _section(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a section and, after it, of its subsections; TOML has no null."""
    yield ""
    yield f"[{name}]"
    for key, value in values.items():
        if value is not None and not isinstance(value, Mapping):
            yield f"{key} = {_value(value)}"
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _section(f"{name}.{key}", value)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # a JSON value is a TOML value
