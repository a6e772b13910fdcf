"""A worker process: runs a command of the package and ends with its parent."""

from __future__ import annotations

import runpy

from nlpcapsule.processes import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    runpy.run_module("nlpcapsule", run_name="__main__", alter_sys=True)
