"""Tables of several systems' metrics, as Markdown."""

from collections.abc import Mapping, Sequence

# These are counts; all other metrics are fractions of 1.
COUNTS = {"documents", "documents without labels", "unseen true labels"}
COUNTS |= {"questions", "questions without a right answer"}
ABSENT = "–"


def markdown_table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """Return a Markdown table; the first column is left-aligned, missing entries are empty."""
    cells = [list(columns), *([row.get(column, "") for column in columns] for row in rows)]
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in cells]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(columns) - 1), *lines[1:]]) + "\n"


def metrics_markdown(rows: Mapping[str, Mapping[str, float]], columns: Sequence[str]) -> str:
    """Return a table in percent, a row per system, a column per metric; a missing one is a dash.

    Example:
        >>> print(metrics_markdown({"capsules": {"P@1": 0.8062}}, ["P@1"]), end="")
        | system | P@1 |
        |---|---:|
        | capsules | 80.62 |
    """
    cells = [
        {"system": system, **{column: figure_cell(column, figures.get(column)) for column in columns}}
        for system, figures in rows.items()
    ]
    return markdown_table(["system", *columns], cells)


def figure_cell(column: str, value: float | None) -> str:
    """Return a metric in percent, or a count; a dash if it is missing."""
    if value is None:
        return ABSENT
    return f"{value:,.0f}" if column in COUNTS else f"{100 * value:.2f}"
