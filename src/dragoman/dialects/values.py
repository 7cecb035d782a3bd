"""The JSON value of an argument that stands between tags as it is.

For formats that write values without quotes. A schema decides between a string and JSON; without one,
numbers, booleans, null, objects and lists are what they look like, and all else is a string.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.dialects.cursor import Cursor, Steps
from dragoman.messages.request import ToolSpec

_SPELLINGS: dict[str, JsonValue] = {"True": True, "False": False, "None": None}  # as Python has them
_DEPTH = 5  # of schemas that refer to each other


def read_value(cursor: Cursor, next: str, closer: str, follows: tuple[str, ...]) -> Steps[str | None]:
    """Read a value and its closing tag: the first behind which the call goes on, with the `next` value or
    what follows the last one. None if there is none, or if the next value begins before this one is closed.
    """
    parts: list[str] = []
    while True:
        text, mark = yield from cursor.until(closer, next)
        parts.append(text)
        if mark != closer:
            return None
        cursor.at += len(mark)
        space = yield from cursor.space()
        if (yield from cursor.sees(next, *follows)) or cursor.at == len(cursor.text):
            return "".join(parts)
        parts += (mark, space)


def value_of(text: str, key: str, tool: ToolSpec | None) -> JsonValue:
    kinds = set(_kinds(_schema_of(key, tool), tool, _DEPTH))
    bare = text.strip()
    try:
        value: JsonValue = _SPELLINGS[bare] if bare in _SPELLINGS else from_json(bare, allow_inf_nan=False)
    except ValueError:
        return text
    if not kinds:
        return text if isinstance(value, str) or bare in _SPELLINGS else value
    if "string" not in kinds:
        return value  # if it does not fit either, whoever checks the arguments can say what would
    return value if _kind(value) in kinds - {"string"} else text


def _schema_of(key: str, tool: ToolSpec | None) -> JsonValue:
    properties = tool.parameters.get("properties") if tool else None
    return properties.get(key) if isinstance(properties, dict) else None


def _kinds(schema: JsonValue, tool: ToolSpec | None, depth: int) -> Iterator[str]:
    """The JSON types a schema allows, as far as it says so."""
    if not isinstance(schema, dict) or tool is None or not depth:
        return
    types = schema.get("type")
    for kind in types if isinstance(types, list) else [types]:
        if isinstance(kind, str):
            yield from ("integer", "number") if kind == "number" else (kind,)
    allowed = schema.get("enum")
    for value in [
        *(allowed if isinstance(allowed, list) else ()),
        *([schema["const"]] if "const" in schema else ()),
    ]:
        yield _kind(value)
    for word in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(word)
        for branch in branches if isinstance(branches, list) else ():
            yield from _kinds(branch, tool, depth - 1)
    if isinstance(name := schema.get("$ref"), str):
        yield from _kinds(_referred(name, tool), tool, depth - 1)


def _referred(name: str, tool: ToolSpec) -> JsonValue:
    place: JsonValue = tool.parameters
    for step in name.removeprefix("#").strip("/").split("/"):
        place = place.get(step) if isinstance(place, dict) else None
    return place


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
