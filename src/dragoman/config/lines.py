"""Finds the line of a TOML file on which a setting stands."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HEADER = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_STEP = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The line of the longest beginning of the path that is written down, counted from 1."""
    wanted = tuple(str(step) for step in path)
    best: tuple[int, int] | None = None
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _steps(header.group(1))
            here = table
        elif key := _KEY.match(line):
            here = (*table, *_steps(key.group(1)))
        else:
            continue
        if wanted[: len(here)] == here and (best is None or len(here) > best[0]):
            best = (len(here), number)
    return best[1] if best else None


def _steps(key: str) -> tuple[str, ...]:
    return tuple(step.strip("\"'") for step in _STEP.findall(key))
