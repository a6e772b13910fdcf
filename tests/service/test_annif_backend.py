"""Annif's own HTTP backend gets suggestions from a running service.

Annif pins other versions than this package, so it is looked for in an environment of its own: set ANNIF to
its command (`python -m venv annif-venv && annif-venv/bin/pip install annif`).
"""

import os
import shutil
import subprocess

import pytest
from running import running

ANNIF = os.environ.get("ANNIF") or shutil.which("annif")
TEXT = "The street lamp outside our house has been dark for a week."

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ANNIF, reason="annif is not installed: set ANNIF to its command"),
]


def annif(folder, *arguments, text=""):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [ANNIF, *arguments],
        cwd=folder,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_annif_suggests_the_labels_of_the_service(label_folder, served_labels, tmp_path):
    model = served_labels.model
    rows = [f"<{label}>\t{label.replace('-', ' ')}" for label in model.labels.ids]
    (tmp_path / "letters.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with running(label_folder, "--feedback", tmp_path / "feedback.sqlite") as service:
        (tmp_path / "projects.cfg").write_text(
            f"""[letters]
name=Letters
language=en
backend=http
analyzer=simple
vocab=letters
limit=10
endpoint={service.address}/v1/projects/letters/suggest
""",
            encoding="utf-8",
        )
        annif(tmp_path, "load-vocab", "letters", "letters.tsv", "--language", "en")
        suggested = annif(tmp_path, "suggest", "letters", "--limit", "3", text=TEXT)
    found = [line.split("\t") for line in suggested.splitlines()]
    expected = model.rank([TEXT], 3)[0]
    assert [row[0] for row in found] == [f"<{row.label}>" for row in expected]
    assert [float(row[2]) for row in found] == pytest.approx([row.score for row in expected], abs=1e-3)
