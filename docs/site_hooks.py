"""What `make docs` adds to mkdocs: links that leave docs/, and pages that load nothing from elsewhere.

On a code host, pages link to source files and results next to docs/. The site does not contain these: their
links become plain text, except for plots, which are copied.
"""

import re
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_PLOT = re.compile(r"(!\[[^\]]*\])\(\.\./results/([\w.-]+\.svg)\)")
_OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\(\.\./[^)]*\)")
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|link(?=[^>]*rel=\"?(?:stylesheet|preconnect|preload)))"
    r"[^>]*?(?:src|href)=\"?((?:https?:)?//[^\s\">]+)"
)


def inside_links(markdown: str) -> str:
    """Return the text of a page in docs/ without links that leave the folder.

    Example:
        >>> inside_links("See [`votes.py`](../src/votes.py) and ![a plot](../results/a.svg).")
        'See `votes.py` and ![a plot](results/a.svg).'
    """
    return _OUTSIDE.sub(r"\1", _PLOT.sub(r"\1(results/\2)", markdown))


def loaded_from_elsewhere(page: str) -> list[str]:
    """Return the addresses on other hosts that a page would load, as opposed to link to.

    Example:
        >>> loaded_from_elsewhere('<a href="https://x.org">x</a><script src="https://x.org/a.js"></script>')
        ['https://x.org/a.js']
    """
    return _LOADED.findall(page)


def on_files(files: Any, config: Any) -> Any:
    """Add the plots in results/."""
    from mkdocs.structure.files import File

    for path in sorted((_ROOT / "results").glob("*.svg")):
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite links that leave docs/; pages in subfolders have none."""
    return inside_links(markdown) if "/" not in page.file.src_uri else markdown


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that would load something from another host."""
    from mkdocs.exceptions import PluginError

    if found := loaded_from_elsewhere(output):
        raise PluginError(f"{page.file.src_uri} would load {found[0]}: pages load nothing from elsewhere")
    return output
