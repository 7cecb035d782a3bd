"""A stranger's text in, the same out without what would steer a terminal or turn its letters round."""

from __future__ import annotations

import json
import re

from pydantic import JsonValue

_STEERING = re.compile(  # control characters but tab and newline, and marks of writing direction
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_=>]")


def plain(text: str) -> str:
    """Safe to print. Colours and the like go away whole; what else would steer is left out."""
    return _STEERING.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, most: int = 200) -> str:
    """The beginning, on one line."""
    line = " ".join(plain(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def shown_json(value: JsonValue, width: int = 80) -> str:
    """On one line where it is short, else one a value. Nothing in it can hide: what is not seen is written
    as its number."""
    short = json.dumps(value, ensure_ascii=False)
    text = short if len(short) <= width else json.dumps(value, ensure_ascii=False, indent=2)
    return _STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def head(text: str, lines: int) -> str:
    """The first lines, and how many there are more."""
    all_of_them = text.split("\n")
    if len(all_of_them) <= lines:
        return text
    return "\n".join(all_of_them[:lines]) + f"\n… {len(all_of_them) - lines} more lines"
