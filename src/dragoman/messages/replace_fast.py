"""`dataclasses.replace` for slotted values, at a third of its price."""

from __future__ import annotations

from typing import TypeVar

V = TypeVar("V")


def replace_fast(value: V, **changes: object) -> V:
    """The same but for these fields. Checks in `__post_init__` do not run: for values that have none."""
    new: V = object.__new__(type(value))
    put = object.__setattr__
    for name in value.__slots__:  # type: ignore[attr-defined]  # slotted dataclasses have them
        put(new, name, getattr(value, name))
    for name, change in changes.items():
        put(new, name, change)
    return new
