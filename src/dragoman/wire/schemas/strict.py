"""Convert JSON schemas to OpenAI's strict mode and back, and check which schemas it accepts.

Strict mode guarantees that a model's output matches a schema, but supports only some keywords. Objects are
closed, and all their properties are required. Optional properties become nullable there. A null that the
schema itself does not allow is removed from the answer again (`restored`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from dragoman.messages.events import CallInputEnd, Event
from dragoman.messages.request import ToolSpec
from dragoman.wire.schemas.fields import Schema

DEEPEST = 10
MOST_PROPERTIES = 5000
MOST_VALUES = 1000  # of all enumerations
MANY_VALUES, LONGEST_VALUES = 250, 15_000  # of one enumeration: values, and their characters
MOST_CHARACTERS = 120_000  # of names and values

_ANYWHERE = frozenset({"title", "description"})
_NOTES = frozenset(
    {"default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
)
_VALUES = frozenset({"enum", "const"})
_LIMITS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_OF_TYPE: dict[str, frozenset[str]] = {
    "string": frozenset({"pattern", "format"}) | _VALUES,
    "number": _LIMITS | _VALUES,
    "integer": _LIMITS | _VALUES,
    "boolean": _VALUES,
    "null": _VALUES,
    "array": frozenset({"items", "minItems", "maxItems"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
}
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_NULL: Schema = {"type": "null"}


class _Loose(Exception):
    """The schema cannot be made strict."""


# ── is it? ────────────────────────────────────────────────────────────────────────────────────────


def is_strict(schema: JsonValue) -> bool:
    """Return whether OpenAI's strict mode accepts the schema unchanged."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return False
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, dict):
        return False
    root = {key: value for key, value in schema.items() if key != "$defs"}
    roots = (root, *definitions.values())
    return all(_fits(one, schema, 1) for one in roots) and _is_small([*_nodes(roots)])


def _fits(node: JsonValue, root: Schema, depth: int) -> bool:
    if not isinstance(node, dict) or depth > DEEPEST:
        return False
    if "$ref" in node:
        return node.keys() == {"$ref"} and _target(node, root) is not None
    keys = node.keys() - _ANYWHERE
    if isinstance(branches := node.get("anyOf"), list):
        return keys == {"anyOf"} and bool(branches) and all(_fits(one, root, depth) for one in branches)
    types = _types(node)
    if not types or not keys <= {"type"}.union(*(_OF_TYPE.get(type, ()) for type in types)):
        return False
    if not all(type in _OF_TYPE for type in types) or not _is_plain_text(node):
        return False
    if "object" in types:
        return types == ["object"] and _is_closed(node, root, depth)
    return types == ["array"] and _fits(node.get("items"), root, depth + 1) if "array" in types else True


def _is_plain_text(node: Schema) -> bool:
    """Return whether its format is known, its pattern has no lookaround, and its values are not too long."""
    if "format" in node and node["format"] not in _FORMATS:
        return False
    values = [one for one in _listed(node.get("enum")) if isinstance(one, str)]
    if len(values) > MANY_VALUES and sum(map(len, values)) > LONGEST_VALUES:
        return False
    return "(?" not in str(node.get("pattern", ""))


def _is_closed(node: Schema, root: Schema, depth: int) -> bool:
    properties, required = node.get("properties", {}), node.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return False
    closed = node.get("additionalProperties") is False and sorted(map(str, required)) == sorted(properties)
    return closed and all(_fits(one, root, depth + 1) for one in properties.values())


def _is_small(nodes: list[Schema]) -> bool:
    names = [name for node in nodes for name in _mapping(node.get("properties"))]
    values = [one for node in nodes for one in _listed(node.get("enum"))]
    size = sum(map(len, names)) + sum(len(one) for one in values if isinstance(one, str))
    return len(names) <= MOST_PROPERTIES and len(values) <= MOST_VALUES and size <= MOST_CHARACTERS


def _nodes(nodes: Iterable[JsonValue]) -> Iterator[Schema]:
    for node in nodes:
        if isinstance(node, dict):
            yield node
            inner = (*_mapping(node.get("properties")).values(), *_listed(node.get("anyOf")))
            yield from _nodes((*inner, node.get("items")))


# ── made so ───────────────────────────────────────────────────────────────────────────────────────


def strict_form(schema: JsonValue, *, optional: bool = True) -> Schema | None:
    """Return the schema for strict mode. None if the conversion in either direction would lose something.

    Every value that matches it matches the schema, once it is `restored`. If restoring is impossible, as in
    streamed text, `optional=False` rejects schemas with optional properties.
    """
    if not isinstance(schema, dict) or is_strict(schema):
        return schema if isinstance(schema, dict) else None
    try:
        form = _made_strict({key: value for key, value in schema.items() if key != "$defs"}, schema, optional)
        if definitions := _mapping(schema.get("$defs")):
            form["$defs"] = {name: _made_strict(one, schema, optional) for name, one in definitions.items()}
    except _Loose:
        return None
    return form if is_strict(form) else None


def _made_strict(node: JsonValue, root: Schema, optional: bool) -> Schema:
    if not isinstance(node, dict):
        raise _Loose
    node = {key: value for key, value in node.items() if key not in _NOTES}
    if "$ref" in node:
        if node.keys() - _ANYWHERE != {"$ref"}:
            raise _Loose
        return {"$ref": node["$ref"]}
    about = {key: value for key, value in node.items() if key in _ANYWHERE}
    if isinstance(branches := node.get("anyOf"), list):
        return about | {"anyOf": _branches(node, branches, root, optional)}
    types = _types(node)
    if not types and (guessed := _type_of_values(node)) is not None:
        return _made_strict({**node, "type": guessed}, root, optional)
    if len(types) > 1 and {"object", "array"} & {*types}:
        if _VALUES & node.keys():
            raise _Loose
        apart: list[JsonValue] = [_of_one_type(node, type) for type in types]
        return about | {"anyOf": _branches({"anyOf": apart}, apart, root, optional)}
    if types == ["object"]:
        return _closed(node, root, optional)
    return {**node, "items": _made_strict(node.get("items"), root, optional)} if types == ["array"] else node


def _branches(node: Schema, branches: list[JsonValue], root: Schema, optional: bool) -> list[JsonValue]:
    if node.keys() - _ANYWHERE != {"anyOf"}:
        raise _Loose
    several = [one for one in branches if one != _NULL]
    if len(several) > 1 and any(_has_optional(one, root, ()) for one in several):
        raise _Loose  # It would be ambiguous by which alternative to restore an answer.
    return [_made_strict(one, root, optional) for one in branches]


def _closed(node: Schema, root: Schema, optional: bool) -> Schema:
    properties, required = node.get("properties"), _listed(node.get("required"))
    if not isinstance(properties, dict) or node.get("additionalProperties", False) is not False:
        raise _Loose  # it may have properties of any name
    changed: Schema = {}
    for name, inner in properties.items():
        form = _made_strict(inner, root, optional)
        if name not in required:
            accepts_null = _accepts_null(inner, root)
            default = inner.get("default") if isinstance(inner, dict) else None
            if not optional or (accepts_null and default is not None):
                raise _Loose  # null and a missing property would be indistinguishable
            form = form if accepts_null else _nullable(form)
        changed[name] = form
    return {**node, "properties": changed, "required": [*changed], "additionalProperties": False}


def _nullable(form: Schema) -> Schema:
    type = form.get("type")
    if isinstance(type, str) and type not in ("object", "array") and not _VALUES & form.keys():
        return {**form, "type": [type, "null"]}
    if isinstance(branches := form.get("anyOf"), list):
        return {**form, "anyOf": [*branches, _NULL]}
    return {"anyOf": [form, _NULL]}


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────


def restored(value: JsonValue, schema: JsonValue) -> JsonValue:
    """Return a value without the nulls that represent a missing optional property."""
    return _restored(value, schema, schema if isinstance(schema, dict) else {})


def _restored(value: JsonValue, node: JsonValue, root: Schema) -> JsonValue:
    node = _meant(node, root)
    if isinstance(value, list) and "items" in node:
        return [_restored(one, node["items"], root) for one in value]
    properties = _mapping(node.get("properties"))
    if not isinstance(value, dict) or not properties:
        return value
    required = _listed(node.get("required"))
    kept: dict[str, JsonValue] = {}
    for name, one in value.items():
        inner = properties.get(name)
        absent = one is None and inner is not None and name not in required
        if not absent or _accepts_null(inner, root):
            kept[name] = _restored(one, inner, root)
    return kept


def _meant(node: JsonValue, root: Schema) -> Schema:
    """Return the schema that a node means: the target of a reference, or the only alternative
    besides null."""
    for _ in range(DEEPEST):
        if not isinstance(node, dict):
            return {}
        branches = [one for one in _listed(node.get("anyOf")) if one != _NULL]
        if "$ref" in node:
            node = _target(node, root)
        elif len(branches) == 1:
            node = branches[0]
        else:
            return node
    return {}


def restore_calls(events: list[Event], tools: Sequence[ToolSpec]) -> list[Event]:
    """Return the events, with placeholder nulls removed from calls according to the tool's own schema."""
    for event in events:
        if isinstance(event, CallInputEnd) and event.arguments:
            schema = next((tool.parameters for tool in tools if tool.name == event.tool), None)
            fitting = restored(event.arguments, schema)
            event.arguments = fitting if isinstance(fitting, dict) else event.arguments
    return events


# ── schema keywords ───────────────────────────────────────────────────────────────────────────────


def _accepts_null(node: JsonValue, root: Schema, inside: int = 0) -> bool:
    if not isinstance(node, dict):
        return node is True
    if "$ref" in node:
        return inside < DEEPEST and _accepts_null(_target(node, root), root, inside + 1)
    if isinstance(branches := node.get("anyOf"), list):
        return any(_accepts_null(one, root, inside + 1) for one in branches)
    if "const" in node or "enum" in node:
        return None in _listed(node.get("enum")) or node.get("const", 0) is None
    return "null" in _types(node) or not node.keys() - _ANYWHERE - _NOTES


def _has_optional(node: JsonValue, root: Schema, inside: tuple[str, ...]) -> bool:
    if not isinstance(node, dict):
        return False
    if isinstance(name := node.get("$ref"), str):
        return name not in inside and _has_optional(_target(node, root), root, (*inside, name))
    properties = _mapping(node.get("properties"))
    if {*properties} - {*map(str, _listed(node.get("required")))}:
        return True
    inner = (*properties.values(), *_listed(node.get("anyOf")), node.get("items"))
    return any(_has_optional(one, root, inside) for one in inner)


def _target(node: Schema, root: Schema) -> Schema | None:
    reference = node.get("$ref")
    if reference == "#":
        return root
    path = reference.split("/") if isinstance(reference, str) else []
    found = (
        _mapping(root.get("$defs")).get(path[2]) if path[:2] == ["#", "$defs"] and len(path) == 3 else None
    )
    return found if isinstance(found, dict) else None


def _types(node: Schema) -> list[str]:
    types = node.get("type")
    return [types] if isinstance(types, str) else [one for one in _listed(types) if isinstance(one, str)]


def _type_of_values(node: Schema) -> str | None:
    values = _listed(node.get("enum")) or ([node["const"]] if "const" in node else [])
    return "string" if values and all(isinstance(one, str) for one in values) else None


def _of_one_type(node: Schema, type: str) -> Schema:
    """Return the keywords of a node that apply to values of this type."""
    every = frozenset().union(*_OF_TYPE.values())
    words = {key: value for key, value in node.items() if key not in _ANYWHERE and key != "type"}
    return {"type": type} | {
        key: value for key, value in words.items() if key not in every or key in _OF_TYPE.get(type, ())
    }


def _mapping(value: JsonValue) -> Schema:
    return value if isinstance(value, dict) else {}


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
