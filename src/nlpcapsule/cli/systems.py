"""`nlpcapsule systems`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class TaskName(StrEnum):
    """The tasks there are."""

    LABELS = "labels"
    ANSWERS = "answers"


def systems(
    task: Annotated[
        TaskName | None,
        typer.Option("--task", help="Only systems for this task: labels or answers.", metavar="TASK"),
    ] = None,
) -> None:
    """List the systems for `train --model` and `compare --systems`.

    Some need an optional package: install it with `pip install 'nlpcapsule[EXTRA]'`.
    """
    from rich.console import Console
    from rich.table import Table

    from nlpcapsule.registry import find_system, system_names

    table = Table("system", "tasks", "extra", "what it is", box=None, pad_edge=False, header_style="bold")
    for name in system_names(task):
        system = find_system(name)
        table.add_row(name, ", ".join(system.tasks), system.extra or "", system.description)
    Console().print(table)
