"""The benchmark of training: checkouts in turn, what each took, and a clear error where one fails."""

import json
import subprocess
from functools import partial
from pathlib import Path

import psutil
import pytest

from benchmarks.speed.tables import shortened
from benchmarks.speed.train import Checkout, TrainingData, compare_trainings, next_to_busy_process
from nlpcapsule.errors import ConfigError, NlpCapsuleError
from nlpcapsule.provenance import CHANGED

# A made-up `nlpcapsule`: its model is a file, and its P@1 follows from the seed.
_COMMAND = """
import json, sys, time
from pathlib import Path

def main():
    words = sys.argv[1:]
    option = dict(zip(words, words[1:]))
    if words[0] == "train":
        if "epochs=0" in words:
            sys.exit("there is nothing to train")
        while time.process_time() < {seconds}:
            pass
        seed = next(word for word in words if word.startswith("seed="))
        Path(option[{output!r}]).write_text(seed)
    else:
        seed = Path(words[1]).read_text().removeprefix("seed=")
        Path(option["--json"]).write_text(json.dumps({{"P@1": {figure} / int(seed)}}))
"""


def make_checkout(folder: Path, output: str, seconds: float, figure: float) -> Checkout:
    package = folder / "src" / "nlpcapsule" / "cli"
    package.mkdir(parents=True)
    for each in (package.parent, package):
        (each / "__init__.py").touch()
    (package / "app.py").write_text(_COMMAND.format(output=output, seconds=seconds, figure=figure))
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "made up"]):
        subprocess.run([*git, *words], check=True)
    return Checkout(folder)


@pytest.fixture
def checkouts(tmp_path):
    """An earlier checkout that takes twice as long, and one with benchmarks and the option's present name."""
    now = make_checkout(tmp_path / "now", "--output", 0.3, 0.75)
    (now.folder / "benchmarks").mkdir()
    return make_checkout(tmp_path / "earlier", "--out", 0.6, 0.5), now


def run(checkouts, tmp_path: Path, *settings: str, rounds: int = 1) -> tuple[dict, list[str]]:
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.jsonl").touch()
    told: list[str] = []
    data, output = TrainingData(tmp_path, settings), tmp_path / "found.json"
    earlier, now = (partial(each.train, data, 1) for each in checkouts)
    compare_trainings("train", data, earlier, now, rounds, output, told.append)
    return json.loads(output.read_text()), told


def test_checkouts_are_trained_in_turn_and_compared(checkouts, tmp_path):
    found, told = run(checkouts, tmp_path, rounds=2)
    commits = [each["commit"] for turn in found["rounds"] for each in turn]
    assert commits == [each.commit for each in checkouts] * 2
    assert [each["seed"] for turn in found["rounds"] for each in turn] == [1, 1, 2, 2]
    assert len(told) == 4
    assert found["lost_points"] == -18.75  # the mean of 25 points with seed 1 and half of it with seed 2
    assert 0.3 < found["cpu_ratio"] < 0.7
    assert all(each["peak_memory_mib"] > 1 for each in found["rounds"][0])


def test_a_checkout_that_fails_says_why(checkouts, tmp_path):
    with pytest.raises(NlpCapsuleError, match="train failed: there is nothing to train"):
        run(checkouts, tmp_path, "epochs=0")


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="expected a checkout of this repository"):
        assert Checkout(tmp_path).commit


def test_a_folder_without_dev_documents_is_refused(tmp_path):
    for name in ("train", "test"):
        (tmp_path / f"{name}.jsonl").touch()
    with pytest.raises(ConfigError, match="expected train, dev and test files"):
        assert TrainingData(tmp_path).files


def test_a_process_keeps_a_core_busy_during_the_training_alone():
    before = set(psutil.Process().children())  # such as joblib's, of earlier tests

    def started(seed, folder):
        return [seed, folder, *set(psutil.Process().children()) - before]

    found = next_to_busy_process(started)(3, Path("there"))
    assert found[:2] == [3, Path("there")]
    assert len(found) == 3
    assert not found[2].is_running()


def test_fewer_digits_of_a_commit_keep_the_mark_of_changed_code():
    assert shortened("d9456b80687f4d49", 7) == "d9456b8"
    assert shortened(f"d9456b80687f4d49{CHANGED}", 7) == f"d9456b8{CHANGED}"
    assert shortened("unknown", 12) == "unknown"
