"""Tables of several systems' metrics, for the terminal and for Markdown."""

from collections.abc import Mapping, Sequence

from rich.markup import escape
from rich.table import Table

# These are counts; all other metrics are fractions of 1.
COUNTS = {
    "documents",
    "documents without labels",
    "unseen true labels",
    "questions",
    "questions without a right answer",
}
ABSENT = "–"


def metrics_table(
    rows: Mapping[str, Mapping[str, float]],
    columns: Sequence[str],
    percent: bool = True,
    title: str | None = None,
) -> Table:
    """Return a `rich` table with one row per system and one column per metric; a missing one is a dash.

    `percent` shows fractions as percentages with two decimals; otherwise they have four decimals.
    """
    table = Table(title=None if title is None else escape(title))
    table.add_column("system")
    for column in columns:
        table.add_column(escape(column), justify="right", no_wrap=True)
    for system, figures in rows.items():
        table.add_row(escape(system), *_cells(figures, columns, percent))
    return table


def markdown_table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """Return a Markdown table; the first column is left-aligned, missing entries are empty."""
    cells = [list(columns), *([row.get(column, "") for column in columns] for row in rows)]
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in cells]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(columns) - 1), *lines[1:]]) + "\n"


def metrics_markdown(
    rows: Mapping[str, Mapping[str, float]], columns: Sequence[str], percent: bool = True
) -> str:
    """Return the same table as Markdown, ending with a line break.

    Example:
        >>> print(metrics_markdown({"capsules": {"P@1": 0.8062}}, ["P@1"]), end="")
        | system | P@1 |
        |---|---:|
        | capsules | 80.62 |
    """
    names = ["system", *columns]
    lines = [[system, *_cells(figures, columns, percent)] for system, figures in rows.items()]
    return markdown_table(names, [dict(zip(names, line, strict=True)) for line in lines])


def _cells(figures: Mapping[str, float], columns: Sequence[str], percent: bool) -> list[str]:
    return [_cell(column, figures.get(column), percent) for column in columns]


def _cell(column: str, value: float | None, percent: bool) -> str:
    if value is None:
        return ABSENT
    if column in COUNTS:
        return f"{value:,.0f}"
    return f"{100 * value:.2f}" if percent else f"{value:.4f}"
