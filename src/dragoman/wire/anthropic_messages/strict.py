"""Convert schemas that Anthropic enforces (`strict`), and limit how many a request contains.

Keywords that strict schemas lack are noted in descriptions, and the tool checks them again. A schema whose
meaning would change without them is sent unchanged and not enforced.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from dragoman.wire.schemas.fields import Schema, inlined, note_words

FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
)
NOTED = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "maxItems", "uniqueItems", "default"),
)
IGNORED = frozenset({*("title", "examples", "example", "deprecated", "$schema", "$id", "$comment"), *NOTED})
KNOWN = frozenset(
    {
        *("type", "description", "format", "enum", "const", "anyOf", "oneOf", "allOf", "items", "minItems"),
        *("properties", "required", "additionalProperties"),
    }
)
SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})


class _NotStrict(Exception):
    """The schema has no strict form."""


@dataclass(slots=True)
class StrictRoom:
    """The remaining room of a request for strict schemas: the API compiles all of them into one grammar."""

    tools: int = 20
    optional: int = 24  # properties that are not required
    unions: int = 16

    def take(self, schema: Schema) -> Schema | None:
        """Return a tool's schema as a strict one, if it has such a form and there is room for it."""
        reader = _Reader()
        try:
            strict = reader.object(inlined(schema))
        except _NotStrict:
            return None
        if not self.tools or reader.optional > self.optional or reader.unions > self.unions:
            return None
        self.tools -= 1
        self.optional -= reader.optional
        self.unions -= reader.unions
        return strict


class _Reader:
    """Converts one schema to the strict form, and counts its limited features."""

    def __init__(self) -> None:
        self.optional = 0
        self.unions = 0

    def object(self, schema: Schema) -> Schema:
        """Return a closed object. An object with arbitrary properties has no strict form."""
        properties, due = schema.get("properties"), schema.get("required", [])
        if not isinstance(properties, dict) or not isinstance(due, list):
            raise _NotStrict
        if schema.get("additionalProperties", False) is not False or not _is_known(schema):
            raise _NotStrict
        result = _described(schema)
        result["type"] = "object"
        result["properties"] = {name: self._any(inner) for name, inner in properties.items()}
        required = [name for name in due if name in properties]
        self.optional += len(properties) - len(required)
        return result | {"required": [*required], "additionalProperties": False}

    def _any(self, schema: JsonValue) -> Schema:
        if not isinstance(schema, dict) or not _is_known(schema):
            raise _NotStrict
        if isinstance(parts := schema.get("allOf"), list):
            schema = _only_part(schema, parts)
        for key in ("anyOf", "oneOf"):
            if isinstance(choices := schema.get(key), list) and choices:
                self.unions += 1
                return _described(schema) | {"anyOf": [self._any(choice) for choice in choices]}
        literals = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(literals, list) and literals:
            if any(isinstance(value, dict | list) for value in literals):
                raise _NotStrict
            return _described(schema) | {"enum": [*literals]}
        return self._typed(schema, schema.get("type"))

    def _typed(self, schema: Schema, type: JsonValue) -> Schema:
        if isinstance(type, list):
            self.unions += 1
            if all(one in SCALARS for one in type):
                return _scalar(schema) | {"type": [*type]}
            return _described(schema) | {"anyOf": [self._typed(_bare(schema), one) for one in type]}
        if type == "object":
            return self.object(schema)
        if type == "array" and "items" in schema:
            result = _described(schema) | {"type": "array", "items": self._any(schema["items"])}
            least = schema.get("minItems")
            if least in (0, 1):
                result["minItems"] = least
            else:
                note_words(result, schema, ["minItems"])
            return result
        if isinstance(type, str) and type in SCALARS:
            return _scalar(schema) | {"type": type}
        raise _NotStrict


def _is_known(schema: Schema) -> bool:
    return (KNOWN | IGNORED).issuperset(schema)


def _bare(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("description", *NOTED)}


def _only_part(schema: Schema, parts: list[JsonValue]) -> Schema:
    """Merge `allOf` with a single part, which is often a reference with keywords next to it."""
    if len(parts) != 1 or not isinstance(only := parts[0], dict):
        raise _NotStrict
    whole = only | {key: value for key, value in schema.items() if key != "allOf"}
    if not _is_known(whole) or "allOf" in whole:
        raise _NotStrict
    return whole


def _scalar(schema: Schema) -> Schema:
    result = _described(schema)
    if schema.get("format") in FORMATS:
        result["format"] = schema["format"]
    else:
        note_words(result, schema, ["format"])
    return result


def _described(schema: Schema) -> Schema:
    text = schema.get("description")
    result: Schema = {"description": text} if isinstance(text, str) else {}
    note_words(result, schema, NOTED)
    return result
