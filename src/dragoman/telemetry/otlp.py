"""Encode spans as OTLP, OpenTelemetry's protocol. These functions are pure.

The SDK encodes each span through three objects, which costs more than all other work for it. The numbers are
field numbers of `opentelemetry/proto/trace/v1/trace.proto`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from struct import pack

from dragoman.telemetry.spans import Attribute, SpanValue

_NANO = 1_000_000_000
_INTERNAL, _CLIENT = b"\x30\x01", b"\x30\x03"  # the kind of the span
_FAILED = b"\x7a\x02\x18\x02"  # the status, with the code for an error
_SAMPLED = b"\x85\x01" + pack("<I", 0x101)  # the flags, which also mark that the parent's location is known
_SAMPLED_INSIDE = b"\x85\x01" + pack("<I", 0x301)


def encode_span(span: SpanValue, longest: int | None = None) -> bytes:
    """Return one span, encoded as a part of a request. `longest` is the maximum number of characters of an
    attribute."""
    start = int(span.start * _NANO)
    inside = f"2208{span.parent}" if span.parent else ""
    usual = span.usual.encoded.get(longest)
    if usual is None:
        usual = span.usual.encoded[longest] = _attributes(span.usual.attributes, longest)
    pieces = [
        bytes.fromhex(f"0a10{span.trace}1208{span.id}{inside}"),
        _name(0x2A, span.name),
        _CLIENT if span.client else _INTERNAL,
        pack("<BQBQ", 0x39, start, 0x41, max(start, int(span.end * _NANO))),
        usual,
        _attributes(span.attributes, longest),
    ]
    if span.error is not None:
        pieces += (_attributes({"error.type": span.error}, None), _FAILED)
    for name, at in span.events:
        before, after = _event(name)
        pieces += (before, pack("<Q", int(at * _NANO)), after)
    pieces.append(_SAMPLED_INSIDE if inside else _SAMPLED)
    return _message(0x12, b"".join(pieces))


def encode_head(
    resource: Mapping[str, object], schema: str, scope: str, version: str
) -> tuple[bytes, bytes, bytes]:
    """Return the constant parts of a request: the resource, the scope, and the address of the resource's
    schema."""
    attributes = b""
    for name, value in sorted(resource.items()):
        data = _value(_plain(value), None)
        attributes += _before(0x0A, name, len(data)) + data
    named = _text(0x0A, scope) + _text(0x12, version)
    return _message(0x0A, attributes), _message(0x0A, named), _text(0x1A, schema) if schema else b""


def encode_request(head: tuple[bytes, bytes, bytes], spans: Iterable[bytes]) -> bytes:
    """Return the body of a request with these encoded spans."""
    resource, scope, schema = head
    return _message(0x0A, resource + _message(0x12, scope + b"".join(spans)) + schema)


def _attributes(attributes: Mapping[str, Attribute], longest: int | None) -> bytes:
    written = b""
    for name, value in attributes.items():
        data = pack("<Bd", 0x21, value) if type(value) is float else _value(value, longest)
        written += _before(0x4A, name, len(data)) + data
    return written


@lru_cache(1000)
def _before(tag: int, name: str, size: int) -> bytes:
    """Return the bytes before a value of this size: the attribute's name and length."""
    key, head = _text(0x0A, name), b"\x12" + _varint(size)
    return bytes((tag,)) + _varint(len(key) + len(head) + size) + key + head


@lru_cache(100)
def _event(name: str) -> tuple[bytes, bytes]:
    """Return the bytes before and after the time of an event."""
    named = _text(0x12, name)
    return b"\x5a" + _varint(9 + len(named)) + b"\x09", named


def _value(value: Attribute, longest: int | None) -> bytes:
    match value:
        case float():
            return pack("<Bd", 0x21, value)
        case bool():
            return b"\x10\x01" if value else b"\x10\x00"
        case int():
            return b"\x18" + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
        case str():
            return _text(0x0A, value[:longest])
        case _:
            listed = b"".join(_message(0x0A, _text(0x0A, one[:longest])) for one in value)
            return _message(0x2A, listed)


def _plain(value: object) -> Attribute:
    """Convert a resource value, which other code can set to any type."""
    if isinstance(value, str | bool | int | float):
        return value
    return [str(one) for one in value] if isinstance(value, Sequence) else str(value)


@lru_cache(500)
def _name(tag: int, name: str) -> bytes:
    return _text(tag, name)


def _text(tag: int, text: str) -> bytes:
    return _message(tag, text.encode("utf-8", "replace"))


def _message(tag: int, data: bytes) -> bytes:
    size = len(data)
    if size < 0x80:
        return bytes((tag, size)) + data
    if size < 0x4000:
        return bytes((tag, size & 0x7F | 0x80, size >> 7)) + data
    return bytes((tag,)) + _varint(size) + data


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
