"""The generator of the embedded sample: `python -m benchmarks.sample` writes its files in `nlpcapsule.sample`.

The wording is in `topics/`, `scenes/`, `letters.toml` and `slots.toml`; the code combines it.
"""
