"""Convert an argument's raw text between tags to a JSON value.

For formats that write values without quotes. A schema decides between a string and JSON. Without one,
numbers, booleans, null, objects and lists are recognized by their form, including Python's, and everything
else is a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pydantic import JsonValue

from dragoman.dialects.cursor import Cursor, Steps
from dragoman.dialects.literals import literal_in
from dragoman.dialects.scanner import Tools
from dragoman.messages.boundary import read_strict_json
from dragoman.messages.request import ToolSpec

_SPELLINGS: dict[str, JsonValue] = {"True": True, "False": False, "None": None}  # as Python has them
_PADDED = re.compile(r"-?0[0-9]{1,30}")  # an integer with leading zeros, which JSON does not have
_KEY = (r"[\w.:-]{1,99}", '[">\n<]')  # and the characters after it
_DEPTH = 5  # of schemas that refer to each other


def read_value(
    cursor: Cursor, next: str, closer: str, follows: tuple[str, ...], is_new: Callable[[str], bool]
) -> Steps[str | None]:
    """Read a value and its closing tag: the first after which the call continues or ends.

    That is followed by the `next` value, or by one of `follows`. If the closing tag was forgotten, the value
    ends at what closes the call, if another tag or nothing comes after that. Or it ends before the next
    value, if its key `is_new`. Otherwise return None.
    """
    parts: list[str] = []
    while True:
        text, mark = yield from cursor.until(closer, next)
        parts.append(text)
        if mark != closer:
            break
        cursor.at += len(mark)
        space = yield from cursor.space()
        if (yield from cursor.sees(next, *follows)) or cursor.at == len(cursor.text):
            return "".join(parts)
        parts += (mark, space)
    value = "".join(parts)
    ends = re.search(rf"(?:{'|'.join(map(re.escape, follows))})\s*(?:<|\Z)", value)
    if ends:
        cursor.back(len(value) - ends.start())
        return value[: ends.start()].strip("\r\n")
    key = (yield from cursor.sees((re.escape(next), *_KEY))) if mark else ""
    return value.strip("\r\n") if key and is_new(key[len(next) : -1]) else None


def within_lines(text: str) -> str:
    """Return a value without the line breaks around it, if it is on separate lines."""
    for end in ("\n", "\r\n"):
        if text.startswith(end):
            return text.removeprefix(end).removesuffix(end)
    return text


def value_of(text: str, key: str, tool: ToolSpec | None, *, is_text: bool = False) -> JsonValue:
    """Return the value of an argument. `is_text`: the model called it a string, which only a schema without
    strings overrides."""
    return value_in(text, _schema_of(key, tool), tool, is_text=is_text)


def value_in(text: str, schema: JsonValue, tool: ToolSpec | None, *, is_text: bool = False) -> JsonValue:
    """Return the value, with its schema from the tool's schema."""
    kinds = kinds_in(schema, tool)
    bare = text.strip()
    if is_text and (not kinds or "string" in kinds):
        return text
    if "integer" in kinds and _PADDED.fullmatch(bare):
        return int(bare)
    try:
        value: JsonValue = _SPELLINGS[bare] if bare in _SPELLINGS else read_strict_json(bare)
    except ValueError:
        return _as_python(bare, kinds, text)
    if not kinds:
        return text if isinstance(value, str) else value
    if "string" not in kinds:
        return value  # if that does not fit either, the argument check reports what would
    return value if kind_of(value) in kinds - {"string"} else text


def _as_python(bare: str, kinds: set[str], text: str) -> JsonValue:
    """Return a Python list or object as JSON, if the schema requires one and has no string."""
    if "string" in kinds or not kinds & {"array", "object"}:
        return text
    try:
        value = literal_in(bare)
    except ValueError:
        return text
    return value if kind_of(value) in kinds else text


def schema_in(schema: JsonValue, key: str, tool: ToolSpec | None, depth: int = _DEPTH) -> JsonValue:
    """Return the schema of an object's member, or of a list's items if the key is `item`.

    None without one.
    """
    if not isinstance(schema, dict) or tool is None or not depth:
        return None
    properties = schema.get("properties")
    if isinstance(properties, dict) and key in properties:
        return properties[key]
    if key == "item" and "items" in schema:
        return schema["items"]
    name = schema.get("$ref")
    branches = [_referred(name, tool)] if isinstance(name, str) else []
    for word in ("anyOf", "oneOf", "allOf"):
        listed = schema.get(word)
        branches += listed if isinstance(listed, list) else ()
    found = (schema_in(branch, key, tool, depth - 1) for branch in branches)
    return next((one for one in found if one is not None), None)


def allows_list(schema: JsonValue, tool: ToolSpec | None) -> bool:
    return "array" in _kinds(schema, tool, _DEPTH)


def kinds_in(schema: JsonValue, tool: ToolSpec | None) -> set[str]:
    """Return the JSON types that a schema allows, as far as it states them."""
    return set(_kinds(schema, tool, _DEPTH))


def has_argument(key: str, tool: ToolSpec) -> bool:
    return _schema_of(key, tool) is not None


def may_have(key: str, tool: ToolSpec | None, tools: Tools | None) -> bool:
    """Return whether a tool has this argument, as far as its schema is known."""
    return has_argument(key, tool) if tool else not tools


def _schema_of(key: str, tool: ToolSpec | None) -> JsonValue:
    properties = tool.parameters.get("properties") if tool else None
    return properties.get(key) if isinstance(properties, dict) else None


def _kinds(schema: JsonValue, tool: ToolSpec | None, depth: int) -> Iterator[str]:
    """Yield the JSON types that a schema allows, as far as it states them."""
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
        yield kind_of(value)
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


def kind_of(value: JsonValue) -> str:
    """Return the type of a value, as schemas name it."""
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
