"""Plain arguments of the library's doors, held to their annotations: a wrong kind is refused by its name.

A type checker finds these mistakes before a program runs; whoever uses none is told here, before anything is
stored, in place of what a database would say of it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import cache, wraps
from types import FunctionType, NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from dragoman.errors import BadRequest

C = TypeVar("C", bound=type)
_LARGEST = 2**63  # a whole number that a database has room for is below it
_PLAIN: dict[type, str] = {
    str: "a text",
    bool: "True or False",
    int: "a whole number of 0 or more",
    float: "a number",
    bytes: "bytes",
    NoneType: "None",
}


def typed_arguments(door: C) -> C:
    """Every public method of the class checks its texts, numbers and switches before it does anything. What
    is of any other kind is checked by who knows it."""
    for name, method in vars(door).copy().items():
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(door, name, _checked(method))
    return door


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)

    def check(*args: Any, **named: Any) -> None:
        kinds = _kinds_of(method)  # not when it is defined: what annotations name may come later
        for name, value in signature.bind(*args, **named).arguments.items():
            wanted = kinds.get(name, ())
            if wanted and not any(_is(value, kind) for kind in wanted):
                words = " or ".join(map(_in_words, wanted))
                raise BadRequest(f"{name} is {words}, not {_shown(value)}")

    @wraps(method)
    def checked(*args: Any, **named: Any) -> Any:
        check(*args, **named)
        return method(*args, **named)

    @wraps(method)
    async def checked_first(*args: Any, **named: Any) -> Any:
        check(*args, **named)
        return await method(*args, **named)

    return checked_first if inspect.iscoroutinefunction(method) else checked


@cache
def _kinds_of(method: Callable[..., Any]) -> Mapping[str, tuple[Any, ...]]:
    """By parameter; only where all kinds are classes or tuples, and one of them is plain."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, hint in get_type_hints(method).items():
        union = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        known = all(isinstance(kind, type) or get_origin(kind) is tuple for kind in union)
        if name != "return" and known and any(kind in _PLAIN for kind in union):
            found[name] = union
    return found


def _in_words(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"({', '.join(map(_in_words, get_args(kind)))})"
    return _PLAIN.get(kind) or str(kind.__name__)


def _is(value: object, kind: Any) -> bool:
    if get_origin(kind) is tuple:
        items = get_args(kind)
        return isinstance(value, tuple) and len(value) == len(items) and all(map(_is, value, items))
    if kind is float:
        if isinstance(value, float):
            return math.isfinite(value)
        return type(value) is int and abs(value) < _LARGEST
    if kind is int:
        return type(value) is int and 0 <= value < _LARGEST
    return isinstance(value, kind)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
