"""Convert schemas to the subset of OpenAPI that older Gemini models take in place of JSON schema.

Keywords that it lacks are described in prose, or dropped.
"""

from __future__ import annotations

from pydantic import JsonValue

from dragoman.messages.message import canonical
from dragoman.wire.schemas.fields import Schema, inlined

TYPES = {
    "string": "STRING",
    "number": "NUMBER",
    "integer": "INTEGER",
    "boolean": "BOOLEAN",
    "array": "ARRAY",
    "object": "OBJECT",
}
SAME = ("description", "minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum")
FORMATS = {"STRING": ("date-time",), "NUMBER": ("float", "double"), "INTEGER": ("int32", "int64")}
ANYTHING: Schema = {"type": "STRING"}  # A type is required, and a string can represent anything.


def subset(schema: Schema) -> Schema:
    return _converted(inlined(schema))


def _converted(schema: Schema) -> Schema:
    schema = all_of(schema)
    types = schema.get("type")
    if (choices := _choices(schema)) is not None:
        return _any_of(choices, schema)
    if isinstance(types, list):
        return _any_of([{**schema, "type": type} for type in types], {})
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    result: Schema = {key: schema[key] for key in SAME if key in schema}
    result["type"] = type = TYPES.get(str(types)) or _implied(schema)
    if schema.get("nullable") is True:
        result["nullable"] = True
    if schema.get("format") in FORMATS.get(type, ()):
        result["format"] = schema["format"]
    if isinstance(values := schema.get("enum"), list):
        _add_values(result, values)
    if type == "OBJECT":
        _add_properties(result, schema)
    if type == "ARRAY":
        result["items"] = _items(schema)
    return result


def _implied(schema: Schema) -> str:
    """Return the type of a schema that does not name it."""
    if "properties" in schema or "additionalProperties" in schema:
        return "OBJECT"
    return "ARRAY" if "items" in schema or "prefixItems" in schema else str(ANYTHING["type"])


# ── alternatives ──────────────────────────────────────────────────────────────────────────────────


def all_of(schema: Schema) -> Schema:
    """Merge `allOf` into one schema with the keywords of all its parts."""
    parts = schema.get("allOf")
    if not isinstance(parts, list):
        return schema
    whole: Schema = {key: value for key, value in schema.items() if key != "allOf"}
    for part in parts:
        for key, value in all_of(part).items() if isinstance(part, dict) else ():
            held = whole.get(key)
            if isinstance(held, dict) and isinstance(value, dict):
                whole[key] = held | value
            elif isinstance(held, list) and isinstance(value, list):
                whole[key] = [*held, *(one for one in value if one not in held)]
            else:
                whole.setdefault(key, value)
    return whole


def _choices(schema: Schema) -> list[Schema] | None:
    for key in ("anyOf", "oneOf"):
        if isinstance(found := schema.get(key), list):
            return [choice for choice in found if isinstance(choice, dict)]
    return None


def _any_of(choices: list[Schema], around: Schema) -> Schema:
    """Return one of several alternatives. `null` becomes a mark on the others: `anyOf` must be the only
    keyword."""
    others = [choice for choice in choices if choice.get("type") != "null"]
    flat = [one for choice in others for one in _flat(_converted(choice))] or [{**ANYTHING}]
    if len(others) < len(choices):
        for one in flat:
            one["nullable"] = True
    if (text := around.get("description")) and "description" not in flat[0]:
        flat[0]["description"] = text
    return flat[0] if len(flat) == 1 else {"anyOf": [*flat]}


def _flat(schema: Schema) -> list[Schema]:
    choices = schema.get("anyOf")
    return [one for one in choices if isinstance(one, dict)] if isinstance(choices, list) else [schema]


# ── contents ──────────────────────────────────────────────────────────────────────────────────────


def _add_values(result: Schema, values: list[JsonValue]) -> None:
    """Add an enumeration if its values are strings. Otherwise only describe the values."""
    if None in values:
        result["nullable"] = True
        values = [value for value in values if value is not None]
    if values and all(isinstance(value, str) and value for value in values):
        result |= {"type": "STRING", "enum": [*values]}
    elif values:
        result["description"] = described_values(result, values)


def described_values(result: Schema, values: list[JsonValue]) -> str:
    """Return the description extended by the values that cannot be listed as such."""
    listed = f"One of: {', '.join(map(canonical, values))}"
    return f"{result['description']} ({listed})" if "description" in result else listed


def _add_properties(result: Schema, schema: Schema) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return
    converted: Schema = {
        name: _converted(inner) if isinstance(inner, dict) else {**ANYTHING}
        for name, inner in properties.items()
    }
    result["properties"] = converted
    due = schema.get("required")
    if isinstance(due, list) and (required := [name for name in due if name in properties]):
        result["required"] = [*required]


def _items(schema: Schema) -> Schema:
    items = schema.get("items")
    if isinstance(items, dict):
        return _converted(items)
    places = schema.get("prefixItems")
    choices = [place for place in places if isinstance(place, dict)] if isinstance(places, list) else []
    return _any_of(choices, {}) if choices else {**ANYTHING}
