"""The documentation matches the program: messages, pictures, links, navigation."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from docs.draw_routing import FOLDER, write_pictures
from docs.site_hooks import inside_links, loaded_from_elsewhere

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s#]+)?(?:#([^)\s]+))?\)")


def all_messages() -> str:
    """The string literals of the package, `…` for what is filled in."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_troubleshooting_names_messages_that_the_program_has() -> None:
    messages = all_messages()
    headings = re.findall(r"^### `(.*)`$", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"), re.M)
    assert len(headings) > 30
    pieces = [(heading, piece.strip(" ?:")) for heading in headings for piece in heading.split("…")]
    unknown = [heading for heading, piece in pieces if len(piece) > 7 and piece not in messages]
    assert unknown == []


def test_pictures_are_those_that_the_program_draws(tmp_path: Path) -> None:
    written = write_pictures(tmp_path)
    assert sorted(path.name for path in written) == sorted(path.name for path in FOLDER.glob("routing-*.svg"))
    for path in written:
        drawn, kept = (file.read_text(encoding="utf-8") for file in (path, FOLDER / path.name))
        assert numbers(drawn) == pytest.approx(numbers(kept), abs=1e-3), "run: python -m docs.draw_routing"


def numbers(svg: str) -> list[float]:
    """The coordinates of an SVG's lines; versions of matplotlib differ in the rest."""
    return [
        float(number)
        for line in re.findall(r' d="(M[^"]*)"', svg)
        for number in re.findall(r"-?\d+\.?\d*", line)
    ]


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_links_lead_somewhere_on_a_code_host(page: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    broken = []
    for name, anchor in LINK.findall(text):
        if "://" in name:
            continue
        target = (page.parent / name) if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(f"{name}#{anchor}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and mkdocs make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_navigation() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r": (\S+\.md)$", settings, re.M)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)


def test_links_that_leave_the_docs_become_text_on_the_site() -> None:
    page = (
        "[a](../src/a.py), [`b`](../results), ![plot](../results/p.svg), [c](c.md), [d](https://x.org/../d)"
    )
    assert inside_links(page) == "a, `b`, ![plot](results/p.svg), [c](c.md), [d](https://x.org/../d)"


@pytest.mark.parametrize(
    ("page", "loaded"),
    [
        ('<script src="https://x.org/a.js">', ["https://x.org/a.js"]),
        ('<link rel="stylesheet" href="//x.org/a.css">', ["//x.org/a.css"]),
        ('<link href="https://x.org/f.woff" rel="preload">', ["https://x.org/f.woff"]),
        ("<img alt=a src=http://x.org/a.png>", ["http://x.org/a.png"]),
        ('<a href="https://x.org">x</a><link rel="canonical" href="https://x.org">', []),
        ('<script src="assets/a.js"></script><img src="a.svg">', []),
    ],
)
def test_what_a_page_would_load_from_elsewhere_is_found(page: str, loaded: list[str]) -> None:
    assert loaded_from_elsewhere(page) == loaded
