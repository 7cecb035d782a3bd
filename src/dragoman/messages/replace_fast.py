"""`dataclasses.replace` for slotted values, at a fifth of its price."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

V = TypeVar("V")

_put = object.__setattr__


def replace_fast(value: V, **changes: object) -> V:
    """The same but for these fields. Checks in `__post_init__` do not run: for values that have none."""
    kind = type(value)
    copy = _COPIERS.get(kind) or _copier(kind)
    new: V = copy(value)
    for name, change in changes.items():
        _put(new, name, change)
    return new


_COPIERS: dict[type, Callable[[Any], Any]] = {}


def _copier(kind: type) -> Callable[[Any], Any]:
    """A function that copies one value of this kind, a statement for each of its slots."""
    lines = [f"    put(new, {name!r}, value.{name})" for name in kind.__slots__]  # type: ignore[attr-defined]
    source = "\n".join(["def copy(value):", "    new = make(kind)", *lines, "    return new"])
    names: dict[str, Any] = {"make": object.__new__, "kind": kind, "put": _put}
    exec(source, names)  # as dataclasses make their methods
    _COPIERS[kind] = names["copy"]
    return _COPIERS[kind]
