"""A JSON body as it arrives. Long strings, such as images in base64, are kept apart, and only once."""

from __future__ import annotations

import secrets

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.wire.surrogates import read_json

LONG = 1 << 16  # bytes of a string that is kept apart


class WholeBody:
    """Feed it what the network gives. `head` is the text of the body, with a mark for each long string."""

    def __init__(self) -> None:
        self.head = bytearray()
        self._mark = secrets.token_hex(16)
        self._long: list[str] = []
        self._string: bytearray | None = None  # the string that is open
        self._escapes = False  # the chunk before ended in a backslash that escapes what follows

    def feed(self, chunk: bytes) -> None:
        at = 0
        while at < len(chunk):
            quote = chunk.find(b'"', at)
            part = chunk[at : quote if quote >= 0 else len(chunk)]
            at += len(part) + 1
            if self._string is None:
                self.head += part
                if quote >= 0:
                    self._string = bytearray()
                continue
            escaped = self._is_escaped(part)
            self._string += part
            if quote < 0:
                self._escapes = escaped
            elif escaped:
                self._string += b'"'
                self._escapes = False
            else:
                self._close(self._string)
                self._string, self._escapes = None, False

    def value(self, *, cut: bool = False) -> JsonValue:
        """What the body says; of one that was cut, as far as it is whole. ValueError if it is not JSON."""
        head = bytes(self.head)
        value: JsonValue = from_json(head, allow_partial=True) if cut else read_json(head)
        return self._filled(value) if self._long else value

    def _is_escaped(self, part: bytes) -> bool:
        """Whether what follows this part of a string is escaped."""
        slashes = len(part) - len(part.rstrip(b"\\"))
        return (slashes + (self._escapes and slashes == len(part))) % 2 == 1

    def _close(self, text: bytearray) -> None:
        if len(text) > LONG and text.isascii() and b"\\" not in text:
            self._long.append(text.decode("ascii"))
            text = bytearray(f"{self._mark}{len(self._long) - 1}".encode())
        self.head += b'"' + text + b'"'

    def _filled(self, value: JsonValue) -> JsonValue:
        match value:
            case str() if value.startswith(self._mark):
                return self._long[int(value.removeprefix(self._mark))]
            case dict():
                return {name: self._filled(one) for name, one in value.items()}
            case list():
                return [self._filled(one) for one in value]
            case _:
                return value
