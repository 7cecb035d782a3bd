"""A JSON schema in, the object a person filled in out: one question a field, each checked at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue, ValidationError

from dragoman.cli.chat.keyboard import Keyboard
from dragoman.cli.plain import one_line
from dragoman.errors import ConfigError
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.schema import problems

_WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


class NoAnswer(Exception):
    """The person does not want to answer; the text says why, if they said."""


async def filled(
    schema: Mapping[str, JsonValue], keyboard: Keyboard, tell: Callable[[str], None]
) -> dict[str, JsonValue]:
    properties = schema.get("properties")
    fields = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    tell("Fill it in; Enter takes what stands in brackets, or leaves a field out. /reject: no answer")
    while True:
        values: dict[str, JsonValue] = {}
        for name, field in fields.items():
            described = field if isinstance(field, dict) else {}
            value = await _field(name, described, name in needed, keyboard, tell)
            if value is not None:
                values[name] = value
        if (wrong := _trouble(schema, values)) is None:
            return values
        tell(wrong)


async def _field(
    name: str, field: dict[str, JsonValue], needed: bool, keyboard: Keyboard, tell: Callable[[str], None]
) -> JsonValue:
    options = _options(field)
    if field.get("description"):
        tell(one_line(str(field["description"])))
    default = field.get("default")
    prompt = f"{one_line(str(field.get('title') or name))}{_hint(field, options, needed)}: "
    while True:
        said = await keyboard.line(prompt, words=options)
        word, _, reason = said.partition(" ")
        if word == "/reject":
            raise NoAnswer(reason.strip())
        if not said:
            if default is not None or not needed:
                return default
            tell("this one is needed")
            continue
        try:
            value = _value(field, said, options)
        except ValueError as error:
            tell(str(error))
            continue
        if (wrong := _trouble({"type": "object", "properties": {name: field}}, {name: value})) is None:
            return value
        tell(wrong)


def _hint(field: Mapping[str, Any], options: list[str], needed: bool) -> str:
    among = options or (["y", "n"] if _kind(field) == "boolean" else [])
    said = f" ({' / '.join(map(one_line, among))})" if among else ""
    if (default := field.get("default")) is not None:
        return f"{said} [{one_line(_written(default))}]"
    return said if needed else f"{said} (optional)"


def _value(field: dict[str, JsonValue], said: str, options: list[str]) -> JsonValue:
    match _kind(field):
        case "boolean":
            if said.lower() not in _WORDS:
                raise ValueError("type y or n")
            return _WORDS[said.lower()]
        case "integer" | "number" as kind:
            try:
                return int(said) if kind == "integer" else float(said)
            except ValueError:
                raise ValueError(f"type {'a whole' if kind == 'integer' else 'a'} number") from None
        case "array" if options:
            return [one.strip() for one in said.split(",") if one.strip()]
        case "array" | "object":
            try:
                value: JsonValue = json.loads(said)
            except ValueError as error:
                raise ValueError(f"type JSON: {error}") from None
            return value
        case _:
            return said


def _kind(field: Mapping[str, Any]) -> str:
    kind = field.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    return str(kind or "")


def _options(field: Mapping[str, Any]) -> list[str]:
    """What may be said, where that is a list: of one value, or of each item of several."""
    inner = field.get("items") if _kind(field) == "array" else field
    if not isinstance(inner, Mapping):
        return []
    listed = inner.get("enum") or [
        one.get("const") for one in inner.get("oneOf") or inner.get("anyOf") or [] if isinstance(one, Mapping)
    ]
    return [one for one in listed if isinstance(one, str)]


def _written(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _trouble(schema: Mapping[str, JsonValue], values: dict[str, JsonValue]) -> str | None:
    try:
        JsonParameters("form", schema).validate(values)
    except ValidationError as error:
        return problems(error)
    except ConfigError:
        return None  # the schema is none: whoever asked will say what is wrong
    return None
