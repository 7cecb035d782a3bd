"""A garbled call runs once, as meant, or the model learns of it and retries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoman.messages.message import CallState
from tests.loopback import (
    Reply,
    call_piece,
    delta,
    stream,
    usage,
)
from tests.wire.broken_streams.played import ANSWER, WHOLE, one_call, play

pytestmark = pytest.mark.slow

MEANT: dict[str, Reply] = {
    "as it should be": one_call(index=0, id="call_1"),
    "in pieces": stream(
        call_piece("add", "", index=0, id="call_1"),
        *(call_piece(None, piece, index=0) for piece in WHOLE),
        finish="tool_calls",
    ),
    "a trailing comma": one_call(arguments='{"a": 1, "b": 2,}', index=0, id="call_1"),
    "another case in the name": one_call("Add", index=0, id="call_1"),
    "a namespace before the name": one_call("functions.add", index=0, id="call_1"),
    "no index": one_call(id="call_1"),
    "no id": one_call(index=0),
    "an empty id": one_call(index=0, id=""),
    "neither index nor id": one_call(),
    "an object": one_call(arguments={"a": 1, "b": 2}, index=0, id="call_1"),
    "double-encoded": one_call(arguments=json.dumps(WHOLE), index=0, id="call_1"),
    "sent twice": stream(
        call_piece("add", WHOLE, index=0, id="call_1"),
        call_piece("add", WHOLE, index=0, id="call_1"),
        finish="tool_calls",
    ),
    "the name in every delta": stream(
        call_piece("add", '{"a": 1,', index=0, id="call_1"),
        call_piece("add", ' "b": 2', index=0, id="call_1"),
        call_piece("add", "}", index=0, id="call_1"),
        finish="tool_calls",
    ),
    "the name in pieces": stream(
        call_piece("a", index=0, id="call_1"),
        call_piece("dd", index=0),
        call_piece(None, WHOLE, index=0),
        finish="tool_calls",
    ),
    "finish says stop": stream(call_piece("add", WHOLE, index=0, id="call_1"), finish="stop"),
    "finish says length, but it is whole": stream(
        call_piece("add", WHOLE, index=0, id="call_1"), finish="length"
    ),
    "no finish": stream(call_piece("add", WHOLE, index=0, id="call_1"), finish=None),
    "no end of the stream": stream(
        call_piece("add", WHOLE, index=0, id="call_1"), finish="tool_calls", done=False
    ),
    "neither finish nor end": stream(call_piece("add", WHOLE, index=0, id="call_1"), finish=None, done=False),
    "usage before the end": stream(
        call_piece("add", WHOLE, index=0, id="call_1"), usage(), finish="tool_calls"
    ),
    "blank lines before it": stream(
        delta(content="\n\n"), call_piece("add", WHOLE, index=0, id="call_1"), finish="tool_calls"
    ),
    "an id of its own for every piece": stream(
        call_piece("add", "", index=0, id="call_1"),
        call_piece(None, '{"a": 1,', index=0, id="call_2"),
        call_piece(None, ' "b": 2}', index=0, id="call_3"),
        finish="tool_calls",
    ),
}


@pytest.mark.parametrize("reply", MEANT.values(), ids=MEANT)
async def test_w3_a_call_that_is_meant_runs_once_with_its_arguments(reply: Reply, tmp_path: Path) -> None:
    played = await play(tmp_path, reply, ANSWER)
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert (played.state, played.text, played.shown) == ("completed", "It is 3.", "It is 3.")
    assert played.explained == ["3"]


NO_ARGUMENTS: dict[str, Any] = {"empty": "", "null": None, "the word null": "null", "an empty object": "{}"}


@pytest.mark.parametrize("arguments", NO_ARGUMENTS.values(), ids=NO_ARGUMENTS)
async def test_c5_no_arguments_are_an_empty_object(arguments: Any, tmp_path: Path) -> None:
    played = await play(tmp_path, one_call("ping", arguments, index=0, id="call_1"), ANSWER)
    assert played.ran == [("ping", {})]
    assert played.explained == ["pong"]


TWO: dict[str, Reply] = {
    "both at index 0": stream(
        call_piece("add", WHOLE, index=0, id="call_1"),
        call_piece("ping", "{}", index=0, id="call_2"),
        finish="tool_calls",
    ),
    "both at index 0, in pieces": stream(
        call_piece("add", '{"a": 1,', index=0, id="call_1"),
        call_piece(None, ' "b": 2}', index=0),
        call_piece("ping", "{", index=0, id="call_2"),
        call_piece(None, "}", index=0),
        finish="tool_calls",
    ),
    "no index": stream(call_piece("add", WHOLE), call_piece("ping", "{}"), finish="tool_calls"),
    "one id for both": stream(
        call_piece("add", WHOLE, index=0, id="call_1"),
        call_piece("ping", "{}", index=1, id="call_1"),
        finish="tool_calls",
    ),
    "empty ids": stream(
        call_piece("add", WHOLE, index=0, id=""), call_piece("ping", "{}", index=1, id=""), finish="stop"
    ),
    "in one delta": stream(
        delta(
            tool_calls=[
                {"function": {"name": "add", "arguments": WHOLE}},
                {"function": {"name": "ping", "arguments": None}},
            ]
        )
    ),
}


@pytest.mark.parametrize("reply", TWO.values(), ids=TWO)
async def test_w3_two_calls_stay_two(reply: Reply, tmp_path: Path) -> None:
    played = await play(tmp_path, reply, ANSWER)
    assert sorted(played.ran, key=str) == [("add", {"a": 1, "b": 2}), ("ping", {})]
    sent = played.server.messages()
    ids = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ids
    assert played.text == "It is 3."


# ── calls that cannot run ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Wrong:
    reply: Reply
    explained: str  # the result that the model receives


WRONG: dict[str, Wrong] = {
    "arguments cut off, finish tool_calls": Wrong(
        one_call(arguments='{"a": 1, "b"', index=0, id="call_1"), "not one complete JSON object"
    ),
    "arguments cut off, finish length": Wrong(
        stream(call_piece("add", '{"a": 1, "b": 2', index=0, id="call_1"), finish="length"),
        "not one complete JSON object",
    ),
    "no arguments came before the length was reached": Wrong(
        stream(call_piece("ping", "", index=0, id="call_1"), finish="length"), "not one complete JSON object"
    ),
    "an unknown tool": Wrong(one_call("subtract", index=0, id="call_1"), "Unknown tool 'subtract'"),
    "a missing argument": Wrong(one_call(arguments='{"a": 1}', index=0, id="call_1"), "b"),
    "two objects that disagree": Wrong(
        one_call(arguments='{"a": 1, "b": 2}{"a": 1, "b": 3}', index=0, id="call_1"),
        "not one complete JSON object",
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_c4_a_call_that_cannot_run_is_told_to_the_model_which_tries_again(
    wrong: Wrong, tmp_path: Path
) -> None:
    played = await play(tmp_path, wrong.reply, one_call(index=0, id="call_2"), ANSWER)
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert [call.state for call in played.calls] == [CallState.FAILED, CallState.COMPLETED]
    assert wrong.explained in played.explained[0]
    assert (played.state, played.text, played.shown) == ("completed", "It is 3.", "It is 3.")
    for message in played.server.messages():
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)  # servers refuse anything else
