"""The benchmark of training: checkouts in turn, what each took, and a clear error where one fails."""

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.speed.train import Checkout, speed_of_training
from nlpcapsule.errors import ConfigError, NlpCapsuleError

# A made-up `nlpcapsule`: its model is a file, and its P@1 is fixed.
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
        Path(option[{output!r}]).write_text("model")
    else:
        assert Path(words[1]).read_text() == "model"
        Path(option["--json"]).write_text(json.dumps({{"P@1": {figure}}}))
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
    (tmp_path / "models").mkdir()
    told: list[str] = []
    files = [tmp_path / name for name in ("train", "dev", "test")]
    found = speed_of_training(checkouts, files, settings, 1, rounds, tmp_path / "models", told.append)
    return json.loads(json.dumps(found)), told


def test_checkouts_are_trained_in_turn_and_compared(checkouts, tmp_path):
    found, told = run(checkouts, tmp_path, rounds=2)
    commits = [each["commit"] for turn in found["rounds"] for each in turn]
    assert commits == [each.commit for each in checkouts] * 2
    assert len(told) == 4
    assert found["lost_points"] == -25.0
    assert 0.3 < found["cpu_ratio"] < 0.7
    assert all(each["peak_memory_mib"] > 1 for each in found["rounds"][0])


def test_a_checkout_that_fails_says_why(checkouts, tmp_path):
    with pytest.raises(NlpCapsuleError, match="train failed: there is nothing to train"):
        run(checkouts, tmp_path, "epochs=0")


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="expected a checkout of this repository"):
        assert Checkout(tmp_path).commit
