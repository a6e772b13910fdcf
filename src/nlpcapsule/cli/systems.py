"""`nlpcapsule systems`."""

from typing import Annotated, Literal

from typer import Option


def systems(
    task: Annotated[
        Literal["labels", "answers"] | None,
        Option(metavar="TASK", help="Only systems for this task: labels or answers."),
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
