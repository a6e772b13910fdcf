"""JSON has one reading, or is refused in words."""

import pytest

from nlpcapsule import strict_json
from nlpcapsule.errors import DataError
from nlpcapsule.strict_json import parse_json, read_json


def test_plain_json_is_read():
    assert parse_json('{"a": [1, 2.5, null, "é\\ud83d\\ude00"], "b": {}}') == {
        "a": [1, 2.5, None, "é😀"],
        "b": {},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ('{"a": 1', "is not JSON"),
        ('{"a": 1, "b": {"a": 1, "c": 2, "a": 3}}', "the key 'a' is given twice"),
        ('{"a": NaN}', "holds NaN, which is no number in JSON"),
        ("[Infinity]", "holds Infinity"),
        ("[" * 100_000 + "]" * 100_000, "is nested too deeply"),
        ("1" * 5_000, "is not JSON: Exceeds the limit"),
        ('["\\ud83d"]', "half of a surrogate pair"),
        ('{"\\udc00": 1}', "half of a surrogate pair"),
    ],
)
def test_what_has_no_reading_or_two_is_refused(text, message):
    with pytest.raises(DataError, match=f"^some file: .*{message}"):
        parse_json(text, "some file")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(DataError, match=r"a\.json: cannot be read: No such file"):
        read_json(path)
    path.write_bytes(b'"\xff"')
    with pytest.raises(DataError, match=r"a\.json: is not UTF-8 text \(invalid start byte at byte 1\)"):
        read_json(path)


def test_a_file_beyond_all_measure_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("[1, 2]", encoding="utf-8")
    monkeypatch.setattr(strict_json, "LARGEST_FILE", 5)
    with pytest.raises(DataError, match="has more than 5 bytes"):
        read_json(path)
