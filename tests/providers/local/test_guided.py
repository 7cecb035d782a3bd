"""A model that has to be guided, over real HTTP against a server that plays one (D1, C4, T6)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from dragoman.errors import BadRequest, ProviderError
from dragoman.messages.events import CallInputEnd, Event, MessageEnd, Notice, StepRetry, TextDelta
from dragoman.messages.parts import CallState, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.providers.local.completion import PATH, Completions
from dragoman.providers.local.guided import GuidedModel
from dragoman.tools.builtin import basics_group, files_group
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.http import HttpClient, HttpModel, Retry
from dragoman.wire.openai_chat import OpenAIChat
from tests.loopback import Answer, Body, Reply, Stream, delta, loopback, sse, stream
from tests.patience import PATIENCE

TOOLS = tuple(tool.spec() for group in (basics_group(), files_group()) for tool in group.tools)


def guided(url: str, client: HttpClient) -> GuidedModel:
    words: dict[str, int] = {}

    async def tokens(text: str) -> list[int]:
        """Words of more than nine letters, and those that begin like `grep`, are two."""
        many = len(text) > 10 or text == " grep"
        return [words.setdefault(text, len(words)), *([0] if many else [])]

    def at(endpoint: Any, wire: Any) -> HttpModel:
        return HttpModel(client, wire, replace(endpoint, base_url=url), model="tiny", name="local/tiny")

    return GuidedModel(at(ENDPOINTS["openai_chat"], OpenAIChat()), at(PATH, Completions()), tokens)


def piece(text: str, finish: str | None = None) -> Any:
    return {"object": "text_completion", "choices": [{"index": 0, "text": text, "finish_reason": finish}]}


def completes(*pieces: str, finish: str = "stop") -> Stream:
    frames = [*map(piece, pieces), piece("", finish)]
    return Stream((*(sse(frame) for frame in frames), b"data: [DONE]\n\n"))


def asked(*sent: str | RequestMessage, tools: tuple[ToolSpec, ...] = TOOLS, **changes: Any) -> Request:
    messages = tuple(RequestMessage("user", (Text(one),)) if isinstance(one, str) else one for one in sent)
    return Request("local/tiny", messages, tools=tools, **changes)


async def replied(request: Request, *script: Any) -> tuple[list[Event], list[Body]]:
    async with loopback(*script) as server, HttpClient(retry=Retry(first_wait=0.001)) as client:
        batches = [batch async for batch in guided(server.url, client).stream(request, "msg_1")]
    return [event for batch in batches for event in batch], server.bodies


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def call_of(events: list[Event]) -> CallInputEnd:
    (call,) = [event for event in events if isinstance(event, CallInputEnd)]
    return call


async def test_d1_first_the_tool_then_its_arguments() -> None:
    script = (completes(" read"), completes(' {"path": ', '"a.txt"}'))
    events, (choice, arguments) = await replied(asked("Read a.txt"), *script)
    assert call_of(events) == CallInputEnd("call_1_0", "read_file", {"path": "a.txt"})
    assert isinstance(events[-1], MessageEnd)
    assert events[-1].finish == "tool_calls"
    assert choice["max_tokens"] == 1
    assert len(choice["logit_bias"]) == len(TOOLS) + 1  # a token for each, and one for none
    assert choice["prompt"].endswith("Request: Read a.txt\nAction:")
    assert r'"\"a.txt\""' in arguments["grammar"]


async def test_no_tool_is_a_chat_without_a_word_of_tools() -> None:
    sent = RequestMessage("assistant", (Text("Hi."), ToolCall("c", "calculator", {"expression": "1"})))
    request = asked("Hello", sent, "How are you?", system="x" * 5000)
    events, (_, chat) = await replied(request, completes(" chat"), stream(delta(content="Fine.")))
    assert text_of(events) == "Fine."
    assert "tools" not in chat
    assert [message["content"] for message in chat["messages"][1:]] == ["Hello", "Hi.", "How are you?"]
    assert len(chat["messages"][0]["content"]) < 200  # a prompt it cannot follow is not sent


async def test_without_tools_it_is_asked_once() -> None:
    events, bodies = await replied(asked("Hello", tools=()), stream(delta(content="Hi!")))
    assert text_of(events) == "Hi!"
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("choice", "requests"),
    [("none", ["messages"]), ("read_file", ["prompt"]), ("required", ["prompt", "prompt"])],
)
async def test_r1_a_tool_choice_is_kept_to(choice: str, requests: list[str]) -> None:
    def answer(body: Body) -> Reply:
        if "messages" in body:
            return stream(delta(content="Hi."))
        return completes(" read" if "logit_bias" in body else ' {"path": "a.txt"}')

    _, bodies = await replied(asked("a.txt", tool_choice=choice), answer)
    assert [next(key for key in ("messages", "prompt") if key in body) for body in bodies] == requests
    if choice == "required":
        assert len(bodies[0]["logit_bias"]) == len(TOOLS)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (CallState.COMPLETED, "391"),
        (CallState.FAILED, "calculator brought no result (failed): 391"),
        (CallState.REJECTED, "calculator brought no result (rejected): 391"),
    ],
)
async def test_what_a_tool_found_is_the_answer_as_it_stands(state: CallState, text: str) -> None:
    """C2: and nobody is asked for it."""
    call = ToolCall("c", "calculator", {"expression": "17 * 23"}, state=state, result=ToolResult("391"))
    events, bodies = await replied(
        asked("What is 17 * 23?", RequestMessage("assistant", (call,))), completes()
    )
    assert text_of(events) == text
    assert bodies == []


async def test_a_long_result_is_cut_in_the_answer() -> None:
    call = ToolCall("c", "read_file", state=CallState.COMPLETED, result=ToolResult("x" * 9000))
    events, _ = await replied(asked("Read", RequestMessage("assistant", (call,))), completes())
    assert text_of(events).endswith("[… 5000 more characters are in the result …]")


async def test_c4_arguments_that_do_not_end_are_no_arguments() -> None:
    script = (completes(" read"), completes(' {"path": "a', finish="length"))
    events, _ = await replied(asked("Read a.txt"), *script)
    assert call_of(events) == CallInputEnd("call_1_0", "read_file", None, '{"path": "a')


async def test_a_tool_without_examples_or_parameters_can_be_called() -> None:
    ping = ToolSpec("ping", "Say whether the house is there.", {"type": "object", "properties": {}})
    events, bodies = await replied(asked("ping the house", tools=(ping,)), completes(" ping"))
    assert call_of(events).arguments == {}
    assert "Request: Say whether the house is there\nAction: ping" in bodies[0]["prompt"]


async def test_many_tools_have_a_token_each_and_a_short_prompt() -> None:
    many = tuple(ToolSpec(f"look_{n}", "Look at it.", {"type": "object"}) for n in range(60))
    events, (choice,) = await replied(asked("look", tools=many), completes(" 7"))
    assert len({token for token, _ in choice["logit_bias"]}) == 61
    assert call_of(events).tool.startswith("look_")


async def test_t8_an_error_of_the_server_is_told() -> None:
    with pytest.raises(ProviderError, match="out of memory"):
        await replied(asked("Read a.txt"), Answer(400, {"error": {"message": "out of memory"}}))


async def test_t6_who_is_cancelled_hangs_up() -> None:
    stalled = Stream((sse(piece(" re")), *[sse(piece("")) for _ in range(500)]), "stalls", pause=0.01)
    there = asyncio.Event()

    def answer(body: Body) -> Reply:
        there.set()
        return stalled

    async with loopback(answer) as server, HttpClient() as client:
        asking = guided(server.url, client).stream(asked("Read a.txt"), "msg_1")
        task = asyncio.ensure_future(anext(asking))
        await there.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE):
            await server.hung_up.wait()


async def test_an_answer_that_only_our_own_limit_ended_is_whole() -> None:
    """It would be asked to go on, for ever."""
    script = (completes(" chat"), stream(delta(content="and"), finish="length"))
    events, _ = await replied(asked("Tell me"), *script)
    assert isinstance(events[-1], MessageEnd)
    assert events[-1].finish == "stop"
    assert [event.kind for event in events if isinstance(event, Notice)] == ["cut"]  # and it is told
    events, _ = await replied(asked("Tell me", options={"max_tokens": 5}), *script)
    assert isinstance(events[-1], MessageEnd)
    assert events[-1].finish == "length"


async def test_r6_a_server_that_is_still_loading_is_waited_for_and_each_wait_is_seen() -> None:
    """R6: while the tool is chosen, and while its arguments are written."""
    loading = Answer(503, {"error": {"message": "Loading model"}})
    script = (loading, completes(" read"), loading, completes(' {"path": "a.txt"}'))
    events, _ = await replied(asked("Read a.txt"), *script)
    waits = [event for event in events if isinstance(event, StepRetry)]
    assert [(one.attempt, one.reason) for one in waits] == [(2, "Loading model"), (2, "Loading model")]
    assert call_of(events).arguments == {"path": "a.txt"}


def test_r9_a_guided_model_takes_the_options_of_the_model_behind_it() -> None:
    model = guided("http://127.0.0.1:9/v1", HttpClient())
    model.check_options({"temperature": 0.5, "mirostat": 2})
    with pytest.raises(BadRequest, match="the option temperature"):
        model.check_options({"temperature": "hot"})
