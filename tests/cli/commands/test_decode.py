"""`dragoman decode`: a provider's stream as one JSON object, for people who debug a model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.commands.debug import report
from dragoman.providers.wires import wire
from tests.cli.program import invoke, program
from tests.loopback import DONE, call_piece, delta, sse, usage
from tests.wire.replies import framed

CHAT = (
    sse(
        delta(reasoning_content="hm"),
        delta(content="Né "),
        delta(content="🐉"),
        call_piece("add", '{"a": 1', index=0, id="call_1"),
        call_piece(None, ', "b": 2}', index=0),
        call_piece("ping", None, index=1),
        delta("tool_calls"),
        usage(7, 3),
    )
    + DONE
)


def test_a_stream_is_told_as_one_object() -> None:
    decoded = report(wire("openai_chat"), CHAT)
    assert decoded == {
        "text": "Né 🐉",
        "reasoning": "hm",
        "tool_calls": [
            {"id": "call_1", "name": "add", "arguments": {"a": 1, "b": 2}},
            {"id": None, "name": "ping", "arguments": {}},
        ],
        "finish": "tool_calls",
        "usage": {"input": 7, "output": 3, "cache_read": 0, "cache_write": 0, "reasoning": None},
        "error": None,
    }


def test_arguments_that_are_not_whole_are_shown_as_they_came() -> None:
    decoded = report(wire("openai_chat"), sse(call_piece("add", '{"a"', index=0), delta("length")))
    assert decoded["tool_calls"] == [{"id": None, "name": "add", "arguments": None, "raw": '{"a"'}]
    assert decoded["finish"] == "length"


def test_an_error_in_the_stream_is_part_of_what_is_told() -> None:
    failed = {"error": {"message": "no", "code": 429}}
    broken = sse(delta(content="It"), call_piece("add", "{", index=0), failed)
    decoded: Any = report(wire("openai_chat"), broken)
    assert (decoded["text"], decoded["usage"]) == ("It", None)
    assert decoded["tool_calls"] == [{"id": None, "name": "add", "arguments": None, "raw": "{"}]
    error = decoded["error"]
    assert (error["message"], error["kind"], error["status"]) == ("no", "rate_limit", 429)


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        (b"", "the reply has no contents"),
        (b"hello", "had no event, only 'hello'"),
        (b'{"choices": []}', "a single JSON body arrived instead of a stream"),
        (b"<html></html>", "a web page arrived"),
        (b"data: {cut", "Dragoman cannot read a chunk of the stream"),
        (b"data: [1, 2]\n\n", "Dragoman cannot read a chunk of the stream"),
        (b"data: \xff\xfe\n\n", "Dragoman cannot read a chunk of the stream"),
    ],
)
def test_what_is_no_stream_is_an_error_that_shows_it(stream: bytes, says: str) -> None:
    decoded: Any = report(wire("openai_chat"), stream)
    assert says in decoded["error"]["message"]


TORN: dict[str, dict[str, Any]] = {
    "openai_responses": {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
    "anthropic_messages": {"type": "content_block_start", "content_block": {"type": "text", "text": "Hi"}},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]},
    "bedrock_converse": {"contentBlockDelta": {"delta": {"text": "Hi"}, "contentBlockIndex": 0}},
}


@pytest.mark.parametrize("name", TORN)
def test_a_stream_that_ends_before_the_reply_does_is_an_error(name: str) -> None:
    decoded: Any = report(wire(name), b"".join(framed(name, TORN[name])))
    assert (decoded["text"], decoded["finish"], decoded["usage"]) == ("Hi", None, None)
    error = decoded["error"]
    assert error["message"] == "the stream ended before the reply was complete"
    assert (error["kind"], error["retryable"]) == ("unfinished", True)


def test_a_chat_that_nobody_says_is_over_is_no_error() -> None:
    decoded = report(wire("openai_chat"), sse(delta(content="Hi")))
    assert (decoded["text"], decoded["finish"], decoded["error"]) == ("Hi", None, None)


@pytest.mark.parametrize("name", ["openai_responses", "anthropic_messages", "gemini"])
def test_every_wire_can_be_looked_at(name: str) -> None:
    decoded = invoke("decode", "--wire", name, input=b"data: {}\n\n")
    assert json.loads(decoded.stdout)["finish"] is None


def recordings() -> list[Any]:
    folder = os.environ.get("DRAGOMAN_RECORDINGS")
    if not folder:
        return [pytest.param({}, marks=pytest.mark.skip(reason="DRAGOMAN_RECORDINGS is not set"))]
    found = (json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json")))
    return [pytest.param(one, id=one["name"]) for one in found if "sse" in one]


@pytest.mark.parametrize("recording", recordings())
def test_a_live_stream_is_told_as_it_was_meant(recording: Any) -> None:
    decoded: Any = report(wire(recording["wire"]), recording["sse"].encode())
    expected = recording["expect"]
    for key in ("text", "reasoning", "tool_calls", "finish"):
        assert decoded[key] == expected[key]
    if expected["error"] is not None:
        assert decoded["error"]["message"] == expected["error"]["message"]
    else:
        assert decoded["usage"] | expected["usage"] == decoded["usage"]


@pytest.mark.slow
async def test_the_program_reads_bytes_and_prints_json(tmp_path: Path) -> None:
    ended = await program("decode", "--wire", "openai_chat", folder=tmp_path, stdin=CHAT)
    assert (ended.status, ended.err) == (0, "")
    assert json.loads(ended.out)["text"] == "Né 🐉"


@pytest.mark.slow
async def test_a_wire_that_is_not_there_is_one_line_and_an_exit_status(tmp_path: Path) -> None:
    ended = await program("decode", "--wire", "smoke", folder=tmp_path)
    assert ended.status == 2
    assert ended.err.startswith("dragoman: Unknown wire 'smoke'. Choose one of: openai_chat")
    assert ended.err.count("\n") == 1
