"""A cell uses the transformer and the label names that lie in the data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cell import Cell
from benchmarks.label_data import MINILM
from benchmarks.pecos import PECOS
from benchmarks.plan import read_plan
from benchmarks.run_answers import with_encoder
from benchmarks.run_cell import _with_local_files

CELLS = {cell.system: cell for cell in read_plan("fusion").cells(seeds=1) if cell.model != PECOS}
ON_MINILM = [cell for cell in CELLS.values() if cell.config.transformer is not None]
NAMED = [cell for cell in CELLS.values() if cell.config.text.label_names is not None]


@pytest.mark.parametrize("cell", ON_MINILM, ids=lambda cell: cell.system)
def test_only_the_place_of_the_transformer_changes(cell: Cell, tmp_path: Path) -> None:
    (tmp_path / MINILM).mkdir()
    local = _with_local_files(cell, tmp_path, tmp_path / "made").config
    assert local.transformer == str(tmp_path / MINILM)
    expected = with_encoder(cell.config, tmp_path / MINILM)
    assert (local.model, local.training) == (expected.model, expected.training)


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_without_a_folder_for_it_the_settings_name_the_transformer(cell: Cell, tmp_path: Path) -> None:
    assert _with_local_files(cell, tmp_path, tmp_path / "made").config.model == cell.config.model


@pytest.mark.parametrize("named", NAMED, ids=lambda cell: cell.system)
def test_label_names_are_those_of_the_data_folder(named: Cell, tmp_path: Path) -> None:
    folder = tmp_path / named.data
    folder.mkdir()
    (folder / "label-names.json").touch()
    local = _with_local_files(named, tmp_path, tmp_path / "made").config
    assert local.text.label_names == str(folder / "label-names.json")
