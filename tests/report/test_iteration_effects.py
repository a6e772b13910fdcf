"""What iterations change in the labels of documents, on rankings made by hand."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.report.inspection import (
    document_probabilities,
    document_steps,
    effects_summary,
    print_changes,
    print_document,
)
from nlpcapsule.report.iteration_effects import (
    Changes,
    IterationEffects,
    changes_by_all_iterations,
    changes_by_iteration,
    iteration_effects,
)
from nlpcapsule.scoring.documents import LabelRankings

NAMES = ["ash", "beech", "cedar", "[elm]", "fir"]
# Document -> its first two labels after one, two and three iterations.
RANKED = {
    0: [(0, 1), (0, 1), (9, 9)],  # leaves after two: nothing changed, 9 must never be asked for
    1: [(0, 1), (2, 1), (2, 3)],  # its top label becomes true, then a true label drops out
    2: [(0, 1), (1, 0), (4, 0)],  # without truth: a change of order, then another top label
    3: [(3, 4), (9, 9), (9, 9)],  # leaves after one
}
TRUTH = Ragged.from_rows([np.array([0]), np.array([1, 2]), np.array([], dtype=int), np.array([3])])
ITERATIONS = np.array([2, 3, 3, 1])


def rank_with(rows: np.ndarray, iterations: int) -> LabelRankings:
    labels = np.array([RANKED[int(row)][iterations - 1] for row in rows])
    scores = np.tile(np.array([0.9, 0.5], dtype=np.float32) / iterations, (len(rows), 1))
    return LabelRankings(labels, scores)


@pytest.fixture
def effects() -> IterationEffects:
    return iteration_effects(ITERATIONS, rank_with, TRUTH, top=2)


def test_a_document_has_rankings_up_to_its_last_iteration(effects: IterationEffects) -> None:
    assert effects.labels.shape == (4, 3, 2)
    assert effects.labels[0].tolist() == [[0, 1], [0, 1], [-1, -1]]
    assert effects.labels[3].tolist() == [[3, 4], [-1, -1], [-1, -1]]
    assert np.isnan(effects.scores[3, 1:]).all()
    assert effects.has_truth.tolist() == [True, True, False, True]
    assert effects.is_true[1].tolist() == [[False, True], [True, True], [True, False]]


def test_each_iteration_counts_the_documents_that_took_it(effects: IterationEffects) -> None:
    steps = changes_by_iteration(effects)
    assert list(steps) == [2, 3]
    assert steps[2] == Changes(
        documents=3,
        top_label=2,
        top_label_better=1,
        top_label_worse=0,
        first_labels=1,  # document 2 has the same two labels in another order
        first_labels_better=1,
        first_labels_worse=0,
    )
    assert steps[3] == Changes(2, 1, 0, 0, 2, 0, 1)


def test_all_iterations_compare_the_first_with_the_last(effects: IterationEffects) -> None:
    assert changes_by_all_iterations(effects) == Changes(3, 2, 1, 0, 2, 0, 0)


def test_with_one_iteration_nothing_has_changed() -> None:
    effects = iteration_effects(np.ones(4, dtype=int), rank_with, TRUTH, top=2)
    assert changes_by_iteration(effects) == {}
    assert changes_by_all_iterations(effects) == Changes(0, 0, 0, 0, 0, 0, 0)


def test_steps_of_a_document_name_what_moved(effects: IterationEffects) -> None:
    steps = document_steps(effects, 1, NAMES, np.array([-2.0, -1.5, -1.25]))
    assert [step["iteration"] for step in steps] == [1, 2, 3]
    assert [step["agreement"] for step in steps] == [-2.0, -1.5, -1.25]
    assert steps[1]["labels"] == [{"label": "cedar", "score": 0.45}, {"label": "beech", "score": 0.25}]
    assert [step["entered"] for step in steps] == [[], ["cedar"], ["[elm]"]]
    assert [step["left"] for step in steps] == [[], ["ash"], ["beech"]]
    assert [step["true_labels"] for step in steps] == [1, 2, 1]
    assert document_steps(effects, 2, NAMES, np.zeros(3))[0]["true_labels"] is None


def test_probabilities_have_gaps_where_a_label_is_not_among_the_first(effects: IterationEffects) -> None:
    lines = document_probabilities(effects, 1, NAMES)
    assert list(lines) == ["cedar", "[elm]", "beech", "ash"]
    np.testing.assert_allclose(lines["cedar"], [np.nan, 0.45, 0.3], rtol=1e-6)
    np.testing.assert_allclose(lines["beech"], [0.5, 0.25, np.nan], rtol=1e-6)


def test_summary_has_the_counts(effects: IterationEffects) -> None:
    summary = effects_summary(effects)
    assert summary["documents_with_truth"] == 3
    assert summary["by_iteration"]["3"]["first_labels_worse"] == 1
    assert summary["by_all_after_the_first"]["top_label_better"] == 1


def test_tables_show_the_counts_and_names_with_brackets(effects: IterationEffects) -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    print_changes(effects_summary(effects), console)
    print_document(document_steps(effects, 1, NAMES, np.zeros(3)), "Document 2 [b]", console)
    printed = console.export_text()
    assert "from 2 on" in printed
    assert "iteration" in printed
    assert "documents" in printed
    assert "…" not in printed
    assert "[elm] 0.167" in printed
    assert "Document 2 [b]" in printed
