"""The tiny transformer of other tests serves encoded folders, too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "baselines" / "answers"))
