"""What providers send when they err, one turn each over real HTTP: the call runs once, as it was meant, or
the model learns of it and retries. Never a wrong argument, a lost call, an endless loop, or markup shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dragoman import ProviderError, Runtime, tool
from dragoman.messages.events import Event, MessageEnd, ReasoningDelta, TextDelta
from dragoman.messages.fold import fold
from dragoman.messages.message import Message
from dragoman.messages.parts import CallState, ToolCall
from dragoman.messages.questions import allow_once
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.keys import Keys
from dragoman.providers.models import Models
from dragoman.tools.tool import Tool
from dragoman.wire.http import HttpClient, Retry, Timeouts
from dragoman.wire.scripted import calls, says
from tests.loopback import (
    Answer,
    Frame,
    Loopback,
    Reply,
    Script,
    Stream,
    call_piece,
    delta,
    loopback,
    sse,
    stream,
    usage,
)
from tests.runtimes import calls_of

pytestmark = pytest.mark.slow

ANSWER = says("It is 3.")
MARKUP = ("<think", "</think", "tool_call", "tool_code", "<|", '"arguments"')


@dataclass
class Played:
    """A turn that is over: its events, what it did, what the model was sent."""

    server: Loopback
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    stored: list[Message] = field(default_factory=list)
    state: str = ""
    text: str = ""
    error: Exception | None = None

    @property
    def shown(self) -> str:
        """Everything a person saw as text while it streamed."""
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def thought(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    def notices(self, kind: str) -> list[str]:
        return [event.text for event in self.events if event.type == "notice" and event.kind == kind]

    @property
    def calls(self) -> list[ToolCall]:
        return calls_of(self.messages)

    @property
    def explained(self) -> list[str]:
        """What the model read of its calls, in the last request that says anything of them."""
        return [message["content"] for message in self.server.messages() if message["role"] == "tool"]


def tools(ran: list[tuple[str, dict[str, Any]]]) -> list[Tool]:
    """Tools that write down what they were called with."""

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        ran.append(("add", {"a": a, "b": b}))
        return a + b

    @tool
    def ping() -> str:
        """Say pong."""
        ran.append(("ping", {}))
        return "pong"

    return [add, ping]


async def play(
    folder: Path,
    *script: Script,
    provider: Callable[[str], Provider] = lambda url: Provider("acme", "Acme", url),
    model: str = "acme/model",
    dialect: str = "auto",
    answer: Any = None,
    **settings: Any,
) -> Played:
    async with loopback(*script) as server:
        played = Played(server)
        models = Models(
            model,
            catalog=load_catalog().with_provider(provider(server.url)),
            keys=Keys({"acme": "sk-acme-0123456789"}, use_keyring=False),
            client=HttpClient(
                timeouts=Timeouts(first_byte=5, between_chunks=0.3, after_done=0.05),
                retry=Retry(attempts=2, first_wait=0.01),
            ),
            dialect=dialect,
        )
        runtime = Runtime(folder / "chat.db", model=models, tools=tools(played.ran), allow=["*"], **settings)
        async with asyncio.timeout(20), models, runtime:
            chat = await runtime.conversation()
            turn = await chat.send("What is 1 + 2?")
            async for event in turn.events():
                played.events.append(event)
                if event.type == "call.asked":
                    await turn.answer(event.question, answer or allow_once())
                if event.type == "turn.end":
                    played.state, played.text = event.state, event.text
            try:
                result = await turn.result()
            except ProviderError as error:
                played.error = error
                played.stored = await chat.messages()
            else:
                played.messages = list(result.messages)
                assert not any(mark in played.text for mark in MARKUP)
                assert [message.text for message in fold(played.events)] == [
                    message.text
                    for message in result.messages
                    if message.role == "assistant" and message.parts
                ]
        return played


# ── calls that are meant, whatever they look like ─────────────────────────────────────────────────

WHOLE = '{"a": 1, "b": 2}'


def one_call(name: str | None = "add", arguments: Any = WHOLE, **sent: Any) -> Stream:
    return stream(call_piece(name, arguments, **sent), finish="tool_calls")


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
    "in the text, as Hermes would": stream(
        delta(content='<tool_call>\n{"name": "add", "argu'),
        delta(content='ments": {"a": 1, "b": 2}}\n</tool_call>'),
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
    "one over the wire, one in the text": stream(
        delta(content='<tool_call>{"name": "ping", "arguments": {}}</tool_call>'),
        call_piece("add", WHOLE, index=0, id="call_1"),
        finish="tool_calls",
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
    explained: str  # what the model reads of it


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
    "an unknown tool": Wrong(one_call("subtract", index=0, id="call_1"), "There is no tool 'subtract'"),
    "a missing argument": Wrong(one_call(arguments='{"a": 1}', index=0, id="call_1"), "b"),
    "two objects that disagree": Wrong(
        one_call(arguments='{"a": 1, "b": 2}{"a": 1, "b": 3}', index=0, id="call_1"),
        "not one complete JSON object",
    ),
    "a call in the text that breaks off": Wrong(
        stream(delta(content='<tool_call>{"name": "add", "arguments": {"a": 1,'), finish="length"), "add"
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


# ── thoughts ──────────────────────────────────────────────────────────────────────────────────────


def text(*pieces: str) -> Stream:
    return stream(*(delta(content=piece) for piece in pieces))


THOUGHTS: dict[str, Reply] = {
    "tags aligned": text("<think>", "one and two", "</think>", "It is 3."),
    "tags split": text("<th", "ink>one and", " two</", "thi", "nk>\n\nIt", " is 3."),
    "every character for itself": text(*"<think>one and two</think>\n\nIt is 3."),
    "reasoning_content": stream(delta(reasoning_content="one and two"), delta(content="It is 3.")),
    "reasoning": stream(delta(reasoning="one and two"), delta(content="It is 3.")),
    "reasoning in both fields": stream(
        delta(reasoning="one and two", reasoning_content="one and two"), delta(content="It is 3.")
    ),
}


@pytest.mark.parametrize("reply", THOUGHTS.values(), ids=THOUGHTS)
async def test_w4_thoughts_are_told_apart_from_the_answer(reply: Reply, tmp_path: Path) -> None:
    played = await play(tmp_path, reply)
    assert (played.text, played.shown, played.thought) == ("It is 3.", "It is 3.", "one and two")
    assert played.messages[-1].reasoning == "one and two"


async def test_w4_a_lone_end_tag_makes_thoughts_of_what_was_shown(tmp_path: Path) -> None:
    played = await play(tmp_path, text("one and", " two</th", "ink>\n\nIt is 3."))
    assert (played.text, played.messages[-1].reasoning) == ("It is 3.", "one and two")
    assert "think" not in played.shown


async def test_w4_a_model_that_began_inside_its_thoughts_is_expected_to_do_so_again(tmp_path: Path) -> None:
    lone = stream(
        delta(content="I add."),
        delta(content="</think>"),
        call_piece("add", WHOLE, index=0, id="call_1"),
        finish="tool_calls",
    )
    played = await play(tmp_path, lone, text("Now I", " know.</think>", "It is 3."))
    assert (played.text, played.shown) == ("It is 3.", "I add.It is 3.")
    assert [message.reasoning for message in played.messages[1:]] == ["I add.", "Now I know."]


async def test_w4_an_answer_without_tags_is_not_lost_where_thoughts_were_expected(tmp_path: Path) -> None:
    lone = stream(
        delta(content="I add.</think>"),
        call_piece("add", WHOLE, index=0, id="call_1"),
        finish="tool_calls",
    )
    played = await play(tmp_path, lone, text("It is", " 3."))
    assert played.text == "It is 3."


async def test_w4_tags_in_code_are_left_alone(tmp_path: Path) -> None:
    sent = "Write `<think>` so:\n```xml\n<think>hm</think>\n```\nThat is all."
    async with loopback(text(*sent)) as server:
        catalog = load_catalog().with_provider(Provider("acme", "Acme", server.url))
        models = Models("acme/m", catalog=catalog)
        async with models, Runtime(tmp_path / "chat.db", model=models) as runtime:
            result = await (await runtime.send("How do I write it?")).result()
    assert result.text == sent


async def test_w4_thoughts_of_another_kind_are_never_sent_back(tmp_path: Path) -> None:
    thinking = stream(
        delta(content="<think>hm</think>"),
        call_piece("add", WHOLE, index=0, id="call_1"),
        finish="tool_calls",
    )
    played = await play(tmp_path, thinking, ANSWER)
    assert "hm" not in json.dumps(played.server.messages())


# ── replies that go wrong as a whole ──────────────────────────────────────────────────────────────


async def test_t8_an_error_object_in_the_stream_ends_the_turn_and_keeps_what_came(tmp_path: Path) -> None:
    broken = stream(
        delta(content="It is"), {"error": {"message": "no room", "code": "server_error"}}, finish=None
    )
    played = await play(tmp_path, broken)
    assert (played.state, played.shown) == ("error", "It is")
    assert isinstance(played.error, ProviderError)
    assert (played.error.kind, played.error.message) == ("server", "no room")
    assert len(played.server.bodies) == 1  # a reply that has begun is not asked for again


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


# What a reply is on the wires that always say when it is over: text, a whole call, and the end of both.
SAID: dict[str, tuple[Frame, ...]] = {
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
}


@pytest.mark.parametrize("wire", SAID)
async def test_t8_a_stream_that_ends_before_the_reply_does_ends_the_turn_and_keeps_what_came(
    wire: str, tmp_path: Path
) -> None:
    torn = Stream(tuple(sse(frame) for frame in SAID[wire][:-1]))
    played = await play(tmp_path, torn, provider=lambda url: Provider("acme", "Acme", url, wire=wire))
    assert (played.state, played.shown, played.ran) == ("error", "It is", [])
    assert isinstance(played.error, ProviderError)
    assert (played.error.kind, played.error.retryable) == ("unfinished", True)
    assert len(played.server.bodies) == 1  # a reply that has begun is not asked for again
    (stored,) = (message for message in played.stored if message.role == "assistant")
    assert (stored.text, [call.state for call in stored.calls]) == ("It is", [CallState.CANCELLED])


@pytest.mark.parametrize("wire", SAID)
async def test_r6_a_stream_that_ends_before_the_first_word_is_asked_again(wire: str, tmp_path: Path) -> None:
    whole = Stream(tuple(sse(frame) for frame in SAID[wire]))
    played = await play(
        tmp_path,
        Stream((sse({"type": "ping"}),)),
        whole,
        provider=lambda url: Provider("acme", "Acme", url, wire=wire),
        max_rounds=1,
    )
    assert (played.state, played.ran) == ("completed", [("add", {"a": 1, "b": 2})])


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
        ["acme/model did not say that its reply was over: it may be cut off"] if noted else []
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
    assert len(played.server.bodies) == 7  # five rounds, the one that is skipped, and the closing request
    assert "tools" not in played.server.bodies[-1]


async def test_t7_ever_new_calls_end_at_the_limit(tmp_path: Path) -> None:
    def another(body: dict[str, Any]) -> Reply:
        if "tools" not in body:
            return ANSWER
        return calls("add", a=len(body["messages"]), b=2)

    played = await play(tmp_path, another, max_rounds=3)
    assert (played.state, played.text, len(played.ran)) == ("completed", "It is 3.", 3)


# ── models that write their calls as text ─────────────────────────────────────────────────────────

WRITTEN = 'Let me see.\n<tool_code>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_code>'


async def test_d1_a_model_without_tools_calls_them_in_its_text(tmp_path: Path) -> None:
    played = await play(tmp_path, text(*WRITTEN), ANSWER, dialect="xml_tag")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert (played.text, played.shown) == ("It is 3.", "Let me see.It is 3.")
    first, second = played.server.bodies
    assert "tools" not in first
    assert "add" in first["messages"][0]["content"]
    assert '"tool_call_result"' in second["messages"][-1]["content"]


async def test_d3_a_malformed_call_in_the_text_is_explained_and_tried_again(tmp_path: Path) -> None:
    broken = text('<tool_code>{"name": "add", "arguments": {"a": 1,}</tool_code>')
    played = await play(tmp_path, broken, text(WRITTEN), ANSWER, dialect="xml_tag")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    explained = played.server.messages(1)[-1]["content"]
    assert "<tool_code>" in explained  # how it is written
    assert played.text == "It is 3."


async def test_d3_a_call_that_names_no_tool_is_explained_too(tmp_path: Path) -> None:
    nameless = text('<tool_code>{"arguments": {"a": 1, "b": 2}}</tool_code>')
    played = await play(tmp_path, nameless, text(WRITTEN), ANSWER, dialect="xml_tag")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert "invalid_call" not in played.server.messages(1)[-1]["content"]


async def test_d2_a_written_call_after_thoughts_with_a_lone_end_tag_runs(tmp_path: Path) -> None:
    played = await play(tmp_path, text(*f"I could add.</think>{WRITTEN}"), ANSWER, dialect="xml_tag")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert played.messages[1].reasoning == "I could add."
    assert played.text == "It is 3."


async def test_d1_a_server_that_refuses_tools_is_asked_in_a_dialect_and_remembered(tmp_path: Path) -> None:
    def serve(body: dict[str, Any]) -> Reply:
        if "tools" in body:
            return Answer(400, {"error": {"message": "registry.ollama.ai/library/m does not support tools"}})
        return ANSWER if "tool_call_result" in json.dumps(body) else text(WRITTEN)

    played = await play(tmp_path, serve)
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert played.text == "It is 3."
    assert ["tools" in body for body in played.server.bodies] == [True, False, False]


async def test_d2_a_model_that_keeps_writing_calls_shows_no_markup_when_it_must_answer(
    tmp_path: Path,
) -> None:
    played = await play(tmp_path, text(WRITTEN), dialect="xml_tag", max_rounds=1)
    assert played.state == "completed"
    assert len(played.ran) == 1
    assert "tool_code" not in played.shown
