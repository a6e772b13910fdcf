"""The paper's tables and figures, reproduced with nlpcapsule: `python -m benchmarks reproduce TABLE`.

Run from a checkout; not part of the wheel, and nlpcapsule never imports it.
"""
