"""Adapt JSON schemas for servers that support only some of the keywords."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.message import canonical

Schema: TypeAlias = dict[str, JsonValue]

NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")  # names → schemas
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
MOST_REFERENCES = 500  # expanded, recursive types could become huge

LIMITS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength"),
    *("maxItems", "uniqueItems", "contains", "minContains", "maxContains"),
    *("minProperties", "maxProperties", "patternProperties", "propertyNames"),
)


def with_inner(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Return the schema with each directly nested schema changed. A property's name is never taken for a
    keyword."""

    def changed(inner: JsonValue) -> JsonValue:
        return change(inner) if isinstance(inner, dict) else inner

    result: Schema = {}
    for key, value in schema.items():
        if key in NAMED and isinstance(value, dict):
            result[key] = {name: changed(inner) for name, inner in value.items()}
        elif key in LISTED and isinstance(value, list):
            result[key] = [changed(inner) for inner in value]
        else:
            result[key] = changed(value) if key in SINGLE else value
    return result


def inlined(schema: Schema) -> Schema:
    """Return the schema with each reference replaced by its target.

    If a reference is recursive, or there are too many, only its type remains.
    """
    return _inlined(schema, schema, (), iter(range(MOST_REFERENCES)))


def _inlined(schema: Schema, root: Schema, inside: tuple[str, ...], left: Iterator[int]) -> Schema:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = _found(reference, root)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        if reference in inside or next(left, None) is None:
            return {key: value for key, value in target.items() if key == "type"} | beside
        return _inlined(target | beside, root, (*inside, reference), left)
    plain = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    return with_inner(plain, lambda inner: _inlined(inner, root, inside, left))


def _found(reference: str, root: Schema) -> Schema:
    found: JsonValue = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def one_object(schema: Schema) -> Schema:
    """Return a tool's parameters as one object with properties.

    Alternatives at the top level are merged: servers refuse them there. The tool checks the arguments again.
    """
    alternatives = [key for key in ("anyOf", "oneOf", "allOf") if isinstance(schema.get(key), list)]
    result: Schema = {key: value for key, value in schema.items() if key not in alternatives}
    result["type"] = "object"
    if alternatives:
        properties: Schema = {}
        required: list[JsonValue] = []
        for one in (schema, *_alternatives(schema, alternatives)):
            if isinstance(own := one.get("properties"), dict):
                properties |= own
        for one in (schema, *_alternatives(schema, ["allOf"])):
            if isinstance(due := one.get("required"), list):
                required += [name for name in due if name not in required]
        result |= {"properties": properties, "required": required}
    return result


def _alternatives(schema: Schema, keys: list[str]) -> list[Schema]:
    lists = [value for key in keys if isinstance(value := schema.get(key), list)]
    return [_found_in(one, schema) for alternatives in lists for one in alternatives if isinstance(one, dict)]


def _found_in(schema: Schema, root: Schema) -> Schema:
    reference = schema.get("$ref")
    return _found(reference, root) if isinstance(reference, str) else schema


def without_limits(schema: Schema) -> Schema:
    """Return the schema for servers that compile a grammar: closed objects, and no limits a grammar cannot
    count."""
    plain = {
        ("anyOf" if key == "oneOf" else key): value
        for key, value in schema.items()
        if key not in LIMITS and not (key == "minItems" and value not in (0, 1))
    }
    if plain.get("type") == "object" or "properties" in plain:
        plain["additionalProperties"] = False
    return with_inner(plain, without_limits)


def schema_name(schema: JsonValue) -> str:
    """Return a name for the schema, which OpenAI requires."""
    title = schema.get("title") if isinstance(schema, dict) else None
    return re.sub(r"[^A-Za-z0-9_-]", "_", str(title or "response"))[:64]


# Write keywords that a server ignores into the description, where the model reads them.


def note_words(result: Schema, schema: Schema, words: Iterable[str]) -> None:
    """Add these keywords of a schema to the description of what is sent. The tool checks them again."""
    held = [f"{word}: {canonical(schema[word])}" for word in words if schema.get(word) is not None]
    if held:
        text = result.get("description")
        note = f"({', '.join(held)})"
        result["description"] = f"{text} {note}" if isinstance(text, str) and text else note


# Check whether a small value matches a schema: the examples of a tool, which some servers check, too.


_ANNOTATIONS = frozenset(
    {*("title", "description", "default", "examples", "example", "deprecated", "format"), "$schema", "$defs"}
)
_CHECKED = frozenset(
    {
        *("type", "enum", "const", "anyOf", "allOf", "properties", "required", "additionalProperties"),
        *("items", "minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern"),
    }
)
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def fits(value: JsonValue, schema: JsonValue) -> bool:
    """Return whether a value certainly matches.

    False if a schema (without references) has unknown keywords.
    """
    if not isinstance(schema, dict):
        return schema is True
    if not (_CHECKED | _ANNOTATIONS).issuperset(schema):
        return False
    types = schema.get("type")
    if types is not None and not any(
        _is_of(value, str(one)) for one in (types if isinstance(types, list) else [types])
    ):
        return False
    if "const" in schema and schema["const"] != value:
        return False
    if isinstance(values := schema.get("enum"), list) and value not in values:
        return False
    if isinstance(choices := schema.get("anyOf"), list) and not any(fits(value, one) for one in choices):
        return False
    if isinstance(parts := schema.get("allOf"), list) and not all(fits(value, one) for one in parts):
        return False
    match value:
        case dict():
            return _fits_object(value, schema)
        case list():
            items = schema.get("items", True)
            return _is_between(len(value), schema, "Items") and all(fits(one, items) for one in value)
        case str():
            # matching an untrusted expression could take forever: assume that it fails
            return _is_between(len(value), schema, "Length") and "pattern" not in schema
        case int() | float() if not isinstance(value, bool):
            return _is_between(value, schema, "imum")
        case _:
            return True


def _is_of(value: JsonValue, type: str) -> bool:
    return isinstance(value, _TYPES.get(type, ())) and (type == "boolean" or not isinstance(value, bool))


def _is_between(size: float, schema: Schema, word: str) -> bool:
    least, most = schema.get(f"min{word}"), schema.get(f"max{word}")
    return not (isinstance(least, int | float) and size < least) and not (
        isinstance(most, int | float) and size > most
    )


def _fits_object(value: dict[str, JsonValue], schema: Schema) -> bool:
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    others = schema.get("additionalProperties", True)
    if not isinstance(properties, dict) or not isinstance(required, list):
        return False
    return value.keys() >= {str(name) for name in required} and all(
        fits(inner, properties.get(name, others)) for name, inner in value.items()
    )
