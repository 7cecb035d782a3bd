"""Prepare text for a terminal, a pipe or a file: make it safe, shorten it, format JSON, and describe
errors."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from pydantic import JsonValue

from dragoman.errors import BadRequest, ConfigError
from dragoman.redaction import redact_text
from dragoman.visible_text import visible

_CONTROL = re.compile(  # control characters other than tab and newline, and direction marks
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_DEEPEST = 500  # maximum depth of JSON, because its processing is recursive
_TOO_DEEP = "it is nested too deeply"
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_=>]")
_WIDE = 200  # characters that count as one line


def plain(text: str) -> str:
    """Return text that is safe to print, without escape sequences and control characters."""
    return _CONTROL.sub("", _ESCAPE.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, most: int = 200) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(plain(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return `1 file` or `2 files`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def near_home(path: Path) -> str:
    """Return a path with `~` for the user's home folder."""
    whole, home = path.resolve(), Path.home()
    return (Path("~") / whole.relative_to(home)).as_posix() if whole.is_relative_to(home) else str(whole)


def rows(text: str) -> int:
    """Return how many lines a text takes. A long line counts as several."""
    return sum(1 + len(line) // _WIDE for line in text.split("\n"))


def head(text: str, lines: int | None) -> str:
    """Return the first lines and the number of others. With None, return the whole text."""
    if lines is None or (every := rows(text)) <= lines:
        return text
    shown, left = list[str](), lines
    for line in text.split("\n"):
        if left <= 0:
            break
        shown.append(line[: left * _WIDE])
        left -= 1 + len(line) // _WIDE
    return "\n".join(shown) + f"\n… {count(every - lines, 'more line')}"


def format_json(value: JsonValue, width: int = 80) -> str:
    """Return JSON on one line if it is short, otherwise with one value on each line. Invisible characters are
    written as numbers."""
    short = json.dumps(value, ensure_ascii=False)
    text = short if len(short) <= width else json.dumps(value, ensure_ascii=False, indent=2)
    return visible(text)


def parse_json(text: str | bytes) -> Any:
    """Parse external JSON. Raises ValueError if it is invalid or nested too deeply."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    level = [value]
    for _ in range(_DEEPEST):
        level = [item for one in level if isinstance(one, dict | list) for item in _items(one)]
        if not level:
            return value
    raise ValueError(_TOO_DEEP)


def _items(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def print_json(value: JsonValue, stream: TextIO | None = None, *, indent: int | None = None) -> None:
    """Print JSON and flush it, so that a reader need not wait for the end. Control characters are escaped,
    which keeps the value."""
    stream = stream or sys.stdout
    text = visible(json.dumps(value, indent=indent, ensure_ascii=False))
    try:
        text.encode(stream.encoding or "utf-8")
    # The text contains a lone surrogate, or the terminal's encoding lacks a character.
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    print(text, file=stream, flush=True)


def write_file(file: Path, text: str) -> Path:
    """Write a file in UTF-8, whatever the locale. Raises BadRequest if it cannot be written."""
    target = file.expanduser()
    try:
        target.write_text(text, "utf-8")
    except OSError as error:
        raise BadRequest(f"{target} cannot be written: {error.strerror}") from error
    return target


def describe_error(error: Exception) -> str:
    """Return the error on one line. For errors of the database, add the most likely cause."""
    text = redact_text(" ".join(plain(str(error)).split()))
    if isinstance(error, sqlite3.Error):
        return f"Cannot read or write the store: {text}. Check whether the disk is full."
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{redact_text(plain(str(error.filename)))}: {error.strerror}"
    return text


def exit_status(error: Exception) -> int:
    """Return 2 for invalid settings or flags, otherwise 1."""
    return 2 if isinstance(error, ConfigError) else 1
