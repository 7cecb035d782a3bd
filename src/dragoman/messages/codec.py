"""Converts values to JSON and back. Type adapters are built on first use, not on import."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import JsonValue, TypeAdapter

T = TypeVar("T")


class Codec(Generic[T]):
    """Converts one type to JSON text and JSON values."""

    def __init__(self, type: Any) -> None:
        self._type = type

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._type)

    @cached_property
    def _to_json(self) -> Callable[[T], bytes]:
        # The function behind `dump_json`, without its many arguments.
        return self._adapter.serializer.to_json

    def dump(self, value: T) -> str:
        return self._to_json(value).decode()

    def load(self, text: str | bytes) -> T:
        return self._adapter.validate_json(text)

    def reload(self, value: T) -> T:
        """Return the value as it would be read from the store. Raise ValueError if it cannot be read."""
        return self.load(self._adapter.serializer.to_json(value, warnings=False))

    def to_json(self, value: T) -> JsonValue:
        json: JsonValue = self._adapter.dump_python(value, mode="json")
        return json

    def from_json(self, value: object) -> T:
        return self._adapter.validate_python(value)


# Replaces `dataclasses.replace` for slotted values, at a tenth of its cost.


V = TypeVar("V")


def replace_fast(value: V, /, **changes: object) -> V:
    """Return a copy with these fields changed, checked like a new value."""
    key = type(value), *changes
    copy = _COPIERS.get(key) or _copier(key)
    new: V = copy(value, **changes)
    return new


_COPIERS: dict[tuple[Any, ...], Callable[..., Any]] = {}  # by class and changed fields


def _copier(key: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a function that copies a value of this class with these fields changed, one statement
    per slot."""
    kind, *changed = key
    slots: tuple[str, ...] = kind.__slots__
    if unknown := set(changed).difference(slots):
        raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}")
    lines = [f"    _set_{name}(_new, {name if name in changed else f'_old.{name}'})" for name in slots]
    source = "\n".join([f"def _copy(_old, /, {', '.join(changed)}):", "    _new = _make(_kind)", *lines])
    names: dict[str, Any] = {f"_set_{name}": getattr(kind, name).__set__ for name in slots}
    names |= {"_make": object.__new__, "_kind": kind}
    if hasattr(kind, "__post_init__"):
        source += "\n    _new.__post_init__()"
    exec(f"{source}\n    return _new", names)  # Dataclasses create their methods the same way.
    _COPIERS[key] = names["_copy"]
    return _COPIERS[key]
