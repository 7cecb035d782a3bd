"""Values and texts in, lines on a stream or a file out: the same bytes whatever the locale says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TextIO

from pydantic import JsonValue

from dragoman.errors import BadRequest


def print_json(value: JsonValue, stream: TextIO | None = None, *, indent: int | None = None) -> None:
    """One value, at once on its way: whoever reads along need not wait for the end."""
    stream = stream or sys.stdout
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, or a terminal that knows few letters
        text = json.dumps(value, indent=indent)
    print(text, file=stream, flush=True)


def write_down(file: Path, text: str) -> Path:
    """Into this file. BadRequest says why it cannot be."""
    target = file.expanduser()
    try:
        target.write_text(text, "utf-8")
    except OSError as error:
        raise BadRequest(f"{target} cannot be written: {error.strerror}") from error
    return target
