"""The tiny transformer, planted documents and tiny networks of other tests serve the baselines, too."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [
    str(TESTS / folder) for folder in ("baselines/answers", "encoders", "networks", "lexical", "training")
]
