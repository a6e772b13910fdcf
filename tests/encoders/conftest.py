"""What tests of other folders are made of serves here, too: a tiny transformer, toy runs, tiny networks."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / folder) for folder in ("baselines/answers", "training", "networks")]
