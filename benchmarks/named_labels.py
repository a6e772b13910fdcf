"""Label names of the EURLEX57K data sets, stored with their arrays."""

from __future__ import annotations

from pathlib import Path

from benchmarks.label_data import IN_PIECES, READERS
from benchmarks.label_name_files import NAMES_FILE, write_label_names
from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.data.labels import LabelVocabulary

_NAMED_BY_EUROVOC = ("eurlex15k", "eurlex57k")


def keep_label_names(name: str, data: Path, folder: Path) -> bool:
    """Write the label names into a data set's folder; return whether its labels have names.

    Args:
        name: The data set.
        data: The folder of real data.
        folder: The data set's arrays.
    """
    base, source = name.removesuffix(IN_PIECES), data / "eurlex57k" / "eurovoc.json.gz"
    if base not in _NAMED_BY_EUROVOC or not source.exists():
        return False
    labels = LabelVocabulary.from_json((folder / "labels.json").read_text(encoding="utf-8"))
    _, select, report = READERS[base](data)
    write_label_names(folder, Thesaurus.read(source), labels, select, report)
    return True


def named_folder(name: str, data: Path, made: Path) -> Path:
    """Return the folder with a data set's label names.

    Args:
        name: The data set.
        data: The folder of real data, or of data sets as arrays with their names.
        made: The folder of this data set's arrays, if they were made from real data; names are added.
    """
    if (data / name / NAMES_FILE).exists():
        return data / name
    if (made / "labels.json").exists() and not (made / NAMES_FILE).exists():
        keep_label_names(name, data, made)
    return made
