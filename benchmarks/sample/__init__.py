"""The generator of the embedded sample: `python -m benchmarks.sample` writes its files into the package.

The wording is in `topics/`, `scenes/`, `letters.toml` and `slots.toml`; the code combines it.
"""
