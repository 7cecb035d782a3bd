"""Amazon's frames: cut anywhere, damaged anywhere, and never larger than they may be (W1)."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ProviderError
from dragoman.wire.http_client.framing import LARGEST, AwsEventSplitter
from tests.wire.aws_frames import aws_frame, chunk, exception, named

PAYLOADS = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), max_size=5)


def split(*pieces: bytes) -> list[bytes]:
    splitter = AwsEventSplitter()
    return [event for piece in pieces for event in splitter.feed(piece)]


@given(PAYLOADS, st.data())
def test_any_cut_of_the_bytes_gives_the_same_events(
    payloads: list[dict[str, str]], data: st.DataObject
) -> None:
    stream = b"".join(map(chunk, payloads))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[begin:end] for begin, end in pairwise([0, *cuts, len(stream)])]
    assert split(*pieces) == split(stream)
    assert len(split(stream)) == len(payloads)


def test_byte_by_byte_the_events_come_when_they_are_complete() -> None:
    first, second = chunk({"a": 1}), chunk({"b": 2})
    splitter = AwsEventSplitter()
    seen = []
    for at, byte in enumerate(first + second, 1):
        for event in splitter.feed(bytes([byte])):
            seen.append((at, event))
    assert seen == [(len(first), b'{"a": 1}'), (len(first) + len(second), b'{"b": 2}')]
    assert splitter.pending == 0


@given(st.data())
def test_any_byte_that_is_damaged_is_noticed(data: st.DataObject) -> None:
    """A checksum covers every byte, and a damaged frame does not make Dragoman wait for more (W1)."""
    frame = bytearray(chunk({"text": "hello"}))
    at = data.draw(st.integers(0, len(frame) - 1))
    frame[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ProviderError, match="cannot read") as raised:
        split(bytes(frame))
    assert raised.value.kind == "garbled"


@given(st.binary(max_size=200))
def test_bytes_that_are_no_frames_end_in_an_error_or_wait_for_a_few(noise: bytes) -> None:
    splitter = AwsEventSplitter()
    try:
        assert list(splitter.feed(noise)) == []
    except ProviderError:
        return
    assert splitter.pending < 12


def test_a_frame_that_says_it_is_huge_is_not_waited_for() -> None:
    prelude = struct.pack("!II", LARGEST + 1, 0)
    with pytest.raises(ProviderError, match=f"has {LARGEST + 1} bytes"):
        split(prelude + struct.pack("!I", zlib.crc32(prelude)))


def test_headers_of_other_types_are_stepped_over() -> None:
    numbers = b"\x01a\x00" + b"\x01b\x03\x00\x07" + b"\x01c\x06\x00\x02xy" + b"\x01d\x09" + bytes(16)
    payload = b'{"x": 1}'
    prelude = struct.pack("!II", 16 + len(numbers) + len(payload), len(numbers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + numbers + payload
    assert split(message + struct.pack("!I", zlib.crc32(message))) == [payload]


@pytest.mark.parametrize(
    ("kind", "status"), [("throttlingException", 429), ("modelTimeoutException", 408), ("newOne", None)]
)
def test_an_exception_has_the_status_it_would_have_as_a_response(kind: str, status: int | None) -> None:
    splitter = AwsEventSplitter()
    events = splitter.feed(chunk({"a": 1}) + exception(kind, "too fast"))
    assert next(iter(events)) == b'{"a": 1}'  # earlier events are not lost
    with pytest.raises(ProviderError, match="too fast") as raised:
        list(events)
    assert raised.value.status == status


@pytest.mark.parametrize("payload", [b"no json", b'{"bytes": 5}', b'{"bytes": "*"}'])
def test_a_payload_that_cannot_be_read_is_an_error(payload: bytes) -> None:
    with pytest.raises(ProviderError, match="payload of a frame"):
        split(aws_frame(payload, event_type="chunk"))


def test_a_frame_without_a_payload_is_no_event() -> None:
    assert split(aws_frame(b"", event_type="initial-response")) == []


def test_an_event_of_amazons_own_comes_with_its_name() -> None:
    assert split(named({"messageStop": {"stopReason": "end_turn"}})) == [
        b'{"messageStop":{"stopReason": "end_turn", "p": "abcdefghij"}}'
    ]
