"""Convert schemas to the keywords that Gemini reads in `parametersJsonSchema` and `responseJsonSchema`.

The API reference lists them with that field. Other keywords are described in prose, or dropped.
"""

from __future__ import annotations

from pydantic import JsonValue

from dragoman.wire.gemini.schema import all_of, described_values
from dragoman.wire.schemas.fields import Schema, inlined, note_words

TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
TEXTS = ("description", "format")
COUNTS = ("minItems", "maxItems", "minimum", "maximum")
NOTED = (
    *("pattern", "minLength", "maxLength", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("uniqueItems", "minProperties", "maxProperties", "default"),
)


def json_subset(schema: Schema) -> Schema:
    """Return the schema in these keywords, without references. A recursive reference cannot be required."""
    return _converted(inlined(schema))


def _converted(schema: Schema) -> Schema:
    schema = all_of(schema)
    result: Schema = {key: text for key in TEXTS if isinstance(text := schema.get(key), str)}
    for key in COUNTS:
        if isinstance(count := schema.get(key), int | float) and not isinstance(count, bool):
            result[key] = count
    types = _types(schema)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        types = _add_values(result, values, types)
    if types:
        result["type"] = types[0] if len(types) == 1 else [*types]
    for key in ("anyOf", "oneOf"):
        if isinstance(choices := schema.get(key), list) and choices:
            result["anyOf"] = [_inner(choice) for choice in choices]
    if "object" in types or "properties" in schema:
        _add_properties(result, schema)
    if "array" in types or "items" in schema or "prefixItems" in schema:
        _add_items(result, schema)
    note_words(result, schema, NOTED)
    return result


def _inner(schema: JsonValue) -> Schema:
    return _converted(schema) if isinstance(schema, dict) else {}  # `true`: anything


def _types(schema: Schema) -> list[str]:
    named = schema.get("type")
    types = [str(one) for one in (named if isinstance(named, list) else [named]) if one in TYPES]
    if types and schema.get("nullable") is True and "null" not in types:
        types.append("null")
    return list(dict.fromkeys(types))


def _add_values(result: Schema, values: list[JsonValue], types: list[str]) -> list[str]:
    """Add an enumeration if its values are strings or numbers. Otherwise only describe the values."""
    others: list[JsonValue] = [value for value in values if value is not None]
    if not others:
        return ["null"] if values else types
    kind = "string" if _are_texts(others) else "number" if _are_numbers(others) else None
    if kind is None:
        result["description"] = described_values(result, others)
    else:
        result["enum"] = [*others]
        types = types or [kind]
    return [*types, "null"] if types and len(others) < len(values) and "null" not in types else types


def _are_texts(values: list[JsonValue]) -> bool:
    return all(isinstance(value, str) and value for value in values)


def _are_numbers(values: list[JsonValue]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _add_properties(result: Schema, schema: Schema) -> None:
    properties = schema.get("properties")
    names = properties if isinstance(properties, dict) else {}
    if names:
        result["properties"] = {name: _inner(inner) for name, inner in names.items()}
    others = schema.get("additionalProperties")
    if isinstance(others, bool):
        result["additionalProperties"] = others
    elif isinstance(others, dict):
        result["additionalProperties"] = _inner(others)
    due = schema.get("required")
    if isinstance(due, list) and (required := [name for name in due if name in names]):
        result["required"] = [*required]


def _add_items(result: Schema, schema: Schema) -> None:
    items, places = schema.get("items"), schema.get("prefixItems")
    if isinstance(items, list):  # how older schemas write tuples
        items, places = schema.get("additionalItems"), items
    if isinstance(places, list) and places:
        result["prefixItems"] = [_inner(place) for place in places]
    if isinstance(items, dict) or "prefixItems" not in result:
        result["items"] = _inner(items)
