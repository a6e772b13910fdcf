"""Memory stays bounded: 45,000 real documents load and tokenise in under 2 GiB."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(os.environ.get("NLPCAPSULE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "eurlex57k"
PREPARE = """
import resource, sys
from nlpcapsule.cli.files import RowFile
from nlpcapsule.config import Config
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.training.prepared_labels import prepare_labels

train, dev = (RowFile(path, ReadOptions()) for path in sys.argv[1:])
data = prepare_labels(train, dev, Config.build())
print(len(data.train), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"EURLEX57K is not at {DATA}"),
]


def test_45000_documents_are_prepared_in_under_two_gibibytes():
    command = [sys.executable, "-c", PREPARE, DATA / "train.jsonl.gz", DATA / "dev.jsonl.gz"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    documents, kibibytes = map(int, done.stdout.split())
    assert documents == 45_000
    assert kibibytes < 2 * 2**20
