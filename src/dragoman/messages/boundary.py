"""Validates incoming values: once stored, they must read back equal. The limits are those of the reader.

Invalid values from users and imports are refused (`check_json`). Values from models, providers and tools are
repaired or dropped by the code that receives them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json

from dragoman.errors import BadRequest
from dragoman.messages.codec import Codec
from dragoman.messages.message import File, Message, Part, ToolCall
from dragoman.sentences import sentence

T = TypeVar("T")
DEEPEST = 150  # The JSON reader accepts a depth of 200.
MARGIN = 20  # levels of nesting reserved for the stored form around a value
LATEST_TIME = 253_402_300_799.0  # the last second of the year 9999
_MAY_BE_HUGE = re.compile(r"\d[eE]\+?\d|\d{309}")
_STORABLE = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


def half_a_character(what: str) -> BadRequest:
    """Return the error for a lone surrogate, which text cannot encode."""
    return BadRequest(sentence("value.half_character", what=what))


def check_json(value: object, what: str, *, margin: int = MARGIN) -> None:
    """Raise BadRequest, naming the value, if it could be stored but not read again."""
    try:
        written = _STORABLE.encode(value).encode()
        if _may_be_deep(written, margin):
            read_with_margin(written, margin)
    except UnicodeEncodeError as error:
        raise half_a_character(what) from error
    except RecursionError as error:
        raise BadRequest(sentence("value.too_deep", what=what)) from error
    except ValueError as error:
        said = sentence("value.not_finite" if "float" in str(error) else "value.too_deep", what=what)
        raise BadRequest(said) from error
    except TypeError as error:
        raise BadRequest(sentence("value.no_json", what=what, error=error)) from error


def check_fields(codec: Codec[T], value: T, what: str) -> None:
    """Raise BadRequest for an object whose fields have values of the wrong type."""
    try:
        codec.reload(value)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise BadRequest(sentence("value.wrong_at", what=what, where=where, why=fault["msg"])) from error
    except ValueError as error:  # The value is not valid JSON.
        raise BadRequest(sentence("value.wrong", what=what, error=error)) from error


def read_strict_json(text: str) -> JsonValue:
    """Parse standard JSON with numbers that fit a float. Raise ValueError otherwise.

    Readers turn `1e400` into infinity, which is written as `null`. What ran would differ from what was
    stored.
    """
    value: JsonValue = from_json(text, allow_inf_nan=False)
    if _MAY_BE_HUGE.search(text) and not is_finite(value):
        raise ValueError("it holds a number that is not finite")
    return value


def is_finite(value: JsonValue) -> bool:
    """Return whether JSON can represent every number in the value."""
    match value:
        case float():
            return math.isfinite(value)
        case list():
            return all(map(is_finite, value))
        case dict():
            return all(map(is_finite, value.values()))
        case _:
            return True


def read_with_margin(text: bytes, margin: int = MARGIN) -> JsonValue:
    """Return the value if it can also be read when nested deeper. Raise ValueError otherwise."""
    around = margin if _may_be_deep(text, margin) else 0
    read = from_json(b"[" * around + text + b"]" * around, allow_inf_nan=False)
    for _ in range(around):
        (read,) = read
    value: JsonValue = read
    return value


def is_shallow(text: str) -> bool:
    """Return whether a JSON text can also be read when nested deeper."""
    written = text.encode("utf-8", "replace")
    if not _may_be_deep(written, MARGIN):
        return True
    try:
        read_with_margin(written)
    except ValueError:
        return False
    return True


def _may_be_deep(text: bytes, margin: int) -> bool:
    return text.count(b"[") + text.count(b"{") > DEEPEST - margin


# URLs that a browser would run (javascript:) or a provider would read from its disk (file:) are not allowed.
_ADDRESS = re.compile(r"(?:https?://[^/?#]|data:)[^\x00-\x20\x7f]*", re.IGNORECASE)


def is_address(url: str) -> bool:
    """Return whether a URL can point to a file: on the web, or inside the URL itself."""
    return _ADDRESS.fullmatch(url) is not None


def check_addresses(messages: Iterable[Message]) -> None:
    """Check messages and the results of their calls, like `check_parts`."""
    for message in messages:
        check_parts(message.parts)


def check_parts(parts: Iterable[Part]) -> None:
    """Raise BadRequest for a file whose URL is not allowed."""
    for part in parts:
        if isinstance(part, ToolCall):
            check_parts(part.result.attachments if part.result is not None else ())
        if isinstance(part, File) and part.url is not None and not is_address(part.url):
            raise BadRequest(sentence("file.address"))


def time_or(claimed: float, now: float) -> float:
    """Return a claimed time if clients can display it, else the current time."""
    return claimed if math.isfinite(claimed) and 0 <= claimed <= LATEST_TIME else now
