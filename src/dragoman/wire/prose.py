"""Process incoming text: split surrogate pairs, raw audio samples, and unknown fields."""

from __future__ import annotations

import json
import re
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.messages.message import File

# Join characters that arrive in halves: an emoji whose two surrogate escapes come in two chunks.
#
# JSON can write `😀` as `\ud83d\ude00`, and servers that split text by code units can send each half in a
# separate chunk. A half is not a character: fast JSON readers refuse it, and no database stores it. Halves
# that meet are joined. One that stays alone becomes U+FFFD.


LONE = "\N{REPLACEMENT CHARACTER}"

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")  # as JSON escapes them, or as raw bytes


def read_json(data: bytes) -> Any:
    """Parse JSON, even with lone surrogates in its strings: these are kept. Invalid UTF-8 becomes U+FFFD.

    Raises ValueError if it is not JSON.
    """
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
    """Parse JSON whose strings may contain lone surrogates, with a slower reader that accepts them."""
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def is_whole(text: str) -> bool:
    """Return whether a text has no lone surrogate. The first two checks cost next to nothing."""
    return text.isascii() or text.isprintable() or _SURROGATE.search(text) is None


def join_halves(text: str) -> str:
    """Return the text with adjacent halves joined, and the others replaced."""
    if is_whole(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def split_half(text: str) -> tuple[str, str]:
    """Return the complete text, and the half at its end that the next chunk may complete."""
    if "\ud800" <= text[-1:] <= "\udbff":
        return join_halves(text[:-1]), text[-1]
    return join_halves(text), ""


def join_all(value: JsonValue) -> JsonValue:
    """Return a JSON value with every string in it repaired."""
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
    raise ValueError(f"{word} is not valid JSON")


# Collect audio that a chat model speaks in its answer: raw samples in chunks, combined into a WAV file.


RATE = 24_000  # samples per second, by default


class Samples:
    """The samples of one reply: 16 bits, one channel. `take` returns the audio so far. None without any."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._rate = RATE

    def add(self, base64: str, media_type: str = "") -> None:
        """Add a chunk. Gemini writes the rate into its type: `audio/L16;codec=pcm;rate=24000`."""
        if found := re.search(r"rate=(\d{4,6})", media_type):
            self._rate = int(found[1])
        self._pieces.append(a2b_base64(base64))

    def take(self) -> File | None:
        """Return the samples so far, as a file. Later samples make another file."""
        data, self._pieces = b"".join(self._pieces), []
        if not data:
            return None
        coded = b2a_base64(_header(len(data), self._rate) + data, newline=False).decode("ascii")
        return File("audio/wav", url=f"data:audio/wav;base64,{coded}", name="speech.wav")


def is_bare(media_type: str) -> bool:
    """Return whether audio is only raw samples."""
    return media_type.partition(";")[0].lower() in ("audio/l16", "audio/pcm")


def _header(size: int, rate: int) -> bytes:
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16)
    return b"RIFF" + struct.pack("<I", 36 + size) + b"WAVE" + form + b"data" + struct.pack("<I", size)


# Find the fields of a provider's chunk that a decoder does not know (`provider.data` events).


_EMPTY: tuple[JsonValue, ...] = (None, "", [], {})


def extra_fields(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, JsonValue]:
    """Return the unknown fields that are not empty."""
    return {
        name: join_all(value) for name, value in fields.items() if name not in known and value not in _EMPTY
    }


class ExtraFields:
    """The extra fields of objects that are repeated in a stream: each value once, unless `repeated`.

    Most chunks of a stream are alike. A chunk with as many fields as one without extra fields is skipped:
    this is what `size` is for, and what makes the check cheap.
    """

    __slots__ = ("_constant", "_known", "_repeated", "_seen", "size")

    def __init__(
        self, known: frozenset[str], constant: frozenset[str] = frozenset(), *, repeated: bool = False
    ) -> None:
        self.size = -1
        self._known = known
        self._constant = constant  # unknown, but the same in every chunk: the first is enough
        self._repeated = repeated
        self._seen: dict[str, JsonValue] = {}

    def new(self, fields: Mapping[str, Any]) -> dict[str, JsonValue]:
        """Return the fields that are new or have a new value."""
        unknown = [name for name in fields if name not in self._known]
        self.size = len(fields) if self._constant.issuperset(unknown) else -1
        found = extra_fields(fields, self._known) if unknown else {}
        if self._repeated:
            return found
        found = {name: value for name, value in found.items() if self._seen.get(name) != value}
        self._seen |= found
        return found
