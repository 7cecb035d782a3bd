"""The HTTP client against a real server: replies that come, stall, break off, or are none."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue
from pydantic_core import to_json

from dragoman.errors import ProviderError
from dragoman.messages.events import Event, MessageEnd, TextDelta
from dragoman.messages.parts import Text
from dragoman.messages.request import Request, ToolSpec
from dragoman.messages.usage import Usage
from dragoman.wire import anthropic_messages, gemini, openai_chat, openai_responses
from dragoman.wire.auth.auth import Outgoing
from dragoman.wire.auth.key import KeyAuth
from dragoman.wire.collect import collect_reply
from dragoman.wire.endpoint import AZURE, ENDPOINTS, SHAPES, Endpoint
from dragoman.wire.http import Retry, Timeouts
from dragoman.wire.http_model import HttpModel
from dragoman.wire.wire import Model, Wire
from tests.patience import PATIENCE
from tests.wire.provider import (
    HELLO,
    KEY,
    Plain,
    answers,
    ask,
    client,
    dies,
    frame,
    model,
    provider,
    question,
    streams,
    text_of,
    waits,
)

pytestmark = pytest.mark.slow

# ── what goes well ────────────────────────────────────────────────────────────────────────────────


async def test_w1_events_come_as_they_arrive_and_the_last_is_the_end() -> None:
    async with (
        provider(streams(frame(say="Hel"), frame(say="lo"), frame(end="stop"))) as served,
        client() as http,
    ):
        batches = await ask(model(http, served))
    assert batches == [[TextDelta("Hel")], [TextDelta("lo")], [MessageEnd("stop")]]


async def test_it_is_a_model() -> None:
    async with provider(streams(HELLO)) as served, client() as http:
        asked: Model = model(http, served)
        assert (asked.name, asked.context) == ("plain/small", None)


async def test_the_request_carries_the_body_the_key_and_the_providers_name_of_the_model() -> None:
    async with provider(streams(HELLO)) as served, client() as http:
        await ask(model(http, served, headers={"X-Team": "red"}, query={"v": "1 2"}))
    request = served.requests[0]
    assert served.bodies == [{"model": "small", "texts": ["Hello?"]}]
    assert request.path_qs == "/v1/chat?v=1+2"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["X-Team"] == "red"
    assert request.headers["Accept"] == "text/event-stream"


@pytest.mark.parametrize(
    ("endpoint", "url", "headers"),
    [
        (ENDPOINTS["openai_chat"], "/chat/completions", {"Authorization": f"Bearer {KEY}"}),
        (ENDPOINTS["openai_responses"], "/responses", {"Authorization": f"Bearer {KEY}"}),
        (
            ENDPOINTS["anthropic_messages"],
            "/messages",
            {"x-api-key": KEY, "anthropic-version": "2023-06-01"},
        ),
        (ENDPOINTS["gemini"], "/models/m:streamGenerateContent?alt=sse", {"x-goog-api-key": KEY}),
        (AZURE, "/openai/deployments/m/chat/completions?api-version=2024-10-21", {"api-key": KEY}),
    ],
)
async def test_w2_each_wire_has_its_address_and_its_way_to_carry_a_key(
    endpoint: Endpoint, url: str, headers: dict[str, str]
) -> None:
    assert isinstance(endpoint.auth, KeyAuth)
    auth = replace(endpoint.auth, key=KEY)
    endpoint = replace(endpoint, base_url="https://example.org/v1/", auth=auth)
    assert endpoint.url("m") == f"https://example.org/v1{url}"
    assert {**await auth.headers(Outgoing(endpoint.url("m")), client()), **endpoint.headers} == headers


async def test_one_connection_serves_one_question_after_another() -> None:
    async with provider(streams(HELLO)) as served, client() as http:
        asked = model(http, served)
        assert [await text_of(asked), await text_of(asked)] == ["Hello", "Hello"]
    ports = {
        request.transport and request.transport.get_extra_info("peername") for request in served.requests
    }
    assert len(ports) == 1


async def test_a_client_that_was_closed_opens_again_when_it_is_used() -> None:
    async with provider(streams(HELLO)) as served:
        http = client()
        assert await text_of(model(http, served)) == "Hello"
        await http.close()
        assert await text_of(model(http, served)) == "Hello"
        await http.close()


async def test_a_large_body_is_sent_whole() -> None:
    text = "x" * 3_000_000
    async with provider(streams(HELLO)) as served, client() as http:
        async for _ in model(http, served).stream(question(text), "msg_1"):
            pass
    assert served.bodies[0]["texts"] == [text]


async def test_half_a_surrogate_pair_in_the_history_does_not_stop_a_request() -> None:
    async with provider(streams(HELLO)) as served, client() as http:
        async for _ in model(http, served).stream(question("cut \ud83d emoji"), "msg_1"):
            pass
    assert served.bodies[0]["texts"] == ["cut \N{REPLACEMENT CHARACTER} emoji"]


async def test_w3_a_reply_ends_with_done_even_if_the_server_leaves_the_connection_open() -> None:
    stream = streams(HELLO, b"data: [DONE]\n\n", then=waits)
    async with provider(stream) as served, client(timeouts=Timeouts(after_done=0.02)) as http:
        assert (await ask(model(http, served)))[-1] == [MessageEnd("stop")]


async def test_a_reply_that_said_how_it_ended_is_whole_even_if_the_connection_breaks_after_it() -> None:
    async with provider(streams(HELLO, then=dies)) as served, client() as http:
        assert (await ask(model(http, served)))[-1] == [MessageEnd("stop")]


def test_importing_the_client_does_not_import_aiohttp() -> None:
    script = "import sys, dragoman.wire.http; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# ── T6: hanging up ────────────────────────────────────────────────────────────────────────────────


async def test_t6_cancelling_the_task_closes_the_connection() -> None:
    async with provider(streams(frame(say="Hel"), then=waits)) as served, client() as http:
        received = asyncio.Event()

        async def listen() -> None:
            async for _ in model(http, served).stream(question(), "msg_1"):
                received.set()

        task = asyncio.create_task(listen())
        await received.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE):
            await served.hung_up.wait()


async def test_t6_cancelling_before_the_first_byte_closes_the_connection() -> None:
    async with provider(waits) as served, client() as http:
        task = asyncio.create_task(ask(model(http, served)))
        await served.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE):
            await served.hung_up.wait()


async def test_t6_leaving_the_loop_and_closing_the_iterator_closes_the_connection() -> None:
    async with provider(streams(frame(say="Hel"), then=waits)) as served, client() as http:
        async with aclosing(model(http, served).stream(question(), "msg_1")) as stream:
            assert await anext(stream) == [TextDelta("Hel")]
        async with asyncio.timeout(PATIENCE):
            await served.hung_up.wait()


# ── time ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_reply_that_stalls_is_a_timeout_and_what_came_is_kept() -> None:
    received: list[Event] = []
    stream = streams(frame(say="Hel"), then=waits)
    async with provider(stream) as served, client(timeouts=Timeouts(between_chunks=0.5)) as http:
        with pytest.raises(ProviderError, match=r"sent nothing for 0\.5 s") as raised:
            await ask(model(http, served), received)
    assert received == [TextDelta("Hel")]
    assert (raised.value.kind, raised.value.retryable) == ("timeout", True)


async def test_a_slow_reader_is_not_taken_for_a_stalled_provider() -> None:
    stream = streams(frame(say="Hel"), frame(say="lo"), frame(end="stop"))
    async with provider(stream) as served, client(timeouts=Timeouts(between_chunks=1.0)) as http:
        sent: list[list[Event]] = []
        async for events in model(http, served).stream(question(), "msg_1"):
            await asyncio.sleep(0 if sent else 1.2)
            sent.append(events)
    assert sent[-1][-1] == MessageEnd("stop")


async def test_a_provider_that_never_begins_is_a_timeout() -> None:
    timeouts = Timeouts(first_byte=0.5)
    async with provider(waits) as served, client(timeouts=timeouts, retry=Retry(attempts=2)) as http:
        with pytest.raises(ProviderError, match=r"did not begin to reply within 0\.5 s") as raised:
            await ask(model(http, served))
    assert raised.value.kind == "timeout"
    assert len(served.requests) == 2


async def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with client(retry=Retry(attempts=1)) as http:
            with pytest.raises(
                ProviderError, match=rf"no connection to 127\.0\.0\.1:{port}: Connection refused.*running"
            ) as raised:
                await ask(HttpModel(http, Plain(), Endpoint(f"http://127.0.0.1:{port}"), model="small"))
    assert (raised.value.kind, raised.value.retryable) == ("connection", True)


# ── what is no stream ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "media_type", "says"),
    [
        (
            "<!doctype html><title>Sign in</title>",
            "text/html",
            "a web page came instead of a stream: '<!doctype",
        ),
        ({"answer": {"content": "Hi"}}, "application/json", "a whole JSON body .*answer"),
        ({"error": None, "output": []}, "text/event-stream", "a whole JSON body .*output"),
        ("all is well", "text/event-stream", "held no event, only 'all is well'"),
        ("", "text/event-stream", "the reply was empty"),
    ],
    ids=["HTML", "JSON", "JSON under a false name", "text", "nothing"],
)
async def test_a_body_that_is_no_stream_is_shown(body: JsonValue | str, media_type: str, says: str) -> None:
    handler = answers(200, body, media_type=media_type)
    async with provider(handler) as served, client(retry=Retry(attempts=1)) as http:
        with pytest.raises(ProviderError, match=says) as raised:
            await ask(model(http, served))
    assert raised.value.kind == "no_stream"


@pytest.mark.parametrize(
    "made",
    [
        {"reasoning": "hm", "tool_calls": [{"id": "c", "function": {"name": "clock", "arguments": "{}"}}]},
        {"reasoning": "hm", "function_call": {"name": "clock", "arguments": "{}"}},
    ],
    ids=["calls", "the one call of old"],
)
async def test_a_reply_that_comes_whole_is_a_reply(made: dict[str, JsonValue]) -> None:
    """W1: some servers do not stream, whatever they are asked."""
    body: JsonValue = {
        "object": "chat.completion",
        "choices": [
            {"index": 1, "message": {"content": "not this"}},
            {
                "index": 0,
                "message": {"content": "Hi", "reasoning": "hm", **made},
                "finish_reason": "tool_calls",
            },
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    async with provider(answers(200, body, media_type="application/json")) as served, client() as http:
        endpoint = Endpoint(served.url, "chat", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
        chat = HttpModel(http, openai_chat.WIRE(), endpoint, model="small", name="plain/small")
        message = await collect_reply(chat, question())
    assert (message.text, message.reasoning, message.finish) == ("Hi", "hm", "tool_calls")
    assert [call.tool for call in message.calls] == ["clock"]
    assert message.usage == Usage(input=3, output=2)


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "with an error"])
async def test_a_response_that_comes_whole_is_a_reply(broken: bool) -> None:
    """W1: and one that failed is its error."""
    said: JsonValue = [{"type": "output_text", "text": "Hi"}]
    body: JsonValue = {
        "object": "response",
        "status": "failed" if broken else "completed",
        "output": [{"type": "message", "content": said, "phase": "final_answer"}],
        "error": {"code": "server_error", "message": "It broke."} if broken else None,
    }
    async with (
        provider(answers(200, body, media_type="application/json")) as served,
        client(retry=Retry(attempts=1)) as http,
    ):
        endpoint = Endpoint(served.url, "responses", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
        asked = HttpModel(http, openai_responses.WIRE(), endpoint, model="small", name="plain/small")
        if broken:
            with pytest.raises(ProviderError, match="It broke"):
                await collect_reply(asked, question())
        else:
            assert (await collect_reply(asked, question())).parts == (Text("Hi", phase="final_answer"),)


@pytest.mark.parametrize("wrapped", [False, True], ids=["object", "Google's list"])
async def test_an_error_that_comes_with_a_status_of_success_is_an_error(wrapped: bool) -> None:
    error: dict[str, JsonValue] = {"error": {"message": "no credit", "code": "insufficient_quota"}}
    async with provider(answers(200, [error] if wrapped else error)) as served, client() as http:
        with pytest.raises(ProviderError, match="no credit") as raised:
            await ask(model(http, served))
    assert raised.value.kind == "quota"


CLAUDE: JsonValue = {
    "type": "message",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "a", "name": "clock", "input": {"zone": "UTC"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
_PARTS: JsonValue = [{"text": "Hi"}, {"functionCall": {"name": "clock", "args": {"zone": "UTC"}}}]
_LAST: dict[str, JsonValue] = {
    "candidates": [{"content": {"parts": _PARTS}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
}
_THOUGHT: dict[str, JsonValue] = {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}]}


@pytest.mark.parametrize("waiting", [b"", b"\n", b"\n\n \r\n"], ids=["at once", "a blank", "more blanks"])
@pytest.mark.parametrize(
    ("wire", "body"),
    [(anthropic_messages.WIRE(), CLAUDE), (gemini.WIRE(), [_THOUGHT, _LAST])],
    ids=["anthropic", "gemini, a list of chunks"],
)
async def test_a_reply_of_any_wire_may_come_whole_and_after_empty_lines(
    wire: Wire, body: JsonValue, waiting: bytes
) -> None:
    """W1: some servers do not stream, and send empty lines while one waits."""
    pieces = [*([waiting] if waiting else ()), to_json(body)[:20], to_json(body)[20:]]
    async with provider(streams(*pieces)) as served, client() as http:
        endpoint = Endpoint(served.url, "chat", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
        asked = HttpModel(http, wire, endpoint, model="small", name="plain/small")
        message = await collect_reply(asked, question())
    assert (message.text, message.reasoning, message.finish) == ("Hi", "hm", "tool_calls")
    assert [(call.tool, call.arguments) for call in message.calls] == [("clock", {"zone": "UTC"})]
    assert message.usage == Usage(input=3, output=2)


REPORTS: list[dict[str, JsonValue]] = [
    {"detail": "no credit"},
    {"code": 1001, "msg": "no credit"},
    {"base_resp": {"status_code": 1004, "status_msg": "no credit"}},
    {"type": "error", "message": "no credit"},
]


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("wire", [anthropic_messages, gemini, openai_responses, openai_chat])
def test_t8_an_error_of_a_gateway_is_told_on_every_wire(wire: Any, report: JsonValue) -> None:
    """It has the shape of the gateway's own, whatever is spoken behind it."""
    for told in (report, {"error": report}, {"error": "no credit"}):
        with pytest.raises(ProviderError, match=r"^no credit"):
            [*wire.WIRE().decoder("msg_r").feed(to_json(told))]


@pytest.mark.parametrize("report", REPORTS)
async def test_t8_an_error_that_comes_with_a_status_of_success_is_one(report: JsonValue) -> None:
    """As the whole body, and in a stream that began well: what had come is kept, and is no answer."""
    began = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: ' + to_json(report) + b"\n\n"
    for handler in (answers(200, report), streams(began)):
        async with provider(handler) as served, client() as http:
            endpoint = Endpoint(served.url, "chat", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
            chat = HttpModel(http, openai_chat.WIRE(), endpoint, model="small", name="plain/small")
            with pytest.raises(ProviderError, match=r"^no credit"):
                await ask(chat)


async def test_a_character_cut_between_two_reads_is_whole() -> None:
    data = frame(say="né 🐉")
    bytewise = streams(*(data[i : i + 1] for i in range(len(data))), frame(end="stop"))
    async with provider(bytewise) as served, client() as http:
        assert await text_of(model(http, served)) == "né 🐉"


async def test_half_a_character_at_the_end_is_a_reply_that_was_cut() -> None:
    received: list[Event] = []
    cut = frame(say="é")[: -len(b'"}\n\n') - 1]
    async with provider(streams(frame(say="Hel"), cut)) as served, client() as http:
        with pytest.raises(ProviderError, match="could not be read") as raised:
            await ask(model(http, served), received)
    assert received == [TextDelta("Hel")]
    assert (raised.value.kind, raised.value.retryable) == ("garbled", True)


async def test_what_came_before_a_garbled_frame_in_the_same_read_is_kept() -> None:
    received: list[Event] = []
    async with provider(streams(frame(say="Hel") + b"data: [1, 2]\n\n")) as served, client() as http:
        with pytest.raises(ProviderError, match=r"could not be read: '\[1, 2\]'"):
            await ask(model(http, served), received)
    assert received == [TextDelta("Hel")]


async def test_betas_go_where_each_endpoint_takes_them() -> None:
    """W2: in a header beside those of the catalog, each once; at the clouds they stay in the body."""
    asked: dict[str, JsonValue] = {"model": "m", "anthropic_beta": ["a-1", "b-2"]}
    named = replace(ENDPOINTS["anthropic_messages"], headers={"anthropic-beta": "c-3, a-1"})
    body = {**asked}
    assert named.with_headers_of(body).headers == {"anthropic-beta": "c-3,a-1,b-2"}
    assert body == {"model": "m"}
    for shape in (
        SHAPES["bedrock_invoke", "anthropic_messages"],
        SHAPES["vertex_claude", "anthropic_messages"],
    ):
        body = {**asked}
        assert shape.with_headers_of(body) is shape
        assert body == asked
    plain = ENDPOINTS["anthropic_messages"]
    assert plain.with_headers_of({"model": "m"}) is plain


async def test_a_request_with_betas_carries_them_in_its_header() -> None:
    thinks: dict[str, JsonValue] = {"reasoning_effort": "high"}
    tool = ToolSpec("ping", "Ping.", {"type": "object", "properties": {}})
    asking = Request("claude-sonnet-4-5", question("Hello?").messages, tools=(tool,), options=thinks)
    async with provider(streams(HELLO)) as served, client() as http:
        endpoint = replace(ENDPOINTS["anthropic_messages"], base_url=served.url)
        asked = HttpModel(http, anthropic_messages.WIRE(), endpoint, model="m")
        with pytest.raises(ProviderError):  # the reply is in another protocol
            async for _ in asked.stream(asking, "msg_1"):
                pass
    assert served.requests[0].headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    assert "anthropic_beta" not in served.bodies[0]
