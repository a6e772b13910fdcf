from nlpcapsule.evaluation.report import metrics_markdown

ROWS = {
    "capsules [fast]": {"P@1": 0.80623, "MAP 95% low": 0.1, "documents": 6000},
    "CNN | Kim": {"P@1": 0.6835},
}


def test_markdown_has_the_same_cells_and_survives_a_bar_in_a_name():
    assert metrics_markdown(ROWS, ["P@1", "documents"]) == (
        "| system | P@1 | documents |\n"
        "|---|---:|---:|\n"
        "| capsules [fast] | 80.62 | 6,000 |\n"
        "| CNN \\| Kim | 68.35 | – |\n"
    )
