"""`.ci/audit` fails for known vulnerabilities alone, and says where nothing was audited."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[1] / ".ci" / "audit"
SOUND = {"name": "sound", "version": "1", "vulns": []}
HURT = {"name": "hurt", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


def audit(folder: Path, report: str | None) -> subprocess.CompletedProcess[str]:
    """Run the script with a pip-audit that reports this, or with none that could be installed."""
    (folder / ".ci").mkdir()
    shutil.copy(AUDIT, folder / ".ci")
    if report is not None:
        tools = folder / ".venv-audit" / "bin"
        tools.mkdir(parents=True)
        (tools / "python").symlink_to(sys.executable)
        (tools / "pip-audit").write_text(f"#!/bin/sh\ncat <<'END'\n{report}\nEND\nexit 1\n", encoding="utf-8")
        (tools / "pip-audit").chmod(0o755)
    command = ["bash", str(folder / ".ci" / "audit"), "false"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


@pytest.mark.parametrize(
    ("report", "code", "told"),
    [
        (json.dumps({"dependencies": [SOUND, HURT]}), 1, "hurt 1: X-1, fixed in 2"),
        (json.dumps({"dependencies": [SOUND]}), 0, "1 of 1 packages audited, 0 known vulnerabilities"),
        ("no answer", 0, "not audited: the registry has no data"),
        (None, 0, "not audited: pip-audit cannot be installed here"),
    ],
)
def test_the_outcome_is_told(tmp_path: Path, report: str | None, code: int, told: str) -> None:
    done = audit(tmp_path, report)
    assert (done.returncode, told in done.stdout) == (code, True), done
