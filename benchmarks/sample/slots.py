"""Fill the {slots} of phrasings with names, places, dates and sums."""

from __future__ import annotations

import random
import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

SLOT = re.compile(r"\{(\w+)\}")
WORDING = resources.files("benchmarks.sample")

# A letter is about one house and one case, but may name several days and sums.
SAME_THROUGHOUT_LETTER = frozenset({"street", "house", "district", "firm", "officer", "reference"})


def read_wording(name: str) -> dict[str, Any]:
    """Read one of the package's TOML files, e.g. `topics/waste.toml`."""
    return tomllib.loads(WORDING.joinpath(name).read_text(encoding="utf-8"))


def wording_names(folder: str) -> list[str]:
    """Return the TOML files of a folder, in the same order on every machine."""
    return sorted(
        f"{folder}/{file.name}" for file in WORDING.joinpath(folder).iterdir() if file.name.endswith(".toml")
    )


@cache
def listed_values() -> dict[str, list[str]]:
    """Return the kinds of slots whose values are listed in `slots.toml`."""
    return read_wording("slots.toml")


def draw_value(kind: str, rng: random.Random) -> str:
    """Draw a value for a slot of the given kind.

    Example:
        >>> draw_value("date", random.Random(1))
        '5 October'
    """
    match kind:
        case "date":
            return f"{rng.randint(1, 28)} {rng.choice(listed_values()['month'])}"
        case "amount":
            return f"{rng.randint(12, 480)} euros"
        case "prize_sum":
            return f"{rng.randint(2, 60) * 500:,} euros"
        case "large_sum":
            return f"{rng.randint(2, 29)}.{rng.randint(1, 9)} million euros"
        case "year":
            return str(rng.randint(1908, 2018))
        case "time":
            return f"{rng.randint(8, 18)}:{rng.choice(('00', '15', '30', '45'))}"
        case "house":
            return str(rng.randint(2, 119))
        case "reference":
            return f"{rng.choice('BKMRT')}-{rng.randint(1000, 9999)}"
        case _:
            return rng.choice(listed_values()[kind])


def draw_fresh_value(kind: str, taken: list[str], rng: random.Random) -> str:
    """Draw a value that is not in `taken`; any value once a short list is used up."""
    for _ in range(50):
        value = draw_value(kind, rng)
        if value not in taken:
            break
    return value


def fill_slots(phrasing: str, values: dict[str, str]) -> str:
    """Replace every {slot} by its value."""
    return SLOT.sub(lambda slot: values[slot[1]], phrasing)


class LetterSlots:
    """Fill the phrasings of one letter consistently."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._drawn: dict[str, list[str]] = {}

    def fill(self, phrasing: str) -> str:
        """Fill the slots of a phrasing; people, days and sums do not repeat within the letter."""
        return SLOT.sub(lambda slot: self._value(slot[1]), phrasing)

    def _value(self, kind: str) -> str:
        drawn = self._drawn.setdefault(kind, [])
        if not (drawn and kind in SAME_THROUGHOUT_LETTER):
            drawn.append(draw_fresh_value(kind, drawn, self._rng))
        return drawn[-1]
