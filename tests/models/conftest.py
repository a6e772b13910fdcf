"""What tests of other folders are made of, the tiny transformer and the toy runs, serves encoders, too."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / "baselines" / "answers"), str(TESTS / "training")]
