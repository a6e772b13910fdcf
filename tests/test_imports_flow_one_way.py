"""Data flows one way through the package: a later stage may import an earlier one, never the reverse."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.write_pipeline import ROWS, pipeline_svg

PACKAGE = "nlpcapsule"
BENCHMARKS = "benchmarks"
SOURCE = Path(__file__).parents[1] / "src"

# Earliest first; modules of one entry may import each other. The package itself ("") is the front door.
STAGES: list[set[str]] = [
    {"errors"},
    {"processes"},
    {"provenance"},
    {"threads"},
    {"strict_json"},
    {"atomic_files"},
    {"registry"},
    {"plugins"},
    {"config"},
    {"data"},
    {"sample"},
    {"capsules"},
    {"fused"},
    {"encoders"},
    {"lexical"},
    {"networks"},
    {"evaluation"},
    {"scoring"},
    {"explain"},
    {"model_folder"},
    {"export"},
    {"training"},
    {"learning"},
    {"tuning"},
    {"baselines"},
    {"report"},
    {"compare"},
    {"sharding"},
    {"hugging_face"},
    {"estimators"},
    {"service"},
    {"demo"},
    {"cli"},
    {"", "__main__"},
]
ORDER = {name: rank for rank, names in enumerate(STAGES) for name in names}


def stage_of(module: str) -> str:
    """The first part of a module's name below the package; empty for the package itself."""
    return module.removeprefix(PACKAGE).removeprefix(".").partition(".")[0]


def all_imports(code: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and full name of every import, also those inside functions."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = names_after_from(node, module, is_package)
        else:
            continue
        yield from ((node.lineno, name) for name in names)


def imported_modules(code: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and full name of every import of this package's modules."""
    found = all_imports(code, module, is_package)
    return ((line, name) for line, name in found if name.partition(".")[0] == PACKAGE)


def names_after_from(node: ast.ImportFrom, module: str, is_package: bool) -> list[str]:
    parts = module.split(".")
    parents = parts[: len(parts) - node.level + is_package] if node.level else []
    source = ".".join([*parents, *([node.module] if node.module else [])])
    if source != PACKAGE:
        return [source]
    # `from nlpcapsule import data` imports the stage; other names but the version are the front door's.
    names = [alias.name for alias in node.names if alias.name != "__version__"]
    return [f"{PACKAGE}.{name}" if name in ORDER else PACKAGE for name in names]


def backward_imports(code: str, module: str, is_package: bool = False) -> list[str]:
    """A sentence for each import that goes against the order."""
    stage = stage_of(module)
    return [
        f"{module}, line {line}: the stage {stage or PACKAGE!r} must not import the later {imported!r}"
        for line, imported in imported_modules(code, module, is_package)
        if ORDER.get(stage_of(imported), -1) > ORDER.get(stage, len(STAGES))
    ]


def source_modules() -> list[tuple[str, Path]]:
    modules = []
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        modules.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return modules


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300
    )


def test_every_module_has_a_place_in_the_order() -> None:
    unplaced = sorted({stage_of(module) for module, _ in source_modules()} - set(ORDER))
    assert not unplaced, (
        f"give these modules a place in STAGES in {Path(__file__).name}: {', '.join(unplaced)}"
    )


def test_no_module_imports_a_later_stage() -> None:
    problems = [
        problem
        for module, path in source_modules()
        for problem in backward_imports(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    ]
    assert not problems, "\n".join(problems)


def benchmark_imports(code: str, module: str, is_package: bool = False) -> list[str]:
    """A sentence for each import of the benchmarks, which are not installed with the package."""
    return [
        f"{module}, line {line}: the package must not import {imported!r}"
        for line, imported in all_imports(code, module, is_package)
        if imported.partition(".")[0] == BENCHMARKS
    ]


def test_no_module_imports_the_benchmarks() -> None:
    assert (SOURCE.parent / BENCHMARKS / "__init__.py").exists()
    problems = [
        problem
        for module, path in source_modules()
        for problem in benchmark_imports(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "code",
    [
        "import benchmarks",
        "import benchmarks.plan as plan",
        "from benchmarks import plan",
        "from benchmarks.plan import Plan",
        "def late():\n    from benchmarks.plan import Plan",
    ],
)
def test_an_import_of_the_benchmarks_is_noticed_however_it_is_written(code: str) -> None:
    assert len(benchmark_imports(code, "nlpcapsule.compare.cell")) == 1
    assert not benchmark_imports("from nlpcapsule import benchmarks", "nlpcapsule.compare.cell")


def test_the_product_imports_no_baseline() -> None:
    importing = [
        f"{module}, line {line}: {imported}"
        for module, path in source_modules()
        if stage_of(module) != "baselines"
        for line, imported in imported_modules(
            path.read_text(encoding="utf-8"), module, path.name == "__init__.py"
        )
        if stage_of(imported) == "baselines"
    ]
    assert not importing, "find it through the registry:\n" + "\n".join(importing)


@pytest.mark.parametrize(
    "code",
    [
        "import nlpcapsule.training.loop",
        "from nlpcapsule.training import loop",
        "from nlpcapsule import training",
        "from nlpcapsule import CapsuleClassifier",
        "from ..training.loop import train",
        "from .. import training",
        "def late():\n    from nlpcapsule.cli.app import main",
    ],
)
def test_a_backward_import_is_noticed_however_it_is_written(code: str) -> None:
    assert len(backward_imports(code, "nlpcapsule.data.tokens")) == 1


@pytest.mark.parametrize(
    "code",
    [
        "import numpy, nlpcapsule.errors",
        "from nlpcapsule import __version__, errors",
        "from . import documents",
        "from .documents import Document",
        "from ..errors import DataError",
        "from training import loop",
    ],
)
def test_a_forward_import_is_allowed_however_it_is_written(code: str) -> None:
    assert backward_imports(code, "nlpcapsule.data.tokens") == []


def test_a_relative_import_in_a_package_is_resolved_from_that_package() -> None:
    assert backward_imports("from .training import loop", "nlpcapsule.data", is_package=True) == []
    assert len(backward_imports("from ..training import loop", "nlpcapsule.data", is_package=True)) == 1


@pytest.mark.parametrize("module", ["nlpcapsule", "nlpcapsule.cli.app"])
def test_importing_the_front_door_does_not_import_torch(module: str) -> None:
    if not (SOURCE / Path(*module.split("."))).with_suffix(".py").exists() and module != PACKAGE:
        pytest.skip(f"{module} does not exist yet")
    done = run_python(f"import sys, {module}; sys.exit('torch' in sys.modules)")
    assert done.returncode == 0, done.stderr or f"importing {module} imports torch"


def test_the_picture_and_the_guide_for_contributors_tell_the_same_order() -> None:
    assert (SOURCE.parent / "docs" / "pipeline.svg").read_text(encoding="utf-8") == pipeline_svg(), (
        "run: python -m docs.write_pipeline > docs/pipeline.svg"
    )
    drawn = [name for _, folders in ROWS.values() for name in folders]
    guide = (SOURCE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)/` \|", guide, re.MULTILINE)
    folders = {path.parent.name for path in (SOURCE / PACKAGE).glob("*/__init__.py")} - {"cli", "config"}
    for told in (drawn, listed):
        assert [ORDER[name] for name in told] == sorted(ORDER[name] for name in told)
    assert folders - {"sample", "fused"} <= {*drawn, "estimators"}  # not steps of their own
    assert folders - {"estimators"} <= set(listed)
