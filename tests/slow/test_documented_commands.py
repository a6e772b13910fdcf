"""Every command and Python example of the documentation runs as it is written, in a folder with its files.

The README's own block has a test with expectations, `test_readme_commands.py`.
"""

from __future__ import annotations

import contextlib
import csv
import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("cli", "baselines/answers", "service")]

from run_command import Finished, run_command
from running import running
from tiny_transformer import write_transformer

from benchmarks.__main__ import main as run_benchmarks
from nlpcapsule.learning.store import FeedbackStore
from nlpcapsule.sample import load_documents, load_questions

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
# Commands that cannot run here, by what they hold; their options are checked all the same.
CANNOT_RUN = {
    "pecos": "needs libpecos in an environment of its own",
    "eurlex5k": "needs real data",
    "nlpcapsule demo": "takes minutes; test_wheel.py and test_demo.py run it",
    "benchmarks reproduce": "needs real data; test_benchmarks_smoke.py runs it on the sample",
    "benchmarks prepare": "needs real data",
    "benchmarks evidence": "needs real data",
    "benchmarks export": "needs real data",
    "benchmarks readme": "rewrites README.md",
    "benchmarks difference TABLE": "names no table",
    "benchmarks faithfulness": "takes minutes; test_faithfulness.py runs it",
    "benchmarks learn-labels": "needs real data",
    "benchmarks load": "takes minutes; test_load.py runs it",
    "benchmarks speed": "takes minutes",
}
COMMAND = re.compile(r"(?:\S*/bin/)?(nlpcapsule|python -m benchmarks) [a-z]")
SMALL = {
    "train": ["--epochs", "1", "--quiet"],
    "compare": ["--set", "all.epochs=1", "--quiet"],
    "predict": ["--quiet"],
    "evaluate": ["--quiet"],
    "tune": ["--trials", "1", "--set", "training.epochs=1", "--quiet"],
}


class Documented(NamedTuple):
    """A command of a page: its words, what is piped into it, and whether it stands in a line of text."""

    words: list[str]
    piped: str | None
    is_inline: bool

    @property
    def text(self) -> str:
        return " ".join(self.words)


def commands_in(page: str) -> list[Documented]:
    """All commands of a page, in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```|`([^`]+)`", text, re.DOTALL | re.MULTILINE):
        language, block, inline = match.groups()
        if inline is None and (language or page == "README.md"):
            continue
        lines = block.replace("\\\n", " ").splitlines() if block else [" ".join(inline.split())]
        found += [_parsed(line, block is None) for line in lines]
    return [command for command in found if command is not None]


def all_commands() -> dict[str, list[Documented]]:
    """The commands of every page; a comparison, which takes long, only where it comes first."""
    compared: set[str] = set()
    pages: dict[str, list[Documented]] = {}
    for page in PAGES:
        pages[page] = [command for command in commands_in(page) if command.text not in compared]
        compared.update(command.text for command in pages[page] if "compare" in command.words)
    return pages


def _parsed(line: str, is_inline: bool) -> Documented | None:
    before, _, last = line.rpartition(" | ")
    if not COMMAND.match(last):
        return None
    words = shlex.split(re.sub(r"\[[^\]]*\]", "", last), comments=True)  # without what is optional
    words = ["benchmarks", *words[3:]] if "benchmarks" in words[:3] else ["nlpcapsule", *words[1:]]
    return Documented(words, before.split()[-1] if before else None, is_inline)


COMMANDS = all_commands()


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files that the documentation names."""
    folder = tmp_path_factory.mktemp("prepared")
    parts = {
        part: [{"text": row.text, "labels": row.labels} for row in load_documents(part)[:size]]
        for part, size in {"train": 60, "dev": 20, "test-seen": 20}.items()
    }
    enough = [{"text": row.text, "labels": row.labels} for row in load_documents("train")[:150]]
    enough += [
        {"text": f"It is {word} again.", "labels": labels}
        for word in ("too bright", "loud")
        for labels in (["street-light-glare"], ["street-light-out", "noise"])
    ]
    for name in ("enough.jsonl", "train.jsonl", "demo-output/data/documents-train.jsonl"):
        write_rows(folder / name, enough)  # for a hybrid, which holds some of them out
    for name in ("DATA", "documents.jsonl"):
        write_rows(folder / name, parts["train"])
    for name in ("dev.jsonl", "new.jsonl", "letters.jsonl", "letter.jsonl", "test.jsonl"):
        write_rows(folder / name, parts["dev"])
    for place in ("DIR", "my-data", "my-eurlex"):
        for part, rows in parts.items():
            write_rows(folder / place / f"{part.removesuffix('-seen')}.jsonl", rows)
    labels = sorted({label for row in parts["train"] for label in row["labels"]})
    names = {label: label.replace("-", " ") for label in [*labels, "lighthouse-keeper"]}
    (folder / "names.json").write_text(json.dumps(names), encoding="utf-8")
    (folder / "glove.txt").write_text("the 0.1 0.2\nlamp 0.3 0.4\n", encoding="utf-8")
    lines = [
        f"{number}\t{question.text}\t{candidate.text}\t{candidate.label}"
        for number, question in enumerate(load_questions("train")[:16])
        for candidate in question.candidates
    ]
    (folder / "questions.tsv").write_text("\n".join(["qid\tquestion\tanswer\tlabel", *lines]) + "\n")
    for place in ("FOLDER", "sentence-transformers/all-MiniLM-L6-v2"):
        write_transformer(folder / place, positions=512)
    model = ["--output", folder / "MODEL", "--epochs", 1, "--quiet"]
    done = run_command("train", folder / "enough.jsonl", *model)
    assert done.code == 0, done.err
    for place in ("my-model", "demo-output/models/hybrid"):
        shutil.copytree(folder / "MODEL", folder / place)
    done = run_command("learn", folder / "my-model", folder / "new.jsonl")  # its second version
    assert done.code == 0, done.err
    write_rows(folder / "demo-output" / "data" / "documents-test-seen.jsonl", parts["test-seen"])
    (folder / "labels.json").write_text('{"noise": {"name": "noise", "broader": []}}', encoding="utf-8")
    ranker = ["--task", "answers", "--output", folder / "demo-output/models/answers-label-query"]
    done = run_command("train", folder / "questions.tsv", *ranker, "--epochs", 1, "--quiet")
    assert done.code == 0, done.err
    for name, part in {"letters.csv": "train", "letters-dev.csv": "dev", "news.csv": "dev"}.items():
        keys = ("id", "text", "labels") if name == "news.csv" else ("number", "body", "tags")
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(keys)
            rows.writerows(
                (number, row["text"], "|".join(row["labels"])) for number, row in enumerate(parts[part])
            )
    for name in ("feedback.sqlite", "my-model.feedback.sqlite"):
        FeedbackStore(folder / name).add("letter-17", "ada", "It is dark.", ["street-light-out"], [])
    return folder


@pytest.fixture
def working_folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def run(command: Documented, *more: str) -> Finished:
    program, *words = command.words
    if words[0] == "serve" and len(words) > 1 and "--help" not in more:
        with running(Path(words[1]), *words[2:]) as service:
            service.ask()
            code, told = service.stop()
        return Finished(code, "", told)
    stdin = Path(command.piped or "letters.jsonl").read_bytes() if "-" in words else b""
    if program == "benchmarks":
        with contextlib.chdir(ROOT):  # it belongs to a checkout
            return run_command(*words, *more, entry_point=run_benchmarks)
    return run_command(*words, *more, stdin=stdin)


def run_small(command: Documented) -> Finished:
    """Run a command on little data, for one epoch."""
    if command.words[1] == "train" and "--output" in command.words:
        shutil.rmtree(command.words[command.words.index("--output") + 1], ignore_errors=True)
    more = [] if "--epochs" in command.words else list(SMALL.get(command.words[1], []))
    if command.words[1] == "compare" and "--systems" not in command.words:
        needs_hybrid = "hybrid" in command.text or "--label-names" in command.words
        more += ["--systems", "hybrid" if needs_hybrid else "one-vs-rest"]  # all of them take minutes
    return run(command, *more)


def has_no_data(command: Documented, done: Finished) -> bool:
    """Whether a command in a line of text only names options, as `nlpcapsule predict --threshold tuned`."""
    return command.is_inline and done.code == 2 and "Missing " in done.err


@pytest.mark.parametrize("page", [page for page in PAGES if COMMANDS[page]])
def test_every_command_runs(page: str, working_folder: Path) -> None:
    problems = []
    for command in COMMANDS[page]:
        is_listed = any(part in command.text for part in CANNOT_RUN)
        done = run(command, "--help") if is_listed else run_small(command)
        if has_no_data(command, done):
            done = run(command, "--help")  # refuses options that do not exist
        if done.code != 0:
            problems.append(f"{command.text}: {done.err[-500:]}")
    assert problems == [], "\n".join(problems)


PYTHON = {
    page: re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    for page in PAGES
    if page != "README.md"
}


@pytest.mark.parametrize("page", [page for page, blocks in PYTHON.items() if blocks])
def test_every_python_example_runs(page: str, working_folder: Path) -> None:
    for number, block in enumerate(PYTHON[page]):
        code = compile(block, f"{page}, example {number + 1}", "exec")
        exec(code, {"__name__": "example"})


def test_commands_are_found_and_few_of_them_are_left_out() -> None:
    found = [command.text for commands in COMMANDS.values() for command in commands]
    run = [text for text in found if not any(part in text for part in CANNOT_RUN)]
    assert len(run) > 20
    assert [part for part in CANNOT_RUN if not any(part in text for text in found)] == []
