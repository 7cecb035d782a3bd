"""Characters that arrive in halves: an emoji whose two surrogate escapes come in two chunks.

JSON may write `😀` as `\\ud83d\\ude00`, and servers that cut text by code units may send each half in a chunk
of its own. Neither is a character by itself: fast JSON readers refuse them, and no database stores them.
Halves that meet are joined; one that never finds the other becomes U+FFFD.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

LONE = "\N{REPLACEMENT CHARACTER}"

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")  # as JSON escapes them, or as raw bytes


def read_json(data: bytes) -> Any:
    """JSON, also where its strings hold parts of a character: halves are kept, bytes that are no UTF-8 become
    U+FFFD. ValueError where it is none."""
    try:
        return from_json(data)
    except ValueError:
        if _ESCAPED.search(data):
            return read_torn_json(data)
        whole = data.decode(errors="replace").encode()
        if whole == data:
            raise
    return from_json(whole)


def read_torn_json(data: bytes) -> Any:
    """JSON whose strings may hold half a character, by a reader that is slower and takes it."""
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def is_whole(text: str) -> bool:
    """Whether there is no half of a character in it. The first two checks cost next to nothing."""
    return text.isascii() or text.isprintable() or _SURROGATE.search(text) is None


def join_halves(text: str) -> str:
    """The text with halves that follow each other joined, and the others replaced."""
    if is_whole(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def split_half(text: str) -> tuple[str, str]:
    """The text as far as it is whole, and the half at its end that the next piece may complete."""
    if "\ud800" <= text[-1:] <= "\udbff":
        return join_halves(text[:-1]), text[-1]
    return join_halves(text), ""


def join_all(value: JsonValue) -> JsonValue:
    """A JSON value with every text in it made whole."""
    match value:
        case str():
            return join_halves(value)
        case list():
            return [join_all(one) for one in value]
        case dict():
            return {join_halves(key): join_all(one) for key, one in value.items()}
        case _:
            return value


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
