"""WikiQA as distributed: WikiQA-train.tsv and its companions, one candidate sentence per line."""

from __future__ import annotations

from pathlib import Path

from nlpcapsule.data.readers.reading import ReadOptions, chosen_part

PARTS = ("train", "dev", "test")
COLUMNS = {"qid": "QuestionID", "question": "Question", "answer": "Sentence", "label": "Label"}


def is_header(line: str) -> bool:
    """Return whether a line is the header of a WikiQA file."""
    return {COLUMNS["qid"], COLUMNS["answer"]} <= set(line.split("\t"))


def is_layout(folder: Path) -> bool:
    """Return whether a folder holds WikiQA files."""
    return any(folder.glob("WikiQA-*.tsv"))


def part_files(folder: Path, options: ReadOptions) -> list[Path]:
    """Return the files of the chosen part of a folder."""
    files = {part: folder / f"WikiQA-{part}.tsv" for part in PARTS}
    there = [part for part, path in files.items() if path.exists()]
    return [files[part] for part in chosen_part(options, there, folder)]
