"""`python -m nlpcapsule.compare RUN`: the child process that `nlpcapsule compare` starts per system."""

import sys
import traceback

from nlpcapsule.errors import NlpCapsuleError, out_of_memory
from nlpcapsule.plugins import load_plugins
from nlpcapsule.processes import leave_signals_to_parent


def main(run: str) -> None:
    """Train and measure one system, given as JSON."""
    leave_signals_to_parent()  # before the slow imports
    load_plugins()
    from nlpcapsule.compare.measuring import RUN_JSON, run_system

    run_system(RUN_JSON.validate_json(run))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:  # a third-party library may raise anything, and the comparison continues
        reason = str(error)
        if not isinstance(error, NlpCapsuleError):
            traceback.print_exc()
            reason = out_of_memory(error) or f"{type(error).__name__}: {error}"
        print(f"error: {reason}")
        sys.exit(2)
