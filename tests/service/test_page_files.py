"""The page inserts text as text, loads nothing from elsewhere, and has no inline code."""

import re
from html.parser import HTMLParser

import pytest

from nlpcapsule.service.app import PAGE

SCRIPTS = sorted(PAGE.glob("*.js"))
FORBIDDEN = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.inside = [], ""

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.inside = tag

    def handle_data(self, data):
        if self.inside in ("script", "style") and data.strip():
            raise AssertionError(f"inline {self.inside}: {data[:40]}")
        self.inside = ""


@pytest.fixture
def tags():
    parser = Tags()
    parser.feed((PAGE / "index.html").read_text(encoding="utf-8"))
    return parser.found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_markup_of_text(script):
    assert not re.findall(FORBIDDEN, script.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted(PAGE.iterdir()), ids=lambda path: path.name)
def test_nothing_comes_from_elsewhere(path):
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.findall(r"https?://|//[a-z]+\.[a-z]+/|@import|url\(", text)


def test_no_code_and_no_style_is_inline(tags):
    for _, attributes in tags:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]


def test_every_file_that_the_page_names_is_served(client, tags):
    named = [
        value for _, row in tags for name, value in row.items() if name in ("src", "href") and value[0] != "#"
    ]
    imported = [
        f"page/{name}"
        for script in SCRIPTS
        for name in re.findall(r'from "\./(.+?)"', script.read_text(encoding="utf-8"))
    ]
    assert "page/main.js" in named
    assert "page/api.js" in imported
    for path in {*named, *imported}:
        assert client.get(f"/{path}").status_code == 200, path


def test_every_field_has_a_label(tags):
    labelled = {row["for"] for tag, row in tags if tag == "label" and "for" in row}
    fields = [row for tag, row in tags if tag in ("input", "textarea") and row.get("type") != "file"]
    assert fields
    assert not [row["id"] for row in fields if row["id"] not in labelled and "aria-label" not in row]


def test_every_element_that_scripts_look_up_exists(tags):
    ids = {row["id"] for _, row in tags if "id" in row}
    code = "\n".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    wanted = set(re.findall(r'byId\("([\w-]+)"\)', code))
    assert wanted
    assert not wanted - ids
