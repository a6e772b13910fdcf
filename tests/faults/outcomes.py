"""The two outcomes that a damaged input may have: it is refused in words, or it works."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from nlpcapsule.errors import NlpCapsuleError

LONGEST_MESSAGE = 2_000  # characters of a message that still can be read


class NetworkUsed(BaseException):
    """A connection was tried. No `Exception`, so that nothing catches it and goes on."""


def refused_or_works(run: Callable[[], Any]) -> tuple[str | None, str | None]:
    """Run something on a damaged input.

    Right are a return, and an error of the package with a readable message.

    Returns:
        What is wrong with the outcome, or None; and the message it was refused with, or None.
    """
    try:
        run()
    except NlpCapsuleError as error:
        message = str(error)
        if not message.strip() or len(message) > LONGEST_MESSAGE:
            return f"unreadable message of {len(message)} characters: {message[:200]!r}", message
        return None, message
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:300]} ({where.filename}:{where.lineno})", None
    return None, None


def assert_refused_or_works(run: Callable[[], Any], what: str = "") -> None:
    """Fail unless a damaged input is refused in words or works; `what` says how it was damaged."""
    problem, _ = refused_or_works(run)
    assert problem is None, f"{what}: {problem}"
