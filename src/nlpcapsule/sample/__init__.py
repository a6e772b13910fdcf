"""An embedded sample of letters and questions, to try every step without a download.

A letter of the part "test-seen" combines clauses that training saw in other letters; one of "test-unseen"
says the same things in words that training never saw. `benchmarks/sample` generates the files.
"""

import shutil
from pathlib import Path

from nlpcapsule.data.documents import Document, Question
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.question_files import read_questions

FOLDER = Path(__file__).parent
DOCUMENT_PARTS = ("train", "dev", "test-seen", "test-unseen")
QUESTION_PARTS = ("train", "dev", "test")


def load_documents(part: str) -> list[Document]:
    """Return letters to a town's service desk, with their labels; `part` is one of `DOCUMENT_PARTS`.

    Example:
        >>> load_documents("dev")[0].id
        'dev-0001'
    """
    return list(read_documents(FOLDER / f"documents-{part}.jsonl"))


def load_questions(part: str) -> list[Question]:
    """Return questions about a made-up town with candidate answers; `part` is one of `QUESTION_PARTS`.

    Example:
        >>> len(load_questions("dev"))
        30
    """
    return list(read_questions(FOLDER / f"questions-{part}.jsonl"))


def write_sample(folder: Path) -> dict[str, Path]:
    """Copy the files of all parts into a folder; return their paths by name, as in `documents-train`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = sorted(FOLDER.glob("*.jsonl"))
    return {path.stem: Path(shutil.copyfile(path, folder / path.name)) for path in files}
