"""The `nlpcapsule` command, also `python -m nlpcapsule`.

Ctrl-C is handled before anything else is imported: torch takes seconds, and an interrupted import prints a
traceback or fails in other ways.
"""

import os
import signal
import sys
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Run a command."""
    _open_closed_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the shell ignores Ctrl-C
        signal.signal(signal.SIGINT, _interrupt)
    from nlpcapsule.cli.app import main as run_command

    run_command()


def _open_closed_streams() -> None:
    """Give standard streams that the caller has closed a file, so that no other file takes their numbers.

    Reading then finds no rows, and writing fails with an error: nothing is lost silently.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            stream = open(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


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
