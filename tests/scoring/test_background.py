"""Work in the background is done once, whatever becomes of the threads."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import pytest

from nlpcapsule.scoring import background
from nlpcapsule.scoring.background import begin, in_background


def test_a_result_is_computed_in_another_thread() -> None:
    assert in_background(threading.get_ident).result(30) != threading.get_ident()


def request() -> None:
    assert in_background(len, "four").result(30) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    background._threads_of.cache_clear()
    monkeypatch.setattr(background, "thread_count", lambda: 1)  # or the pool would start another thread
    request()  # starts the parent's threads
    child = multiprocessing.get_context("fork").Process(target=request)
    child.start()
    child.join(60)
    if child.is_alive():
        child.kill()
    assert child.exitcode == 0
    background._threads_of.cache_clear()


@pytest.mark.parametrize("error", [ValueError("no number"), SystemExit(3)], ids=["error", "exit"])
def test_a_failure_reaches_the_caller(error: BaseException) -> None:
    def fail() -> NoReturn:
        raise error

    with pytest.raises(type(error)):
        in_background(fail).result(30)
    request()  # the threads go on


def refuse(pool: ThreadPoolExecutor, *given: Any) -> NoReturn:
    raise RuntimeError("cannot schedule new futures after interpreter shutdown")


def cannot_start(thread: threading.Thread) -> NoReturn:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize(
    ("owner", "name", "replacement"),
    [(ThreadPoolExecutor, "submit", refuse), (threading.Thread, "start", cannot_start)],
    ids=["the interpreter ends", "no thread can start"],
)
def test_without_threads_the_caller_computes(
    owner: type, name: str, replacement: Callable[..., NoReturn], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, pool = threading.get_ident(), ThreadPoolExecutor(2)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, replacement)
        assert begin(pool, threading.get_ident).result(0) == here
        with pytest.raises(ValueError, match="invalid literal"):
            begin(pool, int, "four").result(0)


def test_what_the_caller_computed_is_neither_repeated_nor_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Document:
        pass

    pool, done, document = ThreadPoolExecutor(1), [], Document()
    used = sys.getrefcount(document)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", cannot_start)
        begin(pool, lambda given: done.append("here"), document).result(0)
    assert pool._work_queue.qsize() == 1  # it waits for a thread all the same
    assert sys.getrefcount(document) == used
    begin(pool, done.append, "there").result(30)
    pool.shutdown()
    assert done == ["here", "there"]
