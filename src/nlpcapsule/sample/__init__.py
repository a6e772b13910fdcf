"""An embedded sample of letters and questions, to try every step without a download.

The wording lives in `topics/`, `scenes/`, `letters.toml` and `slots.toml`; the code combines it.
"""

from nlpcapsule.sample.generate import (
    DOCUMENT_PARTS,
    QUESTION_PARTS,
    load_documents,
    load_questions,
    write_sample,
)

__all__ = ["DOCUMENT_PARTS", "QUESTION_PARTS", "load_documents", "load_questions", "write_sample"]
