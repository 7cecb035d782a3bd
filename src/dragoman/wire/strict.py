"""A JSON schema in; whether OpenAI's strict mode takes it, and a name for it, out."""

from __future__ import annotations

import re

from pydantic import JsonValue


def is_strict(schema: JsonValue) -> bool:
    """Strict mode wants every object closed, and every property of it required."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object":
        properties, required = schema.get("properties") or {}, schema.get("required") or []
        if schema.get("additionalProperties") is not False:
            return False
        if not (
            isinstance(properties, dict) and isinstance(required, list) and set(properties) <= {*required}
        ):
            return False
    return all(map(is_strict, schema.values()))


def schema_name(schema: JsonValue) -> str:
    title = schema.get("title") if isinstance(schema, dict) else None
    return re.sub(r"[^A-Za-z0-9_-]", "_", str(title or "response"))[:64]
