"""Reproduce a table or figure of the paper, next to the paper's figures."""

from __future__ import annotations

import json

from benchmarks.answer_tables import ANSWER_SELECTION
from benchmarks.cost import COST
from benchmarks.figure_routing import FIGURE_ROUTING
from benchmarks.fusion_table import FUSION
from benchmarks.label_tables import (
    LOW_RESOURCE,
    MAIN_TABLE,
    PAPER_PARTS,
    ROUTING_COMPARISON,
)
from benchmarks.table import Options, Table
from nlpcapsule.atomic_files import write_text
from nlpcapsule.errors import ConfigError, did_you_mean

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        MAIN_TABLE,
        LOW_RESOURCE,
        ROUTING_COMPARISON,
        PAPER_PARTS,
        FUSION,
        ANSWER_SELECTION,
        COST,
        FIGURE_ROUTING,
    )
}


def reproduce(name: str, options: Options) -> str:
    """Make a table, write it as JSON, Markdown and SVG into `options.output`, and return the Markdown.

    Args:
        name: The table's name.
        options: Options.
    """
    if name not in TABLES:
        raise ConfigError(f"there is no table {name!r}: {did_you_mean(name, TABLES)}")
    table = TABLES[name]
    record = table.make(options)
    page = table.markdown(record)
    write_text(options.output / f"{name}.json", json.dumps(record, indent=1) + "\n")
    for stem, picture in table.plots(record).items():
        write_text(options.output / f"{stem}.svg", picture)
        page += f"\n![{stem}]({stem}.svg)\n"
    write_text(options.output / f"{name}.md", page)
    return page
