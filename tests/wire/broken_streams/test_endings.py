"""If a reply fails as a whole, or a model does not stop, the received text stays and the turn ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import ProviderError
from dragoman.messages.events import MessageEnd
from dragoman.messages.message import CallState
from dragoman.providers.catalog import Provider
from dragoman.wire.scripted import calls
from tests.loopback import (
    Reply,
    Stream,
    call_piece,
    delta,
    sse,
    stream,
    usage,
)
from tests.wire.broken_streams.played import ANSWER, WHOLE, WRITTEN, one_call, play
from tests.wire.replies import framed

pytestmark = pytest.mark.slow

# ── replies that go wrong as a whole ──────────────────────────────────────────────────────────────


async def test_t8_an_error_object_in_the_stream_ends_the_turn_and_keeps_what_came(tmp_path: Path) -> None:
    broken = stream(
        delta(content="It is"), {"error": {"message": "no room", "code": "server_error"}}, finish=None
    )
    played = await play(tmp_path, broken)
    assert (played.state, played.shown) == ("error", "It is")
    assert isinstance(played.error, ProviderError)
    assert (played.error.kind, played.error.message) == ("server", "no room")
    assert len(played.server.bodies) == 1  # Dragoman does not request a started reply again


async def test_r6_an_error_before_the_first_word_is_asked_again(tmp_path: Path) -> None:
    refused = stream({"error": {"message": "overloaded", "code": 503}}, finish=None)
    played = await play(tmp_path, refused, ANSWER)
    assert (played.state, played.text, len(played.server.bodies)) == ("completed", "It is 3.", 2)


async def test_an_empty_reply_is_an_end_that_says_so(tmp_path: Path) -> None:
    played = await play(tmp_path, stream())
    assert (played.state, played.text) == ("completed", "")
    assert any(event.type == "notice" and event.kind == "empty_reply" for event in played.events)


@pytest.mark.parametrize("then", ["dies", "stalls"])
async def test_t8_a_connection_that_breaks_ends_the_turn_and_keeps_what_came(
    then: Any, tmp_path: Path
) -> None:
    cut = Stream((sse(delta(content="It is")),), then)
    played = await play(tmp_path, cut)
    assert (played.state, played.shown) == ("error", "It is")
    assert isinstance(played.error, ProviderError)
    assert played.error.retryable
    assert played.error.kind == ("timeout" if then == "stalls" else "connection")


@pytest.mark.parametrize("then", ["dies", "stalls"])
async def test_c4_a_call_is_not_run_if_the_connection_broke_before_the_reply_was_over(
    then: Any, tmp_path: Path
) -> None:
    cut = Stream((sse(call_piece("add", WHOLE, index=0, id="call_1")),), then)
    played = await play(tmp_path, cut)
    assert (played.state, played.ran) == ("error", [])


async def test_a_reply_that_was_over_counts_even_if_the_connection_dies(tmp_path: Path) -> None:
    whole = stream(
        call_piece("add", WHOLE, index=0, id="call_1"), finish="tool_calls", done=False, then="dies"
    )
    played = await play(tmp_path, whole, ANSWER)
    assert (played.ran, played.text) == ([("add", {"a": 1, "b": 2})], "It is 3.")


# One reply per wire that always marks its end: text, a whole call, and the end of both.
SAID: dict[str, tuple[dict[str, Any], ...]] = {
    "anthropic_messages": (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": WHOLE},
        },
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ),
    "openai_responses": (
        {"type": "response.output_text.delta", "output_index": 0, "delta": "It is"},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": WHOLE},
        },
        {"type": "response.completed", "response": {"status": "completed"}},
    ),
    "gemini": (
        {"candidates": [{"content": {"parts": [{"text": "It is"}]}}]},
        {
            "candidates": [
                {"content": {"parts": [{"functionCall": {"name": "add", "args": {"a": 1, "b": 2}}}]}}
            ]
        },
        {"candidates": [{"finishReason": "STOP"}]},
    ),
    "bedrock_converse": (
        {"contentBlockDelta": {"delta": {"text": "It is"}, "contentBlockIndex": 0}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {
            "contentBlockStart": {
                "start": {"toolUse": {"toolUseId": "t1", "name": "add"}},
                "contentBlockIndex": 1,
            }
        },
        {"contentBlockDelta": {"delta": {"toolUse": {"input": WHOLE}}, "contentBlockIndex": 1}},
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {"messageStop": {"stopReason": "tool_use"}},
    ),
}
NOTHING: dict[str, dict[str, Any]] = {"bedrock_converse": {"messageStart": {"role": "assistant"}}}


@pytest.mark.parametrize("wire", SAID)
async def test_t8_a_stream_that_ends_before_the_reply_does_ends_the_turn_and_keeps_what_came(
    wire: str, tmp_path: Path
) -> None:
    torn = Stream(tuple(framed(wire, *SAID[wire][:-1])))
    played = await play(tmp_path, torn, provider=lambda url: Provider("acme", "Acme", url, wire=wire))
    assert (played.state, played.shown, played.ran) == ("error", "It is", [])
    assert isinstance(played.error, ProviderError)
    assert (played.error.kind, played.error.retryable) == ("unfinished", True)
    assert len(played.server.bodies) == 1  # Dragoman does not request a started reply again
    (stored,) = (message for message in played.stored if message.role == "assistant")
    assert (stored.text, [call.state for call in stored.calls]) == ("It is", [CallState.CANCELLED])


@pytest.mark.parametrize("wire", SAID)
async def test_r6_a_stream_that_ends_before_the_first_word_is_asked_again(wire: str, tmp_path: Path) -> None:
    whole = Stream(tuple(framed(wire, *SAID[wire])))
    played = await play(
        tmp_path,
        Stream(tuple(framed(wire, NOTHING.get(wire, {"type": "ping"})))),
        whole,
        provider=lambda url: Provider("acme", "Acme", url, wire=wire),
        max_rounds=1,
    )
    assert (played.state, played.ran) == ("completed", [("add", {"a": 1, "b": 2})])


@pytest.mark.parametrize("wire", ["anthropic_messages", "openai_responses", "gemini"])
async def test_w3_the_word_with_which_gateways_end_every_stream_is_no_part_of_it(
    wire: str, tmp_path: Path
) -> None:
    whole = Stream((*framed(wire, *SAID[wire]), b"data: [DONE]\n\n"))
    played = await play(
        tmp_path, whole, provider=lambda url: Provider("acme", "Acme", url, wire=wire), max_rounds=1
    )
    assert (played.state, played.ran) == ("completed", [("add", {"a": 1, "b": 2})])


@pytest.mark.parametrize("tools", ["native", "hermes"])
async def test_t8_text_that_could_still_have_become_a_call_or_a_thought_is_kept_when_a_reply_breaks_off(
    tools: str, tmp_path: Path
) -> None:
    for place, said in enumerate(("Well", "So <", "```\nx <tool_call> is a tag")):
        broken = stream(delta(content=said), {"error": {"message": "no room"}}, finish=None)
        (tmp_path / str(place)).mkdir()
        played = await play(tmp_path / str(place), broken, dialect=tools)
        assert (played.state, played.shown) == ("error", said)
        assert [message.text for message in played.stored if message.role == "assistant"] == [said]


UNSAID: dict[str, tuple[Reply, bool]] = {
    "neither finish nor [DONE] nor counts": (
        stream(delta(content="It is 3."), finish=None, done=False),
        True,
    ),
    "only [DONE]": (stream(delta(content="It is 3."), finish=None), False),
    "only a finish": (stream(delta(content="It is 3."), done=False), False),
    "only the counts": (stream(delta(content="It is 3."), usage(), finish=None, done=False), False),
    "a finish nobody knows": (stream(delta(content="It is 3."), finish="eos", done=False), False),
}


@pytest.mark.parametrize(("reply", "noted"), UNSAID.values(), ids=UNSAID)
async def test_w3_a_reply_that_nobody_says_is_over_counts_and_a_notice_says_so(
    reply: Reply, noted: bool, tmp_path: Path
) -> None:
    played = await play(tmp_path, reply)
    assert (played.state, played.text) == ("completed", "It is 3.")
    assert played.notices("unfinished") == (
        ["acme/model did not mark the end of its reply, so the reply may be incomplete"] if noted else []
    )


async def test_c4_of_a_reply_that_nobody_says_is_over_only_whole_calls_run(tmp_path: Path) -> None:
    torn = stream(
        call_piece("add", WHOLE, index=0, id="call_1"),
        call_piece("add", '{"a": 1, "b"', index=1, id="call_2"),
        finish=None,
        done=False,
    )
    played = await play(tmp_path, torn, ANSWER)
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert [call.state for call in played.calls] == [CallState.COMPLETED, CallState.FAILED]
    assert "not one complete JSON object" in played.explained[1]
    assert len(played.notices("unfinished")) == 1
    ends = [event.finish for event in played.events if isinstance(event, MessageEnd)]
    assert ends == ["unknown", "stop"]


async def test_c4_a_call_written_as_text_that_nobody_says_is_over_runs_if_it_is_whole(tmp_path: Path) -> None:
    torn = stream(delta(content=WRITTEN), finish=None, done=False)
    played = await play(tmp_path, torn, ANSWER, dialect="xml_tag")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert len(played.notices("unfinished")) == 1


async def test_w1_a_character_cut_in_two_writes_is_whole(tmp_path: Path) -> None:
    data = sse({"choices": [{"delta": {"content": "né 🐉"}}]}).replace(
        json.dumps("né 🐉").encode(), '"né 🐉"'.encode()
    )
    bytewise = Stream((*(data[at : at + 1] for at in range(len(data))), sse(delta("stop"))), pause=0)
    played = await play(tmp_path, bytewise)
    assert (played.text, played.shown) == ("né 🐉", "né 🐉")


async def test_half_a_character_at_the_end_is_a_reply_that_broke_off(tmp_path: Path) -> None:
    half = 'data: {"choices": [{"delta": {"content": "né'.encode()[:-1]
    played = await play(tmp_path, Stream((sse(delta(content="It is")), half)))
    assert (played.state, played.shown) == ("error", "It is")
    assert isinstance(played.error, ProviderError)
    assert played.error.kind == "garbled"


# ── a model that does not stop ────────────────────────────────────────────────────────────────────


async def test_c10_the_same_call_for_ever_is_asked_about_and_ends_at_the_limit(tmp_path: Path) -> None:
    for_ever = one_call(index=0, id="call_1")
    played = await play(tmp_path, for_ever, max_rounds=5)
    assert played.state == "completed"
    assert len(played.ran) == 5
    assert [event.kind for event in played.events if event.type == "call.asked"] == ["loop"] * 3
    assert len(played.server.bodies) == 7  # five rounds, the skipped one, and the closing request
    assert "tools" not in played.server.bodies[-1]


async def test_t7_ever_new_calls_end_at_the_limit(tmp_path: Path) -> None:
    def another(body: dict[str, Any]) -> Reply:
        if "tools" not in body:
            return ANSWER
        return calls("add", a=len(body["messages"]), b=2)

    played = await play(tmp_path, another, max_rounds=3)
    assert (played.state, played.text, len(played.ran)) == ("completed", "It is 3.", 3)
