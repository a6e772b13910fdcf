"""Tables of several systems' metrics, for the terminal and for Markdown."""

from collections.abc import Mapping, Sequence

from rich.markup import escape
from rich.table import Table

# These are counts; all other metrics are fractions of 1.
COUNTS = {"documents", "documents without labels", "unseen true labels"}
COUNTS |= {"questions", "questions without a right answer"}
ABSENT = "–"


def metrics_table(
    rows: Mapping[str, Mapping[str, float]], columns: Sequence[str], title: str | None = None
) -> Table:
    """Return a `rich` table in percent, a row per system, a column per metric; a missing one is a dash."""
    table = Table(title=None if title is None else escape(title))
    table.add_column("system")
    for column in columns:
        table.add_column(escape(column), justify="right", no_wrap=True)
    for system, figures in rows.items():
        table.add_row(escape(system), *(_cell(column, figures.get(column)) for column in columns))
    return table


def markdown_table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """Return a Markdown table; the first column is left-aligned, missing entries are empty."""
    cells = [list(columns), *([row.get(column, "") for column in columns] for row in rows)]
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in cells]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(columns) - 1), *lines[1:]]) + "\n"


def metrics_markdown(rows: Mapping[str, Mapping[str, float]], columns: Sequence[str]) -> str:
    """Return the same table as Markdown, ending with a line break.

    Example:
        >>> print(metrics_markdown({"capsules": {"P@1": 0.8062}}, ["P@1"]), end="")
        | system | P@1 |
        |---|---:|
        | capsules | 80.62 |
    """
    cells = [
        {"system": system, **{column: _cell(column, figures.get(column)) for column in columns}}
        for system, figures in rows.items()
    ]
    return markdown_table(["system", *columns], cells)


def _cell(column: str, value: float | None) -> str:
    if value is None:
        return ABSENT
    return f"{value:,.0f}" if column in COUNTS else f"{100 * value:.2f}"
