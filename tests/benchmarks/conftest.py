"""The tiny transformer and the runner of commands are shared with other tests."""

import sys
from pathlib import Path

for folder in ("baselines/answers", "cli"):
    sys.path.append(str(Path(__file__).parents[1] / folder))
