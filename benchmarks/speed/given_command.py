"""The command that a benchmark was started with, for its results file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

_PLACES = {"output", "folder"}  # where files go changes no result


def given_command(context: typer.Context) -> str:
    """Return the running command with the options it was given; of paths, only the names."""
    words = [str(context.info_name)]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in _PLACES or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        several = isinstance(value, Sequence) and not isinstance(value, str)
        for each in value if several else [value]:
            words += _words(parameter, each)
    return f"python -m benchmarks speed {shlex.join(words)}"


def _words(parameter: Any, value: Any) -> list[str]:
    option = [parameter.opts[0]] if parameter.param_type_name == "option" else []
    if isinstance(value, bool):
        return option if value else parameter.secondary_opts[:1]
    return [*option, _name(value)]


def _name(value: Any) -> str:
    """Return a value, or the name of a path; also after NAME=."""
    name, equals, rest = str(value).rpartition("=")
    return name + equals + (Path(rest).name if "/" in rest else rest)
