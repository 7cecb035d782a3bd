"""Values to JSON and back. The machinery behind it is built when it is first used, not on import."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import JsonValue, TypeAdapter

T = TypeVar("T")


class Codec(Generic[T]):
    """JSON text, or JSON values, for one type."""

    def __init__(self, type: Any) -> None:
        self._type = type

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._type)

    @cached_property
    def _to_json(self) -> Callable[[T], bytes]:
        return self._adapter.serializer.to_json  # what `dump_json` calls, without its many arguments

    def dump(self, value: T) -> str:
        return self._to_json(value).decode()

    def load(self, text: str | bytes) -> T:
        return self._adapter.validate_json(text)

    def reload(self, value: T) -> T:
        """As it would come back once it is stored. ValueError where it would not."""
        return self.load(self._adapter.serializer.to_json(value, warnings=False))

    def to_json(self, value: T) -> JsonValue:
        json: JsonValue = self._adapter.dump_python(value, mode="json")
        return json

    def from_json(self, value: object) -> T:
        return self._adapter.validate_python(value)
