"""Amazon's event stream, byte for byte: lengths, headers, payloads and checksums."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any


def aws_frame(payload: bytes, **headers: str) -> bytes:
    """One frame, with headers such as `event_type="chunk"`."""
    head = b""
    for name, value in headers.items():
        word = f":{name.replace('_', '-')}".encode()
        head += bytes([len(word)]) + word + b"\x07" + struct.pack("!H", len(value)) + value.encode()
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + head + payload
    return message + struct.pack("!I", zlib.crc32(message))


def chunk(event: dict[str, Any]) -> bytes:
    """An event of a model, as Bedrock hides it."""
    hidden = base64.b64encode(json.dumps(event).encode()).decode()
    payload = json.dumps({"bytes": hidden, "p": "abcdefg"}).encode()
    return aws_frame(payload, event_type="chunk", content_type="application/json", message_type="event")


def named(event: dict[str, Any]) -> bytes:
    """Return a Converse event with its name in a header and padding in its payload."""
    ((name, held),) = event.items()
    payload = json.dumps({**held, "p": "abcdefghij"} if isinstance(held, dict) else held).encode()
    return aws_frame(payload, event_type=name, content_type="application/json", message_type="event")


def exception(kind: str, message: str) -> bytes:
    payload = json.dumps({"message": message}).encode()
    return aws_frame(payload, exception_type=kind, message_type="exception")
