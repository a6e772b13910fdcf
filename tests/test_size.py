"""A stranger can read it: the core, from text to ranked labels, stays within an evening's reading.

Capabilities that came later live in folders or files of their own and are not counted, nor are the
baselines: nothing in the core imports a baseline, and a reader may leave both out.
"""

from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "nlpcapsule"
MOST_LINES = 17_000
NOT_CORE = {
    "baselines",
    "explain",
    "export",
    "fused",
    "hugging_face.py",
    "learning",
    "lexical/many_labels",
    "report",
    "service",
    "sharding",
    "training/plan.py",
    "tuning",
    *(f"cli/{name}.py" for name in ("export", "feedback", "labels", "learn", "serve", "tune", "versions")),
}


def core_lines() -> dict[str, int]:
    """Lines of each file of the core, by its path below the package."""
    files = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    return {
        name: len(path.read_text(encoding="utf-8").splitlines())
        for name, path in files.items()
        if not any(f"{name}/".startswith(f"{left_out}/") for left_out in NOT_CORE)
    }


def test_a_stranger_can_read_the_core() -> None:
    lines = core_lines()
    assert sum(lines.values()) <= MOST_LINES


def test_what_is_left_out_exists() -> None:
    assert [name for name in NOT_CORE if not (SOURCE / name).exists()] == []
