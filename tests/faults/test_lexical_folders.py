"""Damaged and crafted folders of lexical systems are refused in words, or work: no traceback, no crash."""

import pytest
from folder_faults import KINDS
from folder_trials import assert_all_refused_or_working


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_damaged_folder_is_refused_or_works(tiny_models, child, fault_count, tmp_path, kind):
    assert_all_refused_or_working(tiny_models, child, "lexical", kind, fault_count, tmp_path)
