import io

from rich.console import Console

from nlpcapsule.evaluation.report import metrics_markdown, metrics_table

ROWS = {
    "capsules [fast]": {"P@1": 0.80623, "MAP 95% low": 0.1, "documents": 6000},
    "CNN | Kim": {"P@1": 0.6835},
}


def printed(table):
    console = Console(file=io.StringIO(), width=120)
    console.print(table)
    return console.file.getvalue()


def test_the_table_shows_percentages_counts_and_dashes():
    lines = printed(metrics_table(ROWS, ["P@1", "documents"], title="EUR-Lex [15k]")).splitlines()
    assert "EUR-Lex [15k]" in lines[0]
    capsules = next(line for line in lines if "capsules [fast]" in line)
    assert "80.62" in capsules
    assert "6,000" in capsules
    assert "–" in next(line for line in lines if "CNN | Kim" in line)


def test_the_columns_come_in_the_order_asked_for():
    header = next(
        line for line in printed(metrics_table(ROWS, ["documents", "P@1"])).splitlines() if "P@1" in line
    )
    assert header.index("documents") < header.index("P@1")


def test_markdown_has_the_same_cells_and_survives_a_bar_in_a_name():
    assert metrics_markdown(ROWS, ["P@1", "documents"]) == (
        "| system | P@1 | documents |\n"
        "|---|---:|---:|\n"
        "| capsules [fast] | 80.62 | 6,000 |\n"
        "| CNN \\| Kim | 68.35 | – |\n"
    )
