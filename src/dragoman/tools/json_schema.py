"""Validate tool parameters that a JSON schema describes, such as those an MCP server sends."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import islice
from typing import Any, TypeAlias

from pydantic import JsonValue, RootModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from dragoman.errors import ConfigError
from dragoman.messages.message import Arguments
from dragoman.tools.schema import MOST_FAULTS, Parameters

Fault: TypeAlias = Any  # from jsonschema, which has no types
Place: TypeAlias = tuple[int | str, ...]

MOST_SEEN = 1000  # faults looked for: a long list can have one in each place

_TYPES = {  # a JSON schema type → the fault that pydantic would report
    "string": "string_type",
    "object": "dict_type",
    "array": "list_type",
    "integer": "int_type",
    "number": "float_type",
    "boolean": "bool_type",
}


MOST_REFERENCES = 5000  # maximum number of references followed for one set of arguments


class JsonArguments(RootModel[dict[str, JsonValue]]):
    """Arguments that fit the schema, unchanged."""


class JsonParameters(Parameters):
    """Parameters described by a JSON schema instead of a signature. Raises ConfigError if the schema is
    invalid.

    Pass `checked` if the schema was found valid before.
    """

    def __init__(self, tool: str, schema: Mapping[str, Any], *, checked: bool = False) -> None:
        self.model = JsonArguments
        self._tool = tool
        self._whole = dict(schema)
        self._references = _References()
        shown = {key: value for key, value in schema.items() if key != "$schema"}
        self.schema = {**shown, "type": "object", "properties": shown.get("properties") or {}}
        if not isinstance(self.schema["properties"], dict):
            raise ConfigError(f"Tool {tool!r}: the properties of its schema must be an object.")
        if not checked:
            _check(tool, self._whole)

    def validate(self, arguments: Arguments) -> JsonArguments:
        """Return the arguments unconverted. Raises pydantic's ValidationError if any does not fit."""
        try:
            self._references.left = MOST_REFERENCES
            found = (fault for error in self._validator.iter_errors(arguments) for fault in _faults(error))
            faults = [*islice(found, MOST_SEEN)]
        except Exception as error:  # a reference to nowhere, or into itself: then nothing can be checked
            faults = [_fault(_custom(f"The tool's schema cannot be followed: {error}"), (), arguments)]
        if faults:
            distinct = {(str(fault["type"]), fault.get("loc", ())): fault for fault in faults}
            raise ValidationError.from_exception_data(self._tool, [*distinct.values()][:MOST_FAULTS])
        return JsonArguments(arguments)

    def default(self, name: str) -> Any:
        properties = self.schema["properties"]
        described = properties.get(name) if isinstance(properties, dict) else None
        return described.get("default") if isinstance(described, dict) else None

    @cached_property
    def _validator(self) -> Any:
        return _validator(self._whole, self._references)


def _check(tool: str, schema: dict[str, Any]) -> None:
    jsonschema = import_module("jsonschema")
    try:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        where = ".".join(map(str, error.absolute_path)) or "schema"
        raise ConfigError(
            f"Tool {tool!r} has an invalid JSON Schema at {where}: {error.message[:200]}"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"The JSON Schema of tool {tool!r} has too many levels.") from error


@dataclass(slots=True)
class _References:
    """The number of references that may still be followed: a few that refer to each other never end."""

    left: int = MOST_REFERENCES


def _validator(schema: dict[str, Any], references: _References) -> Any:
    """Return a validator that follows no reference out of the schema and a limited number inside it.

    It runs none of the schema's regular expressions: they are untrusted, and one could block every call. The
    server that wrote them checks them anyway.
    """
    jsonschema = import_module("jsonschema.validators")
    kind = jsonschema.validator_for(schema, default=jsonschema.Draft202012Validator)
    extra = kind.VALIDATORS.get("additionalProperties")

    def additional(validator: Any, allowed: Any, instance: Any, inside: Any) -> Iterable[Fault]:
        if extra is None or "patternProperties" in inside:
            return ()
        return extra(validator, allowed, instance, inside) or ()

    def unchecked(*_: Any) -> Iterable[Fault]:
        return ()

    def counted(follow: Any) -> Any:
        def check(validator: Any, reference: Any, instance: Any, inside: Any) -> Iterable[Fault]:
            references.left -= 1
            if references.left < 0:
                raise RecursionError("its references are nested too deeply")
            return follow(validator, reference, instance, inside) or ()

        return check

    words = {
        "pattern": unchecked,
        "patternProperties": unchecked,
        "additionalProperties": additional,
        **_comparisons(),
    }
    for word in ("$ref", "$dynamicRef", "$recursiveRef"):
        if (follow := kind.VALIDATORS.get(word)) is not None:
            words[word] = counted(follow)
    return jsonschema.extend(kind, words)(schema, registry=import_module("referencing").Registry())


def _comparisons() -> dict[str, Any]:
    """Return the keywords that compare values, with each value read once.

    jsonschema compares all with all: a list of some thousand objects would block every call for minutes.
    """
    wrong = import_module("jsonschema.exceptions").ValidationError
    listed: dict[int, frozenset[Hashable]] = {}  # the values of each `enum`, by its identity in the schema

    def unique(_: Any, wanted: Any, instance: Any, inside: Any) -> Iterable[Fault]:
        if wanted and isinstance(instance, list) and len({*map(_identity, instance)}) < len(instance):
            yield wrong("its items are not unique")

    def among(_: Any, values: Any, instance: Any, inside: Any) -> Iterable[Fault]:
        if id(values) not in listed:
            listed[id(values)] = frozenset(map(_identity, values))
        if _identity(instance) not in listed[id(values)]:
            yield wrong("it is none of these")

    return {"uniqueItems": unique, "enum": among}


def _identity(value: JsonValue) -> Hashable:
    """Return equal keys for values that JSON schema calls equal: `1` and `1.0` are, `1` and `true`
    are not."""
    match value:
        case bool():
            return ("bool", value)
        case list():
            return ("list", *map(_identity, value))
        case dict():
            return frozenset((key, _identity(one)) for key, one in value.items())
        case _:
            return value


# ── faults ────────────────────────────────────────────────────────────────────────────────────────


def _faults(error: Fault) -> Iterator[InitErrorDetails]:
    """Turn a fault of jsonschema into pydantic's form, so that it is repaired and reported in the
    same way."""
    where: Place = tuple(error.absolute_path)
    match error.validator:
        case "required":
            for name in error.validator_value:
                if name not in error.instance:
                    yield _fault("missing", (*where, name), error.instance)
        case "additionalProperties" if error.validator_value is False:
            for name in error.instance:
                if name not in error.schema.get("properties", {}):
                    yield _fault("extra_forbidden", (*where, name), error.instance[name])
        case "type" if (meant := _only(error.validator_value)) in _TYPES:
            yield _fault(_TYPES[meant], where, error.instance)
        case "anyOf" | "oneOf" if (branch := _one_branch(error)) is not None:
            for inner in branch:
                yield from _faults(inner)
        case _:
            yield _fault(_custom(_describe(error)), where, error.instance)


def _only(types: Any) -> str:
    """Return the only type allowed besides null, if there is exactly one."""
    named = [types] if isinstance(types, str) else [one for one in types if one != "null"]
    return str(named[0]) if len(named) == 1 else ""


def _one_branch(error: Fault) -> list[Fault] | None:
    """Return the faults of the only alternative besides null."""
    branches = error.validator_value
    real = [at for at, branch in enumerate(branches) if branch != {"type": "null"}]
    if len(real) != 1 or not error.context:
        return None
    return [inner for inner in error.context if inner.schema_path and inner.schema_path[0] == real[0]] or None


def _describe(error: Fault) -> str:
    match error.validator:
        case "enum":
            return f"Input should be one of {', '.join(map(repr, error.validator_value[:100]))[:500]}"
        case "const":
            return f"Input should be {error.validator_value!r}"
        case "type":
            return f"Input should be of type {' or '.join(error.validator_value)}"
        case "anyOf" | "oneOf":
            return "Input should fit one of the alternatives of the schema"
        case word:
            return f"Input should fit the schema's {word} {str(error.validator_value)[:200]}"


def _custom(text: str) -> PydanticCustomError:
    return PydanticCustomError("json_schema", "{text}", {"text": text})


def _fault(kind: str | PydanticCustomError, where: Place, given: Any) -> InitErrorDetails:
    return InitErrorDetails(type=kind, loc=where, input=given)
