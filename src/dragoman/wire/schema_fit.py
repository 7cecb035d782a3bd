"""Checks whether a small value fulfils a schema: the examples of a tool, which some servers check, too."""

from __future__ import annotations

from pydantic import JsonValue

from dragoman.wire.schemas import Schema

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
    """Whether it surely does: False where a schema (without references) has words that are not known here."""
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
            # whether it matches a stranger's expression may take for ever: it is taken not to
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
