"""Reads questions of the Berkeley Function-Calling Leaderboard, and judges calls as its checker does."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


def read_lines(archive: zipfile.ZipFile, names: Sequence[str], ending: str, *, answers: bool) -> list[Any]:
    found = [name for name in names if name.endswith(ending) and ("possible_answer" in name) == answers]
    return [json.loads(line) for line in archive.read(min(found, key=len)).decode().splitlines() if line]


def json_schema(schema: Any) -> Any:
    """Its words for types as JSON Schema's."""
    if isinstance(schema, list):
        return [json_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: json_schema(value) for name, value in schema.items()}
    if isinstance(found.get("type"), str):
        found["type"] = _TYPES.get(found["type"], found["type"])
    return found


def judge(truth: Any) -> Callable[[Sequence[tuple[str, Mapping[str, Any]]]], bool]:
    """One call whose every argument is among the possible ones; without a truth, none."""

    def right(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
        if truth is None:
            return not calls
        if len(calls) != 1 or calls[0][0] not in truth[0]:
            return False
        possible, arguments = truth[0][calls[0][0]], calls[0][1]
        given = all(
            name in possible and any(_same(value, one) for one in possible[name])
            for name, value in arguments.items()
        )
        return given and all(name in arguments or "" in choices for name, choices in possible.items())

    return right


def _same(value: Any, possible: Any) -> bool:
    if isinstance(value, bool) or isinstance(possible, bool):
        return value is possible
    if isinstance(value, str) or isinstance(possible, str):
        return isinstance(value, str) and _plain(value) == _plain(possible)
    if isinstance(value, int | float) and isinstance(possible, int | float):
        return abs(value - possible) < 1e-9
    if isinstance(value, list) and isinstance(possible, list):
        return len(value) == len(possible) and all(map(_same, value, possible))
    if isinstance(value, dict) and isinstance(possible, dict):
        known = all(
            name in possible and any(_same(value[name], one) for one in possible[name]) for name in value
        )
        return known and all(name in value or "" in choices for name, choices in possible.items())
    return bool(value == possible)


def _plain(text: Any) -> str:
    return re.sub(r"[ ,./\-_*^]", "", str(text)).lower().replace("'", '"')
