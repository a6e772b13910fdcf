"""What tests of other folders are made of serves here, too: a tiny transformer, toy runs, plain loops."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / "baselines" / "answers"), str(TESTS / "training"), str(TESTS / "capsules")]
