"""Where a result came from: the code's own commit, wherever the command was given."""

import subprocess
from pathlib import Path

from nlpcapsule import provenance
from nlpcapsule.provenance import checked_out_commit

CHECKOUT = Path(__file__).parents[1]


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def test_the_commit_is_the_codes_own_wherever_the_command_is_given(tmp_path, monkeypatch):
    before = checked_out_commit()
    assert before == (git(CHECKOUT, "rev-parse", "HEAD") or "unknown")
    monkeypatch.chdir(tmp_path)
    assert checked_out_commit() == before


def test_code_that_only_lies_in_somebody_elses_repository_has_no_commit(tmp_path, monkeypatch):
    git(tmp_path, "init")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    git(tmp_path, *who, "commit", "--allow-empty", "-m", "theirs")
    assert git(tmp_path, "rev-parse", "HEAD")
    installed = tmp_path / "site-packages" / "provenance.py"
    installed.parent.mkdir()
    installed.touch()
    monkeypatch.setattr(provenance, "__file__", str(installed))
    assert checked_out_commit() == "unknown"


def test_a_copy_of_the_code_is_told_its_commit(monkeypatch):
    monkeypatch.setenv("NLPCAPSULE_COMMIT", "abc")
    assert checked_out_commit() == "abc"
