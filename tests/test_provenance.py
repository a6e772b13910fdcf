"""Where a result came from: the code's own commit, wherever the command was given."""

import subprocess
from pathlib import Path

import pytest

from nlpcapsule import provenance
from nlpcapsule.provenance import CHANGED, checked_out_commit

CHECKOUT = Path(__file__).parents[1]
WHO = ("-c", "user.name=a", "-c", "user.email=a@b.c")
CODE = [
    "src/nlpcapsule/provenance.py",
    "src/nlpcapsule/data/labels.py",
    "benchmarks/cost.py",
    "pyproject.toml",
]
WRITTEN = ["results/cost.json", "docs/cost.md", "README.md"]


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def test_the_commit_is_the_codes_own_wherever_the_command_is_given(tmp_path, monkeypatch):
    before = checked_out_commit()
    assert before.removesuffix(CHANGED) == (git(CHECKOUT, "rev-parse", "HEAD") or "unknown")
    monkeypatch.chdir(tmp_path)
    assert checked_out_commit() == before


def test_code_that_only_lies_in_somebody_elses_repository_has_no_commit(tmp_path, monkeypatch):
    git(tmp_path, "init")
    git(tmp_path, *WHO, "commit", "--allow-empty", "-m", "theirs")
    assert git(tmp_path, "rev-parse", "HEAD")
    installed = tmp_path / "site-packages" / "provenance.py"
    installed.parent.mkdir()
    installed.touch()
    monkeypatch.setattr(provenance, "__file__", str(installed))
    assert checked_out_commit() == "unknown"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of made-up code, whose provenance.py is ours."""
    for name in (*CODE, *WRITTEN):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first\n")
    for words in (["init"], ["add", "."], [*WHO, "commit", "-m", "made up"]):
        git(tmp_path, *words)
    monkeypatch.delenv("NLPCAPSULE_COMMIT", raising=False)
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / CODE[0]))
    return tmp_path


def test_a_checkout_without_changes_has_the_commit_alone(checkout):
    assert checked_out_commit() == git(checkout, "rev-parse", "HEAD") != ""
    (checkout / CODE[1]).touch()  # another time, the same text
    assert checked_out_commit() == git(checkout, "rev-parse", "HEAD")


@pytest.mark.parametrize("is_staged", [False, True])
@pytest.mark.parametrize("name", CODE)
def test_a_commit_whose_code_was_changed_says_so(checkout, name, is_staged):
    (checkout / name).write_text("second\n")
    if is_staged:
        git(checkout, "add", name)
    assert checked_out_commit() == git(checkout, "rev-parse", "HEAD") + "+changes"


@pytest.mark.parametrize("name", ["src/nlpcapsule/config/new.toml", "benchmarks/new.py"])
def test_a_new_file_of_the_code_is_a_change(checkout, name):
    (checkout / name).parent.mkdir(exist_ok=True)
    (checkout / name).write_text("new\n")
    assert checked_out_commit() == git(checkout, "rev-parse", "HEAD") + "+changes"


def test_a_removed_file_of_the_code_is_a_change(checkout):
    (checkout / CODE[2]).unlink()
    assert checked_out_commit().endswith("+changes")


def test_results_and_pages_that_measurements_write_are_no_changes_of_the_code(checkout):
    for name in WRITTEN:
        (checkout / name).write_text("second\n")
    (checkout / "results" / "speed.json").write_text("{}")
    assert checked_out_commit() == git(checkout, "rev-parse", "HEAD")


def test_a_checkout_without_a_commit_has_none(checkout):
    git(checkout, "checkout", "--orphan", "empty")
    assert checked_out_commit() == "unknown"


def test_a_copy_of_the_code_is_told_its_commit(monkeypatch):
    monkeypatch.setenv("NLPCAPSULE_COMMIT", "abc")
    assert checked_out_commit() == "abc"
