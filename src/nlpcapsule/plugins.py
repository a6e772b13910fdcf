"""Load files outside the package that add systems, routings, encoders, losses or formats.

A plugin is a Python file that registers what it adds when it is imported. It runs with all rights of the
user, so it is only loaded on request: with `nlpcapsule --plugin FILE`, or from `NLPCAPSULE_PLUGINS`, which
passes the plugins on to child processes.
"""

import hashlib
import os
import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from nlpcapsule.errors import ConfigError

VARIABLE = "NLPCAPSULE_PLUGINS"  # paths, separated as in PATH


def load_plugins(paths: Iterable[str | Path] = ()) -> None:
    """Import these files, and those in `NLPCAPSULE_PLUGINS`, once each; a failing one is a ConfigError."""
    named = [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]
    wanted = list(dict.fromkeys([*named, *(str(Path(path).absolute()) for path in paths)]))
    for path in wanted:
        _load(Path(path))
    if wanted:
        os.environ[VARIABLE] = os.pathsep.join(wanted)


def _load(path: Path) -> None:
    name = f"nlpcapsule_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such plugin file")
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path}: expected a Python file that ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{path}: the plugin failed: {type(error).__name__}: {error}") from error
