"""Read a `tokenizer.json` of any origin, which may be damaged or malicious."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from nlpcapsule.errors import DataError, cut

PADDING_TOKEN, UNKNOWN_TOKEN = "[PAD]", "[UNK]"
PADDING_NAMES = (PADDING_TOKEN, "<pad>", "<PAD>", "<|pad|>", "<|endoftext|>")
UNKNOWN_NAMES = (UNKNOWN_TOKEN, "<unk>", "<UNK>", "<|unk|>")
_MOST_GROWTH = 64  # times that normalizers may lengthen a text
_LONGEST_REASON = 200  # maximum characters of the library's message


def parse_tokenizer(text: str, path: str | Path | None) -> tuple[Tokenizer, int, int]:
    """Return the tokenizer, the id of its padding token and that of its unknown token."""
    with failures_as_errors(
        "is not a tokenizer.json", path, "expected a file written by the tokenizers library"
    ):
        settings = json.loads(text)
        _refuse_growth(settings)
        tokenizer = Tokenizer.from_str(text)
    padding_id = _find_padding_id(tokenizer, settings, path)
    return tokenizer, padding_id, _find_unknown_id(tokenizer, settings["model"], padding_id)


@contextmanager
def failures_as_errors(
    problem: str, path: str | Path | None = None, hint: str | None = None
) -> Iterator[None]:
    """Turn the library's failures into `DataError`s: it raises bare exceptions, and panics."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise DataError(f"{problem} ({cut(str(error), _LONGEST_REASON)})", path, hint=hint) from error


def _refuse_growth(settings: Any) -> None:
    """Reject normalizers that make a text many times longer: a few of them could fill all memory."""
    factor, open_parts = 1, [settings.get("normalizer")] if isinstance(settings, dict) else []
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, list):
            open_parts += part
        elif isinstance(part, dict):
            open_parts += [value for value in part.values() if isinstance(value, list | dict)]
            added = part.get("content", part.get("prepend", ""))
            factor *= max(1, len(added)) if isinstance(added, str) else 1
        if factor > _MOST_GROWTH:
            raise ValueError("its normalizers make a text many times longer")


def _find_padding_id(tokenizer: Tokenizer, settings: dict[str, Any], path: str | Path | None) -> int:
    for name in ((settings.get("padding") or {}).get("pad_token"), *PADDING_NAMES):
        if name is not None and (id := tokenizer.token_to_id(name)) is not None:
            return id
    hint = f"add a special token with one of these names: {', '.join(PADDING_NAMES)}"
    raise DataError("the tokenizer has no padding token", path, hint=hint)


def _find_unknown_id(tokenizer: Tokenizer, model: dict[str, Any], padding_id: int) -> int:
    """Return the unknown token's id, or the first id that is not padding for byte-level tokenizers."""
    if isinstance(model.get("unk_id"), int):  # unigram models name it by its id
        return model["unk_id"]
    for name in (model.get("unk_token"), *UNKNOWN_NAMES):
        if name is not None and (id := tokenizer.token_to_id(name)) not in (None, padding_id):
            return id
    return 1 if padding_id == 0 else 0
