"""What may come in: values that, once stored, can be read back equal. The limits are those of the reader.

What people and imports bring is refused where it does not fit (`check_json`); what models, providers and
tools give is mended or left out by whoever receives it.
"""

from __future__ import annotations

import json
import math

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.errors import BadRequest

MARGIN = 20  # JSON is read to a depth of 200; a value is stored some levels down
_LATEST = 253_402_300_799.0  # the last second of the year 9999


def check_json(value: object, what: str, *, margin: int = MARGIN) -> None:
    """BadRequest, naming what it is, for a value that could be stored and not be read again."""
    try:
        read_with_margin(json.dumps(value, allow_nan=False, ensure_ascii=False).encode(), margin)
    except UnicodeEncodeError as error:
        raise BadRequest(f"{what} holds half a character (a lone surrogate): send it whole") from error
    except RecursionError as error:
        raise BadRequest(f"{what} is nested too deeply") from error
    except ValueError as error:
        words = "holds a number that is not finite" if "float" in str(error) else "is nested too deeply"
        raise BadRequest(f"{what} {words}") from error
    except TypeError as error:
        raise BadRequest(f"{what} is no JSON value: {error}") from error


def read_with_margin(text: bytes, margin: int = MARGIN) -> JsonValue:
    """The value, if it can also be read some levels down. ValueError else."""
    read = from_json(b"[" * margin + text + b"]" * margin, allow_inf_nan=False)
    for _ in range(margin):
        (read,) = read
    value: JsonValue = read
    return value


def is_shallow(text: str) -> bool:
    """Whether a text of JSON can also be read some levels down."""
    if text.count("[") + text.count("{") < 100:
        return True
    try:
        read_with_margin(text.encode("utf-8", "replace"))
    except ValueError:
        return False
    return True


def time_or(claimed: float, now: float) -> float:
    """A time that somebody claims, if clients can show it."""
    return claimed if math.isfinite(claimed) and 0 <= claimed <= _LATEST else now
