"""`dataclasses.replace` for slotted values, at a tenth of its price."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

V = TypeVar("V")


def replace_fast(value: V, /, **changes: object) -> V:
    """The same but for these fields, checked as a new value is."""
    key = type(value), *changes
    copy = _COPIERS.get(key) or _copier(key)
    new: V = copy(value, **changes)
    return new


_COPIERS: dict[tuple[Any, ...], Callable[..., Any]] = {}  # by kind and changed fields


def _copier(key: tuple[Any, ...]) -> Callable[..., Any]:
    """A function that copies one value of this kind with these fields changed, a statement for each slot."""
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
    exec(f"{source}\n    return _new", names)  # as dataclasses make their methods
    _COPIERS[key] = names["_copy"]
    return _COPIERS[key]
