"""A process that has imported all there is to import, and forks a command whenever it is asked to.

Each command is a real process that runs `nlpcapsule` from its first line and can be killed at any moment, but
it does not spend seconds on imports. Reads a line of JSON per request from standard input: the words of a
command, answered by its process id, or a process to wait for, answered by its exit code.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from typing import Any

IMPORTED = [
    "accelerate",
    "ir_measures",
    "joblib",
    "pytrec_eval",
    "sklearn.svm",
    "torch._dynamo",
    "nlpcapsule.cli.app",
    "nlpcapsule.compare.comparison",
    "nlpcapsule.learning.learn",
    "nlpcapsule.lexical.one_vs_rest",
    "nlpcapsule.networks.label_query",
    "nlpcapsule.training.fit_labels",
]
IF_INSTALLED = ["nlpcapsule.service.app", "uvicorn"]  # the extra "serve"


def serve() -> None:
    """Answer requests; return in a new process whose arguments and streams are those of a command."""
    for name in IMPORTED:
        importlib.import_module(name)
    for name in IF_INSTALLED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    answer("ready")
    while line := sys.stdin.readline():
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer(os.waitstatus_to_exitcode(status))
            continue
        process = os.fork()
        if process == 0:
            become(request)
            return
        answer(process)
    sys.exit()


def become(request: dict[str, Any]) -> None:
    os.environ.update(request["environment"])
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["nlpcapsule", *request["words"]]


def answer(value: Any) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    serve()
    from nlpcapsule.__main__ import main

    main()
