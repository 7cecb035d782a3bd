"""Parses the argument text of a call: the object it stands for, or None where that is not certain."""

from __future__ import annotations

import re

from pydantic import JsonValue

from dragoman.messages.boundary import is_finite, is_shallow, read_strict_json
from dragoman.messages.message import Arguments, canonical
from dragoman.wire.surrogates import join_all, join_halves, read_torn_json

# A string is matched whole, so that a comma inside one is never taken for a trailing one.
# One that is never closed is taken to the end: its other quotes would each be tried as the beginning of one.
_STRING_OR_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[}\]])')
_ENCODINGS = 2  # an object may have been made a string, and that a string again


def parse_arguments(text: str) -> Arguments | None:
    """The arguments, if the text is a complete JSON object, or becomes one with nothing lost or added.

    Nothing and `null` mean no arguments; a trailing comma goes; a string that holds an object is opened; an
    object that comes twice, or beside an empty one, counts once; half a character becomes U+FFFD. Anything
    else is None: never a guess.
    """
    text = join_halves(text)
    for _ in range(_ENCODINGS + 1):
        text = text.strip()
        if text in ("", "null"):
            return {}
        try:
            value = _strict(text)
        except ValueError:
            return _mended(text)
        if isinstance(value, dict):
            return value
        if not isinstance(value, str):
            return None
        text = value
    return None


def _mended(text: str) -> Arguments | None:
    text = _STRING_OR_TRAILING_COMMA.sub(r"\1", text).removesuffix(",")
    try:
        value = _strict(text)
    except ValueError:
        return _doubled(text)
    return value if isinstance(value, dict) else None


def _doubled(text: str) -> Arguments | None:
    """What two objects in a row agree on: they are equal, or one of them is empty."""
    for cut in re.finditer(r"\}\s*(?=\{)", text):
        try:
            first, second = _strict(text[: cut.end()]), _strict(text[cut.end() :])
        except ValueError:
            continue
        if isinstance(first, dict) and isinstance(second, dict):
            agree = not first or not second or canonical(first) == canonical(second)
            return (first or second) if agree else None
    return None


def _strict(text: str) -> JsonValue:
    if not is_shallow(text):
        raise ValueError("too deep to be stored")
    try:
        return read_strict_json(text)
    except ValueError:
        if "\\u" not in text:
            raise
    value = join_all(read_torn_json(text.encode()))
    if not is_finite(value):
        raise ValueError("it holds a number that is not finite")
    return value
