"""The HTTP client against a real server: replies that come, stall, break off, or are none."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace

import pytest
from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.messages.events import Event, MessageEnd, TextDelta
from dragoman.messages.request import Request, ToolSpec
from dragoman.wire import anthropic_messages, openai_responses
from dragoman.wire.auth.auth import KeyAuth, Outgoing
from dragoman.wire.endpoint import AZURE, ENDPOINTS, SHAPES, Endpoint
from dragoman.wire.http_client.client import Retry, Timeouts
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.scripted import collect_reply
from dragoman.wire.wire import Model, Wire
from tests.patience import PATIENCE
from tests.wire.provider import (
    HELLO,
    KEY,
    Plain,
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


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (
            anthropic_messages.WIRE(),
            [
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
                {"type": "message_stop"},
            ],
        ),
        (
            openai_responses.WIRE(),
            [
                {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
                {"type": "response.completed", "response": {"status": "completed", "output": []}},
            ],
        ),
    ],
    ids=["message_stop", "response.completed"],
)
async def test_w3_a_reply_ends_with_the_last_event_of_its_wire_as_with_done(
    wire: Wire, said: list[dict[str, JsonValue]]
) -> None:
    """A client that waits for the end of the connection would wait until it counts as stalled."""
    stream = streams(*(frame(**event) for event in said), then=waits)
    timeouts = Timeouts(between_chunks=10 * PATIENCE)
    async with provider(stream) as served, client(timeouts=timeouts) as http, asyncio.timeout(PATIENCE):
        endpoint = Endpoint(served.url, "chat", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
        asked = HttpModel(http, wire, endpoint, model="small", name="plain/small")
        message = await collect_reply(asked, question())
    assert (message.text, message.finish) == ("Hi", "stop")


async def test_a_reply_that_said_how_it_ended_is_whole_even_if_the_connection_breaks_after_it() -> None:
    async with provider(streams(HELLO, then=dies)) as served, client() as http:
        assert (await ask(model(http, served)))[-1] == [MessageEnd("stop")]


def test_importing_the_client_does_not_import_aiohttp() -> None:
    script = "import sys, dragoman.wire.http_client.client; sys.exit('aiohttp' in sys.modules)"
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
        with pytest.raises(ProviderError, match=r"did not start its reply within 0\.5 s") as raised:
            await ask(model(http, served))
    assert raised.value.kind == "timeout"
    assert len(served.requests) == 2


async def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:  # bound, but without a listener
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with client(retry=Retry(attempts=1)) as http:
            with pytest.raises(
                ProviderError, match=rf"no connection to 127\.0\.0\.1:{port}: Connection refused.*running"
            ) as raised:
                await ask(HttpModel(http, Plain(), Endpoint(f"http://127.0.0.1:{port}"), model="small"))
    assert (raised.value.kind, raised.value.retryable) == ("connection", True)


# ── characters and frames that are cut ────────────────────────────────────────────────────────────


async def test_a_character_cut_between_two_reads_is_whole() -> None:
    data = frame(say="né 🐉")
    bytewise = streams(*(data[i : i + 1] for i in range(len(data))), frame(end="stop"))
    async with provider(bytewise) as served, client() as http:
        assert await text_of(model(http, served)) == "né 🐉"


async def test_half_a_character_at_the_end_is_a_reply_that_was_cut() -> None:
    received: list[Event] = []
    cut = frame(say="é")[: -len(b'"}\n\n') - 1]
    async with provider(streams(frame(say="Hel"), cut)) as served, client() as http:
        with pytest.raises(ProviderError, match="cannot read a chunk") as raised:
            await ask(model(http, served), received)
    assert received == [TextDelta("Hel")]
    assert (raised.value.kind, raised.value.retryable) == ("garbled", True)


async def test_what_came_before_a_garbled_frame_in_the_same_read_is_kept() -> None:
    received: list[Event] = []
    async with provider(streams(frame(say="Hel") + b"data: [1, 2]\n\n")) as served, client() as http:
        with pytest.raises(ProviderError, match=r"cannot read a chunk of the stream: '\[1, 2\]'"):
            await ask(model(http, served), received)
    assert received == [TextDelta("Hel")]


async def test_betas_go_where_each_endpoint_takes_them() -> None:
    """Betas are in one header with those of the catalog, without duplicates. Cloud endpoints take them in
    the body (W2)."""
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
