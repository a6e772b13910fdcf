"""Run the shards of a prediction: in processes of this machine, or as tasks of a Ray cluster.

A worker runs `nlpcapsule predict` on the rows of one shard. One that dies is started again; an error that it
reports ends the prediction.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from nlpcapsule.errors import MissingExtraError, NlpCapsuleError
from nlpcapsule.processes import child_environment, module_command
from nlpcapsule.sharding.shards import Shards
from nlpcapsule.threads import thread_count

_ATTEMPTS = 5  # of a shard whose worker is killed
_REPORTED = 2  # exit code of an error with a message
_KILLED = -9

Say = Callable[[str], None]


def run_locally(shards: Shards, model: str, options: Sequence[str], say: Say) -> None:
    """Rank the unfinished shards in as many processes as there are cores."""
    waiting = shards.unfinished
    if not waiting:
        return
    workers = max(1, min(len(waiting), thread_count()))
    with ThreadPoolExecutor(workers) as threads:
        shared, started = [*options, "--threads", str(max(1, thread_count() // workers))], Started()
        running = [
            threads.submit(_run, _command(shards, number, model, shared), started) for number in waiting
        ]
        try:
            for done, task in enumerate(as_completed(running), shards.count - len(waiting) + 1):
                _raise_for(*task.result())
                say(f"{done} of {shards.count} shards are done")
        except BaseException:
            for task in running:
                task.cancel()
            started.kill()  # otherwise the block would wait for them
            raise


def run_on_ray(shards: Shards, model: str, options: Sequence[str], say: Say) -> None:
    """Rank the unfinished shards as tasks of Ray; all machines must see the files at the same paths.

    Ray starts on this machine, or joins the cluster that the variable RAY_ADDRESS names.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray") from None
    begun_here = not ray.is_initialized()
    if begun_here:
        ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        task: Any = ray.remote(max_retries=_ATTEMPTS)(_run)
        pending = [task.remote(_command(shards, number, model, options)) for number in shards.unfinished]
        while pending:
            done, pending = ray.wait(pending)
            _raise_for(*ray.get(done[0]))
            say(f"{shards.count - len(pending)} of {shards.count} shards are done")
    except ray.exceptions.RayError as error:
        raise NlpCapsuleError(f"Ray could not rank a shard: {str(error).strip().splitlines()[-1]}") from None
    finally:
        if begun_here:
            ray.shutdown()


ENGINES: dict[str, Callable[[Shards, str, Sequence[str], Say], None]] = {
    "local": run_locally,
    "ray": run_on_ray,
}


def _command(shards: Shards, number: int, model: str, options: Sequence[str]) -> list[str]:
    rows, results = shards.rows(number).absolute(), shards.results(number).absolute()
    arguments = ["predict", model, str(rows), "--format", "jsonl", "--output", str(results), "--quiet"]
    return [*module_command("nlpcapsule.sharding.worker"), *arguments, *options]


class Started:
    """Workers that are running, to be ended together."""

    def __init__(self) -> None:
        self._lock, self._workers, self._is_over = threading.Lock(), list[subprocess.Popen[str]](), False

    def start(self, command: list[str]) -> subprocess.Popen[str] | None:
        """Start a worker; None after `kill`."""
        with self._lock:
            if self._is_over:
                return None
            pipes: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
            self._workers.append(subprocess.Popen(command, env=child_environment(), **pipes))
            return self._workers[-1]

    def kill(self) -> None:
        """End all workers, and start none any more."""
        with self._lock:
            self._is_over = True
            for worker in self._workers:
                worker.kill()


def _run(command: list[str], started: Started | None = None) -> tuple[int, str]:
    """Run a worker, again if it is killed; return its exit code and what it printed about an error."""
    started, code, told = started or Started(), _KILLED, ""
    for _ in range(_ATTEMPTS):
        worker = started.start(command)
        if worker is None:
            break
        told, code = worker.communicate()[1], worker.returncode
        if code >= 0:
            break
    return code, told.strip()


def _raise_for(code: int, message: str) -> None:
    if code == _REPORTED:
        raise NlpCapsuleError(message.removeprefix("error: "))
    if code:
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        last = message.splitlines()[-1] if message else "without a message"
        raise NlpCapsuleError(f"a worker {how}: {last}; the same command again goes on with the other shards")
