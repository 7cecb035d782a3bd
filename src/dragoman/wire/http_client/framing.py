"""Split the bytes of a reply into events, independently of the wire that decodes them."""

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

# Split a server-sent event stream, cut anywhere, into the data of its events.
#
# Event names, IDs and comments are dropped: every provider also writes the kind of event into the data.


BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"  # the end of a stream at OpenAI and its imitators, and at gateways to other providers


class Splitter:
    """Splits a byte stream into events. Each chunk returns the events that are complete.

    Nothing is decoded here, so a cut inside a character does no harm.
    """

    __slots__ = ("_after_cr", "_began", "_data", "_rest", "pending")

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # chunks of a line that has not ended yet
        self._data: list[bytes] = []  # data lines of an event that has not ended yet
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
        elif b"\n" not in chunk and b"\r" not in chunk:  # a long line: joined once, when it is complete
            self._rest.append(chunk)
            self.pending += len(chunk)
            return []
        else:
            lines = chunk.splitlines()  # the earlier chunks contain no line end
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest.clear()
        if lines and chunk[-1:] not in b"\r\n":
            self._rest.append(lines.pop())
        self.pending = len(self._rest[0]) if self._rest else 0
        return self._events(lines)

    def end(self) -> list[bytes]:
        """Return the last event of a stream that ended without the final blank line."""
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


# Split Amazon's event stream, cut anywhere, into the data of its events.
#
# Frames are binary: two lengths and their checksum, headers, a payload, and a checksum of the whole. If a
# model has its own protocol, Bedrock wraps each of its events in a payload, as base64. Bedrock's own events
# have their name in a header. They are returned as an object with that name, `{"contentBlockDelta": {…}}`.


PRELUDE = 12  # bytes: the total length, the length of the headers, and a checksum
LARGEST = 24 * 1024 * 1024  # bytes of one frame: Amazon's own limit is 16 MB for the payload

# Errors inside a stream that began well, with the status that each has as a response.
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
_HIDING = ("", "chunk")  # events that wrap another one


class AwsEventSplitter:
    """Splits a byte stream into events. Each chunk yields the events that are complete."""

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
        """Discard a partial frame: without its checksum, its content cannot be trusted."""
        self._held.clear()
        self.pending = 0
        return iter(())

    def _size(self) -> int | None:
        """Return the size of the next frame, checked as soon as it arrives, so that no wait follows from a
        wrong one."""
        if len(self._held) < PRELUDE:
            return None
        size, headers, checksum = struct.unpack_from("!III", self._held)
        if zlib.crc32(self._held[:8]) != checksum:
            raise _garbled("the checksum of a frame's prelude is wrong")
        if not PRELUDE + headers + 4 <= size <= LARGEST:
            raise _garbled(f"a frame says that it has {size} bytes, {headers} of them headers")
        return int(size)


def _event(frame: bytes) -> bytes | None:
    """Return the data of an event. None if it has none. Raises ProviderError if the event is an error."""
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
    """Return the headers that are text. The others are skipped."""
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
    """Splits one reply. `pending` is the number of bytes of an incomplete event."""

    pending: int

    def feed(self, chunk: bytes) -> Iterable[bytes]: ...

    def end(self) -> Iterable[bytes]:
        """Return what is left when the stream ends."""


class Unsplit:
    """A reply that is a file, such as audio: each chunk as it comes."""

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
