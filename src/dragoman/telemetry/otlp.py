"""Spans as bytes of OTLP, OpenTelemetry's protocol. Pure.

The SDK writes them by way of three objects for each: that costs more than all else that is done for a span.
The numbers are those of the fields in `opentelemetry/proto/trace/v1/trace.proto`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from struct import pack

from dragoman.telemetry.spans import Attribute, SpanValue

_NANO = 1_000_000_000
_INTERNAL, _CLIENT = b"\x30\x01", b"\x30\x03"  # kind
_FAILED = b"\x7a\x02\x18\x02"  # status, with the code for an error
_SAMPLED = b"\x85\x01" + pack("<I", 0x101)  # flags, which also say that they know where the parent is
_SAMPLED_INSIDE = b"\x85\x01" + pack("<I", 0x301)


def encode_span(span: SpanValue, longest: int | None = None) -> bytes:
    """One span, as a part of a request. `longest`: characters of an attribute."""
    start = int(span.start * _NANO)
    end = max(start, int(span.end * _NANO))
    pieces = [
        b"\x0a\x10",
        bytes.fromhex(span.context.trace),
        b"\x12\x08",
        bytes.fromhex(span.context.span),
    ]
    if span.parent:
        pieces += (b"\x22\x08", bytes.fromhex(span.parent))
    pieces += (
        _text(0x2A, span.name),
        _CLIENT if span.client else _INTERNAL,
        b"\x39" + pack("<Q", start) + b"\x41" + pack("<Q", end),
    )
    pieces += [_attribute(0x4A, name, value, longest) for name, value in span.attributes.items()]
    if span.error is not None:
        pieces += (_attribute(0x4A, "error.type", span.error, None), _FAILED)
    for name, at in span.events:
        pieces.append(_message(0x5A, b"\x09" + pack("<Q", int(at * _NANO)) + _text(0x12, name)))
    pieces.append(_SAMPLED_INSIDE if span.parent else _SAMPLED)
    return _message(0x12, b"".join(pieces))


def encode_head(
    resource: Mapping[str, object], schema: str, scope: str, version: str
) -> tuple[bytes, bytes, bytes]:
    """What comes with every request: the resource, the scope, and the address of the resource's schema."""
    attributes = b"".join(
        _attribute(0x0A, name, _plain(value), None) for name, value in sorted(resource.items())
    )
    named = _text(0x0A, scope) + _text(0x12, version)
    return _message(0x0A, attributes), _message(0x0A, named), _text(0x1A, schema) if schema else b""


def encode_request(head: tuple[bytes, bytes, bytes], spans: Iterable[bytes]) -> bytes:
    """The body of a request with these spans, which were encoded before."""
    resource, scope, schema = head
    return _message(0x0A, resource + _message(0x12, scope + b"".join(spans)) + schema)


def _attribute(tag: int, name: str, value: Attribute, longest: int | None) -> bytes:
    if type(value) is str:
        return _message(tag, _key(name) + _message(0x12, _text(0x0A, value[:longest])))
    return _message(tag, _key(name) + _message(0x12, _value(value, longest)))


def _value(value: Attribute, longest: int | None) -> bytes:
    match value:
        case bool():
            return b"\x10\x01" if value else b"\x10\x00"
        case int():
            return b"\x18" + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
        case float():
            return b"\x21" + pack("<d", value)
        case str():
            return _text(0x0A, value[:longest])
        case _:
            listed = b"".join(_message(0x0A, _text(0x0A, one[:longest])) for one in value)
            return _message(0x2A, listed)


def _plain(value: object) -> Attribute:
    """What others put into the resource may be anything."""
    if isinstance(value, str | bool | int | float):
        return value
    return [str(one) for one in value] if isinstance(value, Sequence) else str(value)


@lru_cache(500)
def _key(name: str) -> bytes:
    return _text(0x0A, name)


def _text(tag: int, text: str) -> bytes:
    return _message(tag, text.encode("utf-8", "replace"))


def _message(tag: int, data: bytes) -> bytes:
    size = len(data)
    if size < 0x80:
        return bytes((tag, size)) + data
    return bytes((tag,)) + _varint(size) + data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
