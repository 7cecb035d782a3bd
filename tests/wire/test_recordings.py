"""Recorded streams of live providers decode as meant, whole and cut anywhere (W1).

The recordings are not in the repository. `DRAGOMAN_RECORDINGS` names their folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.messages.usage import Usage
from dragoman.wire import anthropic_messages, gemini, openai_chat, openai_responses
from dragoman.wire.wire import Wire
from tests.sweeps import examples
from tests.wire.cuts import cuts
from tests.wire.replies import Reply, decode
from tests.wire.wholes import WHOLE, frames_of, read_whole


def plain_usage(usage: Usage) -> dict[str, int]:
    return {"input": usage.input, "output": usage.output}


def anthropic_usage(usage: Usage) -> dict[str, int]:
    """Return Anthropic's usage, which counts cached tokens in addition to the others."""
    fresh = usage.input - usage.cached - usage.cache_written
    read, written = usage.cached, usage.cache_written
    return {"input": fresh, "output": usage.output, "cache_read": read, "cache_write": written}


def gemini_usage(usage: Usage) -> dict[str, int | None]:
    """Return Gemini's usage, which counts reasoning in addition to the answer, and omits it if zero."""
    thought = usage.reasoning
    return {"input": usage.input, "output": usage.output - thought, "reasoning": thought or None}


# The wire's name in a recording → the wire, and how its provider would write our usage.
WIRES: dict[str, tuple[Wire, Callable[[Usage], dict[str, Any]]]] = {
    "openai_chat": (openai_chat.WIRE(), plain_usage),
    "openai_responses": (openai_responses.WIRE(), plain_usage),
    "anthropic": (anthropic_messages.WIRE(), anthropic_usage),
    "gemini": (gemini.WIRE(), gemini_usage),
}


def recordings() -> list[Any]:
    folder = os.environ.get("DRAGOMAN_RECORDINGS")
    if not folder:
        reason = "DRAGOMAN_RECORDINGS is not set: there are no recordings of live providers here"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason))]
    found = (json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json")))
    return [pytest.param(one, id=one["name"]) for one in found if one.get("wire") in WIRES]


def check(reply: Reply, expect: dict[str, Any], usage: Callable[[Usage], dict[str, Any]]) -> None:
    assert reply.text == expect["text"]
    assert reply.reasoning == expect["reasoning"]
    assert reply.finish_word == expect["finish"]
    calls = zip(reply.provider_ids, reply.calls, strict=True)
    assert [{"id": id, "name": call.tool, "arguments": call.arguments} for id, call in calls] == (
        expect["tool_calls"]
    )
    if expect["error"] is not None:
        assert reply.error is not None
        assert reply.error.message == expect["error"]["message"]
    else:
        assert reply.error is None
        assert usage(reply.end.usage) == expect["usage"]
        assert all(call.raw is None for call in reply.calls)
        assert (reply.end.finish == "tool_calls") == bool(reply.calls)


@pytest.mark.parametrize("recording", recordings())
def test_a_live_reply_is_read_as_it_was_meant(recording: dict[str, Any]) -> None:
    wire, usage = WIRES[recording["wire"]]
    check(decode(wire, [recording["sse"].encode()]), recording["expect"], usage)


@pytest.mark.parametrize("recording", recordings())
@settings(max_examples=examples(5))
@given(data=st.data())
def test_a_live_reply_cut_anywhere_gives_the_same_events(
    recording: dict[str, Any], data: st.DataObject
) -> None:
    wire, _ = WIRES[recording["wire"]]
    whole = recording["sse"].encode()
    assert decode(wire, data.draw(cuts(whole))).events == decode(wire, [whole]).events


@pytest.mark.parametrize("recording", recordings())
def test_a_live_reply_that_comes_whole_is_the_same_message(recording: dict[str, Any]) -> None:
    """W1: citations, signatures, items, usage and how it ended."""
    wire, _ = WIRES[recording["wire"]]
    stream = recording["sse"].encode()
    streamed = decode(wire, [stream])
    if streamed.error is not None:
        return
    whole = read_whole(wire, WHOLE[recording["wire"]](frames_of(stream)))
    assert (whole.end, whole.finish_word) == (streamed.end, streamed.finish_word)
    if (
        recording["host"] != "openrouter.ai" or recording["wire"] != "openai_responses"
    ):  # this stream ends a reasoning part late
        assert whole.parts == streamed.parts
