"""Seeded damage to bytes: flipped bits, cuts, zeros, repeats."""

from __future__ import annotations

import random

KINDS = ("flip a bit", "overwrite a byte", "truncate", "zero a range", "repeat a range", "insert", "empty")


def damaged(content: bytes, generator: random.Random) -> tuple[bytes, str]:
    """Return damaged bytes and how they were damaged; the same generator state gives the same damage."""
    kind = generator.choices(KINDS, weights=[4, 4, 2, 1, 1, 2, 0.2])[0]
    if kind == "empty" or not content:
        return b"", "empty"
    place = generator.randrange(len(content))
    end = min(len(content), place + generator.randint(1, 64))
    match kind:
        case "flip a bit":
            new = bytes([content[place] ^ 1 << generator.randrange(8)])
            return content[:place] + new + content[place + 1 :], f"{kind} at {place}"
        case "overwrite a byte":
            new = bytes([generator.choice([0, 255, generator.randrange(256)])])
            return content[:place] + new + content[place + 1 :], f"{kind} at {place}"
        case "truncate":
            return content[:place], f"{kind} to {place}"
        case "zero a range":
            return content[:place] + bytes(end - place) + content[end:], f"{kind} {place}-{end}"
        case "repeat a range":
            return content[:end] + content[place:], f"{kind} {place}-{end}"
        case _:
            return content[:place] + generator.randbytes(end - place) + content[place:], f"{kind} at {place}"
