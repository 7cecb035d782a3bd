"""JSON schemas made fit for servers that understand only part of what a schema may say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from pydantic import JsonValue

Schema: TypeAlias = dict[str, JsonValue]

NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")  # names → schemas
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
MOST_REFERENCES = 500  # types that refer to each other could fill a library, written out

LIMITS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength"),
    *("maxItems", "uniqueItems", "contains", "minContains", "maxContains"),
    *("minProperties", "maxProperties", "patternProperties", "propertyNames"),
)


def with_inner(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """The schema with every schema right inside it changed. A property's name is never taken for a word."""

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
    """The schema without references: each is replaced by what it stands for.

    Where one leads back into itself, or there are too many, only its type remains.
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
    """A tool's parameters as one object with properties.

    Alternatives at the top are laid over each other: servers refuse them there. The tool checks again.
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
    """For servers that build a grammar from it: objects closed, and nothing a grammar cannot count."""
    plain = {
        ("anyOf" if key == "oneOf" else key): value
        for key, value in schema.items()
        if key not in LIMITS and not (key == "minItems" and value not in (0, 1))
    }
    if plain.get("type") == "object" or "properties" in plain:
        plain["additionalProperties"] = False
    return with_inner(plain, without_limits)


def schema_name(schema: JsonValue) -> str:
    """A name for it: OpenAI wants one."""
    title = schema.get("title") if isinstance(schema, dict) else None
    return re.sub(r"[^A-Za-z0-9_-]", "_", str(title or "response"))[:64]
