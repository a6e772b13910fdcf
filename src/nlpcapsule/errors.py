"""Exceptions with messages that tell users how to fix the problem.

Every error that a user can cause is a `NlpCapsuleError`: the command line prints only its message and exits
with code 2. A message says what is wrong, where, what was expected and what to do. Errors about values are
also `ValueError`s, as scikit-learn expects.
"""

import difflib
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

_LOWER = (
    "lower batch_size, max_tokens or the sizes of the model (as in --set batch_size=8), or use a machine "
    "with more memory"
)
_LONGEST_REASON, _LONGEST_QUOTE = 200, 80  # characters
_MEMORY_ERRORS = ("OutOfMemoryError", "TerminatedWorkerError")  # torch's; joblib's, for a killed worker
_MEMORY_SIGNS = re.compile(
    "DefaultCPUAllocator|CUDA (error: )?out of memory|CUBLAS_STATUS_ALLOC_FAILED|Cannot allocate memory|"
    "Storage size calculation overflowed|integer multiplication overflow|array is too big|"
    "Maximum allowed dimension exceeded"
)


class NlpCapsuleError(Exception):
    """Base class of errors that the user can fix; printed without a traceback."""


class DataError(NlpCapsuleError, ValueError):
    """Data that cannot be read as expected: the problem, where it is, and a hint what to do about it.

    Example:
        >>> print(DataError("the key 'text' is missing", "a.jsonl", 3, "name the key with --text-key"))
        a.jsonl, line 3: the key 'text' is missing; name the key with --text-key
    """

    def __init__(
        self, problem: str, path: str | Path | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        self.problem, self.path, self.line, self.hint = problem, path, line, hint
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(f"{where}{problem}" + (f"; {hint}" if hint else ""))


class BadRowError(DataError):
    """One row of a file is unusable; `--skip-bad-rows` counts such rows and continues."""


class ConfigError(NlpCapsuleError, ValueError):
    """An option or a configuration key that does not exist or has an impossible value."""


class ModelFolderError(NlpCapsuleError):
    """A model folder that is missing, incomplete, damaged or written by a newer version."""


class MissingExtraError(NlpCapsuleError):
    """An optional dependency is required but not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package!r}; install it with: pip install 'nlpcapsule[{extra}]'"
        )


def import_extra(package: str, extra: str) -> Any:
    """Import an optional dependency; the error names the extra that installs it."""
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtraError(package, extra) from None


def out_of_memory(error: BaseException) -> str | None:
    """Return the message for an out-of-memory error of any library; None for other errors.

    Example:
        >>> out_of_memory(MemoryError("Unable to allocate 7 EiB"))[:40]
        'out of memory (Unable to allocate 7 EiB)'
    """
    text = " ".join(str(error).split())
    is_known = isinstance(error, MemoryError) or type(error).__name__ in _MEMORY_ERRORS
    may_be = isinstance(error, OSError | RuntimeError | ValueError)
    if not is_known and not (may_be and _MEMORY_SIGNS.search(text)):
        return None
    # torch prepends the location in its source.
    told = text.split("DefaultCPUAllocator: ")[-1][:_LONGEST_REASON]
    return f"out of memory{f' ({told})' if told else ''}; {_LOWER}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error of another library, or its type if it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0][:_LONGEST_REASON]


def quoted(value: object) -> str:
    """Return the repr of a value for a message, shortened if it is long."""
    if isinstance(value, str):
        return repr(cut(value))
    try:
        return cut(repr(value))
    except (ValueError, RecursionError):  # Python refuses numbers of thousands of digits
        return f"{type(value).__name__} (too long to show)"


def printable(text: str) -> str:
    r"""Return a text without characters that control a terminal, since files may hold any; newlines stay.

    Example:
        >>> print(printable("a\x1b[31mb"))
        a\x1b[31mb
    """
    return "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)


def cut(text: str, longest: int = _LONGEST_QUOTE) -> str:
    """Return a text for a message, shortened if it is long."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown name, or the list of known names.

    Example:
        >>> did_you_mean("routng", ["routing", "iterations"])
        "did you mean 'routing'?"
    """
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"expected one of: {', '.join(names)}"
