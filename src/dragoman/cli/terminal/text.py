"""Text on its way to a terminal, a pipe or a file: escape sequences removed, shortened, written as JSON."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from pydantic import JsonValue

from dragoman.errors import BadRequest

_CONTROL = re.compile(  # control characters but tab and newline, and marks of writing direction
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_UNSEEN = re.compile(  # and joiners, fillers, selectors of forms, tags, private ones: as in the page
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    r"\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff"
    r"\uffa0\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
# Words of these scripts are not written right without the signs that join their letters, or part them.
_JOINED = frozenset(
    "ARABIC BENGALI DEVANAGARI GUJARATI GURMUKHI KANNADA MALAYALAM SINHALA TAMIL TELUGU".split()  # noqa: SIM905
)
_DEEPEST = 500  # levels of JSON: what is done with it goes down as deep
_TOO_DEEP = "it is nested too deeply"
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_=>]")


def plain(text: str) -> str:
    """Safe to print. Colours and the like go away whole; what else would control a terminal is left out."""
    return _CONTROL.sub("", _ESCAPE.sub("", text.replace("\r\n", "\n")))


def visible(text: str) -> str:
    """Safe to print, and nothing in it can hide: what would control a terminal, or is not seen, is written as
    its number. What is approved is what is read."""
    return _UNSEEN.sub(lambda found: found[0] if _belongs(text, found.start()) else _written(found[0]), text)


def _belongs(text: str, place: int) -> bool:
    """Whether a picture, or a word of some script, is written with this sign."""
    sign, after = text[place], text[place + 1 : place + 2]
    before = text[max(0, place - 2) : place].rstrip("\ufe0f")[-1:]
    if sign == "\ufe0f" or (sign == "\u200d" and _is_picture(after)):
        return _is_picture(before)
    return sign in "\u200c\u200d" and _is_joined(before) and _is_joined(after)


def _is_picture(sign: str) -> bool:
    """Also a tone of skin, which follows one."""
    return sign != "" and (unicodedata.category(sign) == "So" or "\U0001f3fb" <= sign <= "\U0001f3ff")


def _is_joined(sign: str) -> bool:
    return sign != "" and unicodedata.name(sign, "").partition(" ")[0] in _JOINED


def _written(sign: str) -> str:
    """As JSON has it."""
    return json.dumps(sign)[1:-1] if ord(sign) > 0x7F else f"\\u{ord(sign):04x}"


def one_line(text: str, most: int = 200) -> str:
    """The beginning, on one line."""
    line = " ".join(plain(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `2 files`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def near_home(path: Path) -> str:
    """As people write it: `~` is their own folder."""
    whole, home = path.resolve(), Path.home()
    return (Path("~") / whole.relative_to(home)).as_posix() if whole.is_relative_to(home) else str(whole)


def head(text: str, lines: int) -> str:
    """The first lines, and how many more there are."""
    all_lines = text.split("\n")
    if len(all_lines) <= lines:
        return text
    return "\n".join(all_lines[:lines]) + f"\n… {count(len(all_lines) - lines, 'more line')}"


def format_json(value: JsonValue, width: int = 80) -> str:
    """On one line where it is short, else one a value. Nothing in it can hide: an invisible character is
    written as its number."""
    short = json.dumps(value, ensure_ascii=False)
    text = short if len(short) <= width else json.dumps(value, ensure_ascii=False, indent=2)
    return visible(text)


def parse_json(text: str | bytes) -> Any:
    """What somebody gave as JSON. ValueError where it is none, or is nested deeper than can be read."""
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
    """Flushed at once: whoever reads along need not wait for the end. What would control a terminal is
    written as its number, which means the same."""
    stream = stream or sys.stdout
    text = visible(json.dumps(value, indent=indent, ensure_ascii=False))
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, or a terminal that knows few letters
        text = json.dumps(value, indent=indent)
    print(text, file=stream, flush=True)


def write_file(file: Path, text: str) -> Path:
    """In UTF-8, whatever the locale says. BadRequest says why it cannot be written."""
    target = file.expanduser()
    try:
        target.write_text(text, "utf-8")
    except OSError as error:
        raise BadRequest(f"{target} cannot be written: {error.strerror}") from error
    return target
