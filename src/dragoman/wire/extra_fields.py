"""Finds the fields of a provider's chunk that a decoder has no word for (`provider.data` events)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from dragoman.wire.surrogates import join_all

_EMPTY: tuple[JsonValue, ...] = (None, "", [], {})


def extra_fields(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, JsonValue]:
    """Those that are not known and hold anything."""
    return {
        name: join_all(value) for name, value in fields.items() if name not in known and value not in _EMPTY
    }


class ExtraFields:
    """The extra fields of objects that come again and again in a stream: each value once, unless `repeated`.

    Most chunks of a stream are alike. One that has as many fields as one that was found to hold nothing of
    interest need not be looked at: that is what `size` is for, and what makes this cheap.
    """

    __slots__ = ("_constant", "_known", "_repeated", "_seen", "size")

    def __init__(
        self, known: frozenset[str], constant: frozenset[str] = frozenset(), *, repeated: bool = False
    ) -> None:
        self.size = -1
        self._known = known
        self._constant = constant  # not known, but the same in every chunk: the first is enough
        self._repeated = repeated
        self._seen: dict[str, JsonValue] = {}

    def new(self, fields: Mapping[str, Any]) -> dict[str, JsonValue]:
        """Those that were not seen before with this value."""
        unknown = [name for name in fields if name not in self._known]
        self.size = len(fields) if self._constant.issuperset(unknown) else -1
        found = extra_fields(fields, self._known) if unknown else {}
        if self._repeated:
            return found
        found = {name: value for name, value in found.items() if self._seen.get(name) != value}
        self._seen |= found
        return found
