"""An event stream can be cut anywhere, and comes in every form that the standard allows (W1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.http_client.framing import Splitter
from tests.wire.cuts import cuts, every_cut

STREAM = (
    "\ufeff: a comment\n"
    'event: message\ndata: {"text": "für 🐉"}\n\n'
    'data:{"no": "space"}\r\n\r\n'
    "data: two\r\ndata:  lines\r\n\r\n"
    "id: 7\rretry: 10\rdata: bare returns\r\r"
    "\n\n: keep-alive\n\n"
    "data: [DONE]\n\n"
).encode()

EVENTS = ['{"text": "für 🐉"}', '{"no": "space"}', "two\n lines", "bare returns", "[DONE]"]


def split(pieces: list[bytes]) -> list[str]:
    splitter = Splitter()
    frames = [frame for piece in pieces for frame in splitter.feed(piece)] + splitter.end()
    return [frame.decode() for frame in frames]


def test_events_come_out_whole_whichever_line_ends_and_fields_a_server_uses() -> None:
    assert split([STREAM]) == EVENTS


def test_every_cut_gives_the_same_events() -> None:
    for pieces in every_cut(STREAM):
        assert split(pieces) == EVENTS


@given(cuts(STREAM))
def test_any_cut_gives_the_same_events(pieces: list[bytes]) -> None:
    assert split(pieces) == EVENTS


@given(st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", b"\r\n", b"x", b"\xef\xbb\xbf"])))
def test_nonsense_is_read_the_same_in_one_piece_and_in_many(pieces: list[bytes]) -> None:
    assert split(pieces) == split([b"".join(pieces)])


def test_an_event_is_told_as_soon_as_its_blank_line_has_begun() -> None:
    splitter = Splitter()
    assert splitter.feed(b"data: now\r\n\r") == [b"now"]
    assert splitter.feed(b"\ndata: then\n\n") == [b"then"]


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n", b"\n\n"])
def test_the_last_event_counts_even_if_its_blank_line_never_came(ending: bytes) -> None:
    assert split([b"data: a\n\ndata: b" + ending]) == ["a", "b"]


def test_events_without_data_are_no_events() -> None:
    assert split([b"event: ping\n\ndata:\n\ndata\n\n: only a comment\n\n"]) == []


def test_white_space_around_an_event_is_no_part_of_it() -> None:
    assert split([b"data:  {}\t\n\ndata:   [DONE]  \n\ndata:  \n\n"]) == ["{}", "[DONE]"]


def test_a_long_line_in_many_pieces_is_one_event() -> None:
    assert split([b"data: ", *[b"x" * 1000] * 100, b"\n\n"]) == ["x" * 100_000]
