"""The HTTP client against a real server on the loopback address: what providers do, and do wrong."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import JsonValue
from pydantic_core import from_json, to_json

from dragoman.errors import ConfigError, ContextOverflow, ProviderError
from dragoman.messages.events import Event, MessageEnd, TextDelta
from dragoman.messages.parts import File, Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.endpoint import AZURE, ENDPOINTS, Endpoint
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
from dragoman.wire.http import HttpClient, HttpModel, Retry, Timeouts
from dragoman.wire.provider_errors import provider_error
from dragoman.wire.wire import Model

pytestmark = pytest.mark.slow

KEY = "sk-very-secret-0123456789"
NOW = 1_700_000_000.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# ── a wire with one word, so that only the HTTP is under test ─────────────────────────────────────


class Plain:
    """Frames are `{"say": …}`, `{"end": …}` or `{"error": …}`."""

    name = "plain"
    options: frozenset[str] = frozenset()

    def carries(self, file: File) -> bool:
        return True

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        sent = [part.text for message in request.messages for part in message.parts if isinstance(part, Text)]
        return {"model": request.model, "texts": [*sent]}

    def decoder(self, reply: str) -> PlainDecoder:
        return PlainDecoder()


class PlainDecoder:
    def __init__(self) -> None:
        self.finish_word: str | None = None

    def feed(self, frame: bytes) -> Iterator[Event]:
        if frame == b"[DONE]":
            return
        sent = from_json(frame)
        if "error" in sent:
            raise provider_error(sent)
        self.finish_word = sent.get("end", self.finish_word)
        if "say" in sent:
            yield TextDelta(sent["say"])

    def end(self) -> Iterator[Event]:
        yield MessageEnd(self.finish_word or "unknown")


def frame(**sent: JsonValue) -> bytes:
    return b"data: " + to_json(sent) + b"\n\n"


HELLO = frame(say="Hel") + frame(say="lo") + frame(end="stop")

# ── a provider that plays its part ────────────────────────────────────────────────────────────────


@dataclass
class Provider:
    """Answers each request with the next handler, the last one again and again."""

    handlers: list[Handler]
    url: str = ""
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(from_json(await request.read()))
        self.asked.set()
        handler = self.handlers[min(len(self.requests), len(self.handlers)) - 1]
        try:
            return await handler(request)
        except asyncio.CancelledError:
            self.hung_up.set()
            raise


@asynccontextmanager
async def provider(*handlers: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Provider]:
    """A server that notices when a client hangs up."""
    served = Provider(list(handlers))
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", served.answer)
    server = TestServer(app, scheme="https" if tls else "http")
    await server.start_server(ssl=tls)
    served.url = str(server.make_url("/v1"))
    try:
        yield served
    finally:
        await server.close()


def streams(*pieces: bytes, then: Handler | None = None) -> Handler:
    """An event stream in these network writes; `then` may spoil its end."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0.005)  # so that each is a read of its own
        if then is not None:
            await then(request)
        return response

    return handler


def answers(
    status: int, body: JsonValue | str, headers: dict[str, str] | None = None, media_type: str | None = None
) -> Handler:
    """A plain response."""

    async def handler(request: web.Request) -> web.StreamResponse:
        text = body if isinstance(body, str) else to_json(body).decode()
        media = media_type or ("text/plain" if isinstance(body, str) else "application/json")
        return web.Response(status=status, text=text, headers=headers, content_type=media)

    return handler


async def dies(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def waits(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


# ── asking it ─────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Sleeps:
    """Stands in for sleeping: notes how long, and takes no time."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(round(seconds, 3))


def client(sleeps: Callable[[float], Awaitable[object]] | None = None, **options: Any) -> HttpClient:
    options.setdefault("random", lambda: 1.0)
    return HttpClient(sleep=sleeps or Sleeps(), clock=lambda: NOW, **options)


def model(http: HttpClient, served: Provider, **changes: Any) -> HttpModel:
    endpoint = Endpoint(served.url, "chat", key=KEY, key_name="PLAIN_API_KEY")
    return HttpModel(http, Plain(), replace(endpoint, **changes), model="small", name="plain/small")


def question(text: str = "Hello?") -> Request:
    return Request("plain/small", (RequestMessage("user", (Text(text),)),))


async def ask(http_model: HttpModel, received: list[Event] | None = None) -> list[list[Event]]:
    batches = []
    async for events in http_model.stream(question(), "msg_1"):
        batches.append(events)
        if received is not None:
            received.extend(events)
    return batches


async def text_of(http_model: HttpModel) -> str:
    return "".join(
        event.text for events in await ask(http_model) for event in events if isinstance(event, TextDelta)
    )


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
def test_w2_each_wire_has_its_address_and_its_way_to_carry_a_key(
    endpoint: Endpoint, url: str, headers: dict[str, str]
) -> None:
    endpoint = replace(endpoint, base_url="https://example.org/v1/", key=KEY)
    assert endpoint.url("m") == f"https://example.org/v1{url}"
    assert endpoint.all_headers() == headers


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


# ── what providers refuse ─────────────────────────────────────────────────────────────────────────


@dataclass
class Refused:
    """What a provider answers, and what a person should read of it."""

    status: int
    body: JsonValue | str
    kind: str
    says: str
    retryable: bool = False


REFUSED = {
    "OpenAI, wrong key": Refused(
        401,
        {"error": {"message": "Incorrect API key provided.", "type": "x", "code": "invalid_api_key"}},
        "auth",
        "Incorrect API key provided. (HTTP 401). Check PLAIN_API_KEY",
    ),
    "Google, wrong key": Refused(
        400,
        {
            "error": {
                "code": 400,
                "message": "API key not valid. Please pass a valid API key.",
                "status": "INVALID_ARGUMENT",
                "details": [{"reason": "API_KEY_INVALID"}],
            }
        },
        "auth",
        "Check PLAIN_API_KEY",
    ),
    "Google, not allowed": Refused(
        403,
        {"error": {"code": 403, "message": "Denied.", "status": "PERMISSION_DENIED"}},
        "permission",
        "check its rights",
    ),
    "OpenAI, unknown model": Refused(
        404,
        {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}},
        "unknown_model",
        "Check the model's name",
    ),
    "Ollama, unknown model": Refused(
        404, {"error": "model 'm' not found"}, "unknown_model", "model 'm' not found"
    ),
    "OpenAI, no credit": Refused(
        429,
        {"error": {"message": "You exceeded your current quota.", "type": "insufficient_quota"}},
        "quota",
        "plan and billing",
    ),
    "Anthropic, no credit": Refused(
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to use it.",
            },
        },
        "quota",
        "credit balance is too low",
    ),
    "Anthropic, too fast": Refused(
        429,
        {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}},
        "rate_limit",
        "Slow down. (HTTP 429)",
        retryable=True,
    ),
    "Anthropic, overloaded": Refused(
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "overloaded",
        "Overloaded (HTTP 529)",
        retryable=True,
    ),
    "OpenAI, filtered": Refused(
        400,
        {"error": {"message": "The response was filtered", "code": "content_filter"}},
        "filter",
        "content filter",
    ),
    "FastAPI, wrong field": Refused(
        422,
        {"detail": [{"loc": ["body", "top_p"], "msg": "Input should be less than 1"}]},
        "invalid_request",
        "Input should be less than 1 (HTTP 422)",
    ),
    "OpenRouter, the provider behind it": Refused(
        502,
        {
            "error": {
                "message": "Provider returned error",
                "code": 502,
                "metadata": {"raw": '{"error": {"message": "upstream is gone"}}'},
            }
        },
        "server",
        "upstream is gone",
        retryable=True,
    ),
    "a gateway's page": Refused(
        502,
        "<html><head><style>b{}</style><title>502</title></head><body><h1>Bad Gateway</h1></body></html>",
        "server",
        "502 Bad Gateway (HTTP 502)",
        retryable=True,
    ),
    "plain text": Refused(500, "out of order", "server", "out of order (HTTP 500)", retryable=True),
    "nothing": Refused(500, "", "server", "did not say why (HTTP 500)", retryable=True),
    "time-out": Refused(504, "upstream timed out", "timeout", "took too long", retryable=True),
    "conflict": Refused(409, "locked", "server", "locked (HTTP 409)", retryable=True),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
async def test_t8_an_error_says_what_the_provider_said_and_what_may_help(refused: Refused) -> None:
    async with (
        provider(answers(refused.status, refused.body)) as served,
        client(retry=Retry(attempts=1)) as http,
    ):
        with pytest.raises(ProviderError) as raised:
            await ask(model(http, served))
    error = raised.value
    assert (error.kind, error.status, error.retryable) == (refused.kind, refused.status, refused.retryable)
    assert refused.says in str(error)


OVERFLOWS = {
    "OpenAI": "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens.",
    "OpenAI Responses": "Your input exceeds the context window of this model. Please adjust your input.",
    "Anthropic": "prompt is too long: 208310 tokens > 200000 maximum",
    "Anthropic, with its answer": "input length and `max_tokens` exceed context limit: 19 + 2 > 20",
    "Google": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "llama.cpp": "the request exceeds the available context size. try increasing it",
    "xAI": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Bedrock": "Input is too long for requested model.",
}


@pytest.mark.parametrize("message", OVERFLOWS.values(), ids=OVERFLOWS.keys())
async def test_r7_a_request_that_is_too_long_is_an_overflow_whoever_says_so(message: str) -> None:
    async with provider(answers(400, {"error": {"message": message}})) as served, client() as http:
        with pytest.raises(ContextOverflow, match="Shorten or compact"):
            await ask(model(http, served))
    assert len(served.requests) == 1


async def test_a_missing_key_is_asked_for_by_its_name() -> None:
    async with provider(answers(401, "who are you?")) as served, client() as http:
        with pytest.raises(ProviderError, match="Set PLAIN_API_KEY to your API key"):
            await ask(model(http, served, key=None))


async def test_a_key_is_not_carried_after_a_redirect() -> None:
    moved = answers(308, "", {"Location": "https://other.example/v1/chat"})
    async with provider(moved) as served, client() as http:
        with pytest.raises(ProviderError, match=r"sends requests on to https://other\.example/v1/chat"):
            await ask(model(http, served))


# ── R6: asking again ──────────────────────────────────────────────────────────────────────────────


async def test_r6_a_failed_request_is_asked_again_with_growing_pauses() -> None:
    sleeps = Sleeps()
    busy = answers(503, "busy")
    async with provider(busy, busy, busy, streams(HELLO)) as served, client(sleeps) as http:
        assert await text_of(model(http, served)) == "Hello"
    assert sleeps.seconds == [0.5, 1.0, 2.0]


async def test_r6_chance_takes_up_to_half_of_a_pause() -> None:
    sleeps = Sleeps()
    async with (
        provider(answers(503, "busy"), streams(HELLO)) as served,
        client(sleeps, random=lambda: 0.0) as http,
    ):
        await ask(model(http, served))
    assert sleeps.seconds == [0.25]


async def test_r6_the_last_error_is_raised_when_all_attempts_failed() -> None:
    sleeps = Sleeps()
    async with provider(answers(503, "busy")) as served, client(sleeps, retry=Retry(attempts=3)) as http:
        with pytest.raises(ProviderError, match="busy"):
            await ask(model(http, served))
    assert len(served.requests) == 3
    assert len(sleeps.seconds) == 2


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 418, 422])
async def test_r6_what_the_caller_did_wrong_is_not_asked_again(status: int) -> None:
    async with (
        provider(answers(status, "overloaded, rate_limit_error, try again")) as served,
        client() as http,
    ):
        with pytest.raises(ProviderError):
            await ask(model(http, served))
    assert len(served.requests) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_r6_what_may_heal_is_asked_again(status: int) -> None:
    async with provider(answers(status, "not now"), streams(HELLO)) as served, client() as http:
        assert await text_of(model(http, served)) == "Hello"


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, "", 7.0),
        ({"Retry-After": "1.5"}, "", 1.5),
        ({"Retry-After": formatdate(NOW + 9, usegmt=True)}, "", 9.0),
        ({"Retry-After": formatdate(NOW - 9, usegmt=True)}, "", 0.0),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({"Retry-After": "soon"}, "", None),
        ({}, {"error": {"message": "x", "details": [{"retryDelay": "12.5s"}]}}, 12.5),
    ],
    ids=["seconds", "fraction", "date", "date gone by", "milliseconds", "nonsense", "Google's body"],
)
async def test_r6_the_provider_says_when_to_come_back(
    headers: dict[str, str], body: JsonValue, seconds: float | None
) -> None:
    sleeps = Sleeps()
    async with (
        provider(answers(429, body, headers), streams(HELLO)) as served,
        client(sleeps, random=lambda: 0.0) as http,
    ):
        await ask(model(http, served))
    assert sleeps.seconds == [0.25 if seconds is None else seconds]


async def test_r6_a_pause_that_is_too_long_is_left_to_the_caller() -> None:
    async with provider(answers(429, "", {"Retry-After": "3600"})) as served, client() as http:
        with pytest.raises(ProviderError) as raised:
            await ask(model(http, served))
    assert len(served.requests) == 1
    assert raised.value.retryable
    assert raised.value.retry_after == 3600


async def test_r6_an_error_inside_the_stream_is_asked_again_only_if_nothing_was_said_before() -> None:
    overloaded = frame(error={"type": "overloaded_error", "message": "Overloaded"})
    async with provider(streams(overloaded), streams(HELLO)) as served, client() as http:
        assert await text_of(model(http, served)) == "Hello"
    received: list[Event] = []
    async with provider(streams(frame(say="Hel") + overloaded), streams(HELLO)) as served, client() as http:
        with pytest.raises(ProviderError, match="Overloaded"):
            await ask(model(http, served), received)
    assert received == [TextDelta("Hel")]
    assert len(served.requests) == 1


async def test_r6_a_connection_that_dies_before_the_first_delta_is_tried_again() -> None:
    async with provider(dies, streams(HELLO)) as served, client() as http:
        assert await text_of(model(http, served)) == "Hello"


async def test_r6_a_reply_that_breaks_off_is_not_asked_again_and_what_came_is_kept() -> None:
    received: list[Event] = []
    async with provider(streams(frame(say="Hel"), then=dies)) as served, client() as http:
        with pytest.raises(ProviderError, match="broke in the middle") as raised:
            await ask(model(http, served), received)
    assert received == [TextDelta("Hel")]
    assert (raised.value.kind, raised.value.retryable) == ("connection", True)
    assert len(served.requests) == 1


async def test_r6_waiting_to_ask_again_can_be_cancelled() -> None:
    waiting = asyncio.Event()

    async def for_ever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with provider(answers(503, "busy")) as served, client(for_ever) as http:
        task = asyncio.create_task(ask(model(http, served)))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


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
        async with asyncio.timeout(5):
            await served.hung_up.wait()


async def test_t6_cancelling_before_the_first_byte_closes_the_connection() -> None:
    async with provider(waits) as served, client() as http:
        task = asyncio.create_task(ask(model(http, served)))
        await served.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            await served.hung_up.wait()


async def test_t6_leaving_the_loop_and_closing_the_iterator_closes_the_connection() -> None:
    async with provider(streams(frame(say="Hel"), then=waits)) as served, client() as http:
        async with aclosing(model(http, served).stream(question(), "msg_1")) as stream:
            assert await anext(stream) == [TextDelta("Hel")]
        async with asyncio.timeout(5):
            await served.hung_up.wait()


# ── time ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_reply_that_stalls_is_a_timeout_and_what_came_is_kept() -> None:
    received: list[Event] = []
    stream = streams(frame(say="Hel"), then=waits)
    async with provider(stream) as served, client(timeouts=Timeouts(between_chunks=0.05)) as http:
        with pytest.raises(ProviderError, match=r"sent nothing for 0\.05 s") as raised:
            await ask(model(http, served), received)
    assert received == [TextDelta("Hel")]
    assert (raised.value.kind, raised.value.retryable) == ("timeout", True)


async def test_a_slow_reader_is_not_taken_for_a_stalled_provider() -> None:
    stream = streams(frame(say="Hel"), frame(say="lo"), frame(end="stop"))
    async with provider(stream) as served, client(timeouts=Timeouts(between_chunks=0.25)) as http:
        sent: list[list[Event]] = []
        async for events in model(http, served).stream(question(), "msg_1"):
            await asyncio.sleep(0 if sent else 0.3)
            sent.append(events)
    assert sent[-1][-1] == MessageEnd("stop")


async def test_a_provider_that_never_begins_is_a_timeout() -> None:
    timeouts = Timeouts(first_byte=0.2)
    async with provider(waits) as served, client(timeouts=timeouts, retry=Retry(attempts=2)) as http:
        with pytest.raises(ProviderError, match=r"did not begin to reply within 0\.2 s") as raised:
            await ask(model(http, served))
    assert raised.value.kind == "timeout"
    assert len(served.requests) == 2


async def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with client(retry=Retry(attempts=1)) as http:
            with pytest.raises(
                ProviderError, match=rf"no connection to 127\.0\.0\.1:{port}.*running"
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
        ({"choices": [{"message": {"content": "Hi"}}]}, "application/json", "a whole JSON body .*choices"),
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


@pytest.mark.parametrize("wrapped", [False, True], ids=["object", "Google's list"])
async def test_an_error_that_comes_with_a_status_of_success_is_an_error(wrapped: bool) -> None:
    error: dict[str, JsonValue] = {"error": {"message": "no credit", "code": "insufficient_quota"}}
    async with provider(answers(200, [error] if wrapped else error)) as served, client() as http:
        with pytest.raises(ProviderError, match="no credit") as raised:
            await ask(model(http, served))
    assert raised.value.kind == "quota"


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


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "handler",
    [
        answers(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        answers(500, f"header was {KEY}"),
        answers(200, f"<html>{KEY}</html>", media_type="text/html"),
        answers(302, "", {"Location": f"https://example.org/?key={KEY}"}),
        streams(frame(say="Hi"), frame(error=f"bad key {KEY}")),
        streams(frame(say="Hi"), f"data: {KEY}\n\n".encode()),
        dies,
    ],
    ids=["refused", "plain", "page", "redirect", "in the stream", "garbled", "no answer"],
)
async def test_a_key_is_never_printed(handler: Handler) -> None:
    async with provider(handler) as served, client(retry=Retry(attempts=2)) as http:
        asked = model(http, served, headers={"X-Secret": f"also {KEY}"})
        with pytest.raises(ProviderError) as raised:
            await ask(asked)
        printed = [
            str(raised.value),
            repr(raised.value),
            "".join(traceback.format_exception(raised.value)),
            repr(raised.value.__cause__),
            repr(raised.value.__context__),
            repr(asked),
            repr(asked._endpoint),
            repr(http),
        ]
    assert not [text for text in printed if KEY in text]


def test_a_key_with_a_line_break_is_refused_by_name_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="MY_KEY holds characters") as raised:
        Endpoint(key=f"{KEY}\n", key_name="MY_KEY")
    assert KEY not in str(raised.value)


# ── proxies and certificates ──────────────────────────────────────────────────────────────────────


async def test_a_proxy_is_used_when_it_is_given() -> None:
    async with provider(streams(HELLO)) as proxy, client(proxy=proxy.url.removesuffix("/v1")) as http:
        asked = HttpModel(http, Plain(), Endpoint("http://provider.invalid/v1", "chat"), model="small")
        assert await text_of(asked) == "Hello"
    assert proxy.requests[0].headers["Host"] == "provider.invalid"


async def test_the_environments_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with provider(streams(HELLO)) as proxy, client() as http:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        asked = HttpModel(http, Plain(), Endpoint("http://provider.invalid/v1", "chat"), model="small")
        assert await text_of(asked) == "Hello"


def test_the_environments_proxy_is_passed_by_where_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", "direct.invalid")
    assert client()._proxy_for("https://provider.invalid/v1") == "http://proxy.invalid:3128"
    assert client()._proxy_for("https://direct.invalid/v1") is None
    assert client(use_environment=False)._proxy_for("https://provider.invalid/v1") is None


async def test_a_model_on_this_machine_is_never_asked_through_the_environments_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with provider(streams(HELLO)) as served, client() as http:
        assert await text_of(model(http, served)) == "Hello"


async def test_a_proxy_of_a_kind_we_cannot_use_is_refused_without_its_password() -> None:
    async with client(proxy="socks5://me:secret@127.0.0.1:1080") as http:
        with pytest.raises(ConfigError, match=r"the proxy for provider\.invalid is not") as raised:
            await ask(HttpModel(http, Plain(), Endpoint("http://provider.invalid"), model="small"))
    assert "secret" not in str(raised.value)


@pytest.fixture
def own_certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for this machine that nobody else trusts, and its key."""
    certificate, key = tmp_path / "own.pem", tmp_path / "own.key"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=own"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return certificate, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
async def test_a_certificate_of_ones_own_is_trusted_when_it_is_named(
    own_certificate: tuple[Path, Path],
) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*own_certificate)
    async with provider(streams(HELLO), tls=tls) as served:
        async with client(ca=own_certificate[0]) as http:
            assert await text_of(model(http, served)) == "Hello"
        async with client() as http:
            with pytest.raises(ProviderError, match="name its file as `ca`") as raised:
                await ask(model(http, served))
    assert not raised.value.retryable


async def test_certificates_that_are_not_there_are_named() -> None:
    async with provider(streams(HELLO)) as served, client(ca="/nowhere/ca.pem") as http:
        with pytest.raises(ConfigError, match=r"/nowhere/ca\.pem"):
            await ask(model(http, served))
