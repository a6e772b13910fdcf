"""The `nlpcapsule` command, also `python -m nlpcapsule`.

Ctrl-C is handled before anything else is imported: torch takes seconds, and an interrupted import prints a
traceback or fails in other ways.
"""

import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Run a command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the shell ignores Ctrl-C
        signal.signal(signal.SIGINT, _interrupt)
    from nlpcapsule.cli.app import main as run_command

    run_command()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Exit at once during an import, when nothing needs cleaning up; otherwise raise KeyboardInterrupt."""
    place = frame
    while place is not None:
        if place.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(_INTERRUPTED)
        place = place.f_back
    signal.default_int_handler(number, frame)


if __name__ == "__main__":
    main()
