"""JSON that no client should send: too deep, not finite, lone surrogates, huge numbers, odd keys."""

from __future__ import annotations

import json
from random import Random

_SCALARS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e999",
    "1e-400",
    "-0.0",
    str(10**30),
    "1" * 5000,
    "null",
    "true",
    "0",
    "253402300800",
    '"\\ud800"',
    '"\\udfff\\ud83d"',
    '"\\u0000"',
    '"\\u202e\\u2066"',
    '""',
    '"<script>"',
    '"%s"' % ("x" * 30_000),
    "[]",
    "{}",
)
_KEYS = ("", "__proto__", "constructor", "\\ud800", "\\u0000", "type", "id", "a", "a b", "$ref")


def hostile(random: Random) -> str:
    """One of them, as text: Python's own JSON would refuse to write some."""
    match random.randrange(4):
        case 0:
            return random.choice(_SCALARS)
        case 1:
            depth = random.choice((2, 50, 150, 170, 178, 180, 182, 190, 198, 199, 200, 201, 202, 400, 3000))
            return _nested(random, depth)
        case 2:
            return _tree(random, 4)
        case _:
            return json.dumps("".join(chr(random.randrange(0x2FF)) for _ in range(random.randrange(40))))


def _nested(random: Random, depth: int) -> str:
    opened = [random.choice((("[", "]"), ('{"a":', "}"))) for _ in range(depth)]
    inner = random.choice(("1", "NaN", '"x"'))
    return "".join(first for first, _ in opened) + inner + "".join(last for _, last in reversed(opened))


def _tree(random: Random, depth: int) -> str:
    kind = random.randrange(3) if depth else 0
    if kind == 0:
        return random.choice(_SCALARS)
    inner = [_tree(random, depth - 1) for _ in range(random.randrange(4))]
    if kind == 1:
        return f"[{','.join(inner)}]"
    return "{" + ",".join(f'"{random.choice(_KEYS)}":{value}' for value in inner) + "}"
