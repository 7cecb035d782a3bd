"""How the events of a reply are cut out of its bytes: an axis of its own, beside the wire that reads them."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Protocol, TypeAlias

from pydantic_core import from_json, to_json

from dragoman.errors import ProviderError
from dragoman.sentences import sentence
from dragoman.wire.provider_errors import provider_error

# Splits a server-sent event stream, cut anywhere, into the data of its events.
#
# Event names, ids and comments are dropped: every provider also writes the kind of event into the data.


BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"  # how OpenAI and its imitators end a stream, and gateways those of others


class Splitter:
    """Feed it what the network gives; it returns the events that are complete. Nothing is decoded here,
    so half a character at a cut does no harm."""

    __slots__ = ("_after_cr", "_began", "_data", "_rest", "pending")

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # the pieces of a line that has not ended yet
        self._data: list[bytes] = []  # the data lines of an event that has not ended yet
        self._after_cr = False  # the last chunk ended in CR: an LF that comes first belongs to it
        self._began = False
        self.pending = 0  # bytes of a line that has not ended yet

    def feed(self, chunk: bytes) -> list[bytes]:
        if not chunk:
            return []
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        self._after_cr = chunk[-1:] == b"\r"
        if not self._rest:
            lines = chunk.splitlines()
        elif b"\n" not in chunk and b"\r" not in chunk:  # a long line: joined once, when it is whole
            self._rest.append(chunk)
            self.pending += len(chunk)
            return []
        else:
            lines = chunk.splitlines()  # there is no end of a line in what came before
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest.clear()
        if lines and chunk[-1:] not in b"\r\n":
            self._rest.append(lines.pop())
        self.pending = len(self._rest[0]) if self._rest else 0
        return self._events(lines)

    def end(self) -> list[bytes]:
        """The last event of a stream that stopped without the blank line that was due."""
        lines = [b"".join(self._rest), b""]
        self._rest.clear()
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[bytes]:
        if lines and not self._began:
            self._began = True
            lines[0] = lines[0].removeprefix(BOM)
        events = []
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line and data:
                if event := (data[0] if len(data) == 1 else b"\n".join(data)).strip():
                    events.append(event)
                data.clear()
        return events


# Splits Amazon's event stream, cut anywhere, into the data of its events.
#
# Frames are binary: two lengths and their checksum, headers, a payload, and the checksum of it all. Of what a
# model sends in its own protocol, Bedrock hides each event in a payload, as base64. Its own events have their
# name in a header: here they come out as an object with that name, `{"contentBlockDelta": {…}}`.


PRELUDE = 12  # bytes: the length of all, the length of the headers, and a checksum
LARGEST = 24 * 1024 * 1024  # bytes of one frame: Amazon's own limit is 16 MB for the payload

# The errors of a stream that began well, by the status each has as a response.
STATUSES = {
    "throttlingException": 429,
    "validationException": 400,
    "accessDeniedException": 403,
    "resourceNotFoundException": 404,
    "modelTimeoutException": 408,
    "modelNotReadyException": 429,
    "serviceQuotaExceededException": 400,
    "modelErrorException": 424,
    "modelStreamErrorException": 424,
    "internalServerException": 500,
    "serviceUnavailableException": 503,
}
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}  # bytes of a header's value, by its type
_BYTES, _STRING = 6, 7  # these begin with their length
_HIDING = ("", "chunk")  # events that hide another


class AwsEventSplitter:
    """Feed it what the network gives; it yields the events that are complete."""

    __slots__ = ("_held", "pending")

    def __init__(self) -> None:
        self._held = bytearray()
        self.pending = 0  # bytes of a frame that has not ended yet

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._held += chunk
        while (size := self._size()) is not None and len(self._held) >= size:
            frame = bytes(self._held[:size])
            del self._held[:size]
            if (event := _event(frame)) is not None:
                yield event
        self.pending = len(self._held)

    def end(self) -> Iterator[bytes]:
        """Half a frame is none: without its checksum nothing in it can be believed."""
        self._held.clear()
        self.pending = 0
        return iter(())

    def _size(self) -> int | None:
        """The bytes of the next frame, checked as soon as they are there: nobody waits for a wrong length."""
        if len(self._held) < PRELUDE:
            return None
        size, headers, checksum = struct.unpack_from("!III", self._held)
        if zlib.crc32(self._held[:8]) != checksum:
            raise _garbled("the checksum of a frame's prelude is wrong")
        if not PRELUDE + headers + 4 <= size <= LARGEST:
            raise _garbled(f"a frame says that it has {size} bytes, {headers} of them headers")
        return int(size)


def _event(frame: bytes) -> bytes | None:
    """The data of an event; None for one that has none. ProviderError where it is an error."""
    length, (checksum,) = (
        struct.unpack_from("!I", frame, 4)[0],
        struct.unpack_from("!I", frame, len(frame) - 4),
    )
    if zlib.crc32(frame[:-4]) != checksum:
        raise _garbled("the checksum of a frame is wrong")
    headers = _headers(frame[PRELUDE : PRELUDE + length])
    payload = frame[PRELUDE + length : -4]
    if headers.get(":message-type") in ("exception", "error"):
        raise _reported(headers, payload)
    if not payload:
        return None
    if (name := headers.get(":event-type", "")) not in _HIDING:
        return b"{" + to_json(name) + b":" + payload + b"}"
    try:
        found = from_json(payload)
        hidden = found.get("bytes") if isinstance(found, dict) else None
        return payload if hidden is None else base64.b64decode(hidden, validate=True)
    except (ValueError, TypeError):
        raise _garbled("the payload of a frame is not valid JSON or base64") from None


def _headers(data: bytes) -> dict[str, str]:
    """Those that are text; the others are stepped over."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            name = data[at + 1 : at + 1 + data[at]]
            at += 1 + data[at]
            kind = data[at]
            at += 1
            if kind in (_BYTES, _STRING):
                (size,) = struct.unpack_from("!H", data, at)
                at += 2
            else:
                size = _SIZES[kind]
            if kind == _STRING:
                found[name.decode()] = data[at : at + size].decode()
            at += size
    except (IndexError, KeyError, struct.error, UnicodeDecodeError):
        raise _garbled("the headers of a frame are not valid") from None
    return found


def _reported(headers: dict[str, str], payload: bytes) -> ProviderError:
    kind = headers.get(":exception-type") or headers.get(":error-code") or "error"
    try:
        report = from_json(payload)
    except ValueError:
        report = None
    message = report.get("message") if isinstance(report, dict) else None
    words = message or headers.get(":error-message") or kind
    return provider_error({"message": str(words), "type": kind}, status=STATUSES.get(kind))


def _garbled(why: str) -> ProviderError:
    return ProviderError(
        sentence("stream.garbled", why=why),
        kind="garbled",
        retryable=True,
        hint=sentence("hint.not_amazon"),
    )


FramingName: TypeAlias = Literal["sse", "aws_events", "bytes"]


class Framing(Protocol):
    """Splits one reply. `pending` are the bytes of an event that is not complete."""

    pending: int

    def feed(self, chunk: bytes) -> Iterable[bytes]: ...

    def end(self) -> Iterable[bytes]:
        """What is left when the stream ends."""


class Unsplit:
    """A reply that is a file, such as a sound: each piece as it comes."""

    pending = 0

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        return (chunk,)

    def end(self) -> Iterable[bytes]:
        return ()


FRAMINGS: dict[FramingName, Callable[[], Framing]] = {
    "sse": Splitter,
    "aws_events": AwsEventSplitter,
    "bytes": Unsplit,
}
