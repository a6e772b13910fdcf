"""The command that runs a module of the checkout, which is not installed."""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
_RUN_FROM_FOLDER = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def checkout_command(module: str, folder: Path = CHECKOUT) -> list[str]:
    """Return the command that runs a module of a folder, after Python's own modules."""
    return [sys.executable, "-P", "-c", _RUN_FROM_FOLDER, str(folder.absolute()), module]
