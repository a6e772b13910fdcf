"""Parse JSON that may be damaged or malicious: unambiguous and bounded, or an error that says why."""

import json
import re
import stat
from collections import Counter
from pathlib import Path
from typing import Any

from nlpcapsule.errors import DataError

LARGEST_FILE = 2**30  # maximum bytes of JSON
_HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(path: Path) -> Any:
    """Read a JSON file in UTF-8; see `parse_json` for what is a DataError."""
    return parse_json(read_text(path), path)


def read_text(path: Path) -> str:
    """Read a UTF-8 file that will be parsed as JSON; a DataError if it cannot be read or is too large."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise DataError("is not a plain file", path)
        if found.st_size > LARGEST_FILE:
            raise DataError(
                f"has more than {LARGEST_FILE:,} bytes, more than a file of this kind can have", path
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text ({error.reason} at byte {error.start})", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


def parse_json(text: str, path: str | Path | None = None) -> Any:
    r"""Parse JSON.

    A DataError rejects invalid JSON, repeated keys of an object, NaN and Infinity, numbers of thousands of
    digits, deep nesting, and half of a surrogate pair (`\ud83d`), which UTF-8 cannot encode.

    Example:
        >>> parse_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
        nlpcapsule.errors.DataError: the key 'a' is given twice
    """
    try:
        value = json.loads(text, object_pairs_hook=without_twins, parse_constant=_refuse_constant)
        if _HALF_A_PAIR.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise DataError("is nested too deeply to be read", path) from None
    except UnicodeEncodeError:
        raise DataError("holds half of a surrogate pair, which is no character", path) from None
    except _RefusedError as error:
        raise DataError(str(error), path) from None
    except ValueError as error:  # a JSONDecodeError, or an integer of too many digits
        raise DataError(f"is not JSON: {error}", path) from None
    return value


class _RefusedError(ValueError):
    """JSON that Python accepts but this module does not."""


class RepeatedKeyError(_RefusedError):
    """An object has a key, the error's `key`, twice."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"the key {key[:80]!r} is given twice")


def without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, as `json.loads` gives its pairs; a repeated key would be ambiguous."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return found


def _refuse_constant(name: str) -> float:
    raise _RefusedError(f"holds {name}, which is no number in JSON")
