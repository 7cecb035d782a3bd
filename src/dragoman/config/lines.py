"""Finds the line of a TOML file on which a setting stands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

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


def rule_lines(text: str, tables: Mapping[str, Any]) -> dict[str, int]:
    """The line of each permission rule, by its path: `allow.0`, `agents.clerk.deny.2`."""
    found: dict[str, int] = {}
    agents = tables.get("agents")
    named = agents.items() if isinstance(agents, dict) else ()
    rooms = [((), tables), *((("agents", name), agent) for name, agent in named if isinstance(agent, dict))]
    lines = text.splitlines()
    for path, table in rooms:
        for action in ("allow", "ask", "deny"):
            at = line_of(text, (*path, action)) or 1
            for place, rule in enumerate(table.get(action) or ()):
                after = (n for n in range(at, len(lines) + 1) if _quotes(lines[n - 1], str(rule)))
                at = next(after, at)
                found[".".join((*path, action, str(place)))] = at
    return found


def _quotes(line: str, rule: str) -> bool:
    return any(f"{quote}{rule}{quote}" in line for quote in "\"'")


def _steps(key: str) -> tuple[str, ...]:
    return tuple(step.strip("\"'") for step in _STEP.findall(key))
