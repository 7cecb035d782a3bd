"""JSON values in, lines on a stream out: the same bytes whatever the locale says."""

from __future__ import annotations

import json
import sys
from typing import TextIO

from pydantic import JsonValue


def print_json(value: JsonValue, stream: TextIO | None = None, *, indent: int | None = None) -> None:
    """One value, at once on its way: whoever reads along need not wait for the end."""
    stream = stream or sys.stdout
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, or a terminal that knows few letters
        text = json.dumps(value, indent=indent)
    print(text, file=stream, flush=True)
