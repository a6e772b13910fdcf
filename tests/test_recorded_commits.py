"""Results name commits that everybody with this repository can check out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nlpcapsule.provenance import CHANGED

CHECKOUT = Path(__file__).parents[1]


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(CHECKOUT), *words], capture_output=True, text=True, check=False)


@pytest.fixture
def results() -> Path:
    """The folder of results in a checkout with its whole history."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    if not git("ls-files", "results").stdout:
        pytest.skip(f"{CHECKOUT} is no checkout of this repository")
    if git("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        pytest.skip("a shallow clone lacks the commits of earlier results")
    return CHECKOUT / "results"


def commits(value: Any) -> Iterator[str]:
    """Yield all commits that a record names, at any depth."""
    if isinstance(value, list):
        for each in value:
            yield from commits(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key == "commit":
                yield str(each)
            else:
                yield from commits(each)


def hashes(commit: str) -> list[str]:
    """Return the hashes in a recorded commit, which may have remarks."""
    return re.findall(r"\b[0-9a-f]{7,40}\b", commit)


@cache
def is_ancestor(commit: str) -> bool:
    return git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


def can_be_checked_out(commit: str) -> bool:
    named = hashes(commit)
    return bool(named) and not commit.endswith(CHANGED) and all(map(is_ancestor, named))


def test_every_recorded_commit_is_part_of_the_history(results: Path) -> None:
    named = [
        (str(path.relative_to(results)), commit)
        for path in sorted(results.rglob("*.json"))
        for commit in sorted(set(commits(json.loads(path.read_text(encoding="utf-8")))))
    ]
    assert named
    lost = [each for each in named if not can_be_checked_out(each[1])]
    assert not lost, "record these again at a commit that stays"


def test_commits_are_found_at_any_depth_and_next_to_remarks() -> None:
    record = {"commit": "2be5626", "rounds": [[{"commit": "6b8fbc8+more"}]], "data": {"commit": "unknown"}}
    assert [hashes(each) for each in commits(record)] == [["2be5626"], ["6b8fbc8"], []]
    assert hashes("97629c4 to b0c8872, as it was tuned") == ["97629c4", "b0c8872"]


def test_a_record_without_a_hash_names_no_commit() -> None:
    assert not any(can_be_checked_out(commit) for commit in ("", "unknown", "HEAD", "main"))


def test_a_record_of_changed_code_names_no_commit(results: Path) -> None:
    head = git("rev-parse", "HEAD").stdout.strip()
    assert can_be_checked_out(head)
    assert not can_be_checked_out(f"{head}{CHANGED}")
