"""Check a body against the types of a provider's client library. An unlisted field is an error."""

from __future__ import annotations

import collections.abc
import types
import typing
from functools import cache
from typing import Any

import typing_extensions

WRAPPERS = (
    *(typing.Annotated, typing_extensions.Annotated),
    *(typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired),
)
UNIONS = (typing.Union, types.UnionType)
SCALARS = (str, int, float, bool, type(None))


def problems(value: Any, wanted: Any, path: str = "body") -> list[str]:
    """Return the errors in a value, by its declared type."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in WRAPPERS:
        return problems(value, arguments[0], path)
    if origin in UNIONS:
        tried = [problems(value, one, path) for one in arguments]
        return min(tried, key=_rank) if all(tried) else []
    if origin in (typing.Literal, typing_extensions.Literal):
        return [] if value in arguments else [f"{path}: {value!r} is not one of {arguments}"]
    if typing_extensions.is_typeddict(wanted):
        return _of_fields(value, wanted, path)
    if wanted in (Any, object):
        return []
    if origin is dict or (isinstance(origin, type) and issubclass(origin, collections.abc.Mapping)):
        if not isinstance(value, dict):
            return [f"{path}: no object"]
        return [one for key in value for one in problems(value[key], arguments[1], f"{path}.{key}")]
    if origin is not None:  # lists, sequences, iterables
        if not isinstance(value, list):
            return [f"{path}: no list"]
        return [one for n, item in enumerate(value) for one in problems(item, arguments[0], f"{path}[{n}]")]
    if wanted is None or wanted in SCALARS:
        kind = type(None) if wanted is None else wanted
        fits = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        good = fits and (kind is bool or not isinstance(value, bool))
        return [] if good else [f"{path}: {value!r} is no {kind.__name__}"]
    return [f"{path}: nothing is known of {wanted}"]


def _of_fields(value: Any, wanted: Any, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path}: no object"]
    fields = _hints(wanted)
    found = [f"{path}: no field {name}" for name in wanted.__required_keys__ - value.keys()]
    for name, inner in value.items():
        if name in fields:
            found += problems(inner, fields[name], f"{path}.{name}")
        elif (getattr(wanted, "__pydantic_config__", None) or {}).get("extra") != "allow":
            found.append(f"{path}: {name} is unknown to {wanted.__name__}")
    return found


@cache
def _hints(wanted: Any) -> dict[str, Any]:
    """Cache the type hints, so that each module is read once instead of per field."""
    return typing_extensions.get_type_hints(wanted, include_extras=True)


def _rank(found: list[str]) -> tuple[bool, int]:
    """Rank the union member whose tag fits as the nearest."""
    return any(".type:" in one or "no object" in one for one in found), len(found)
