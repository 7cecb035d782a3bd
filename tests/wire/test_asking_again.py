"""R6 defines which requests Dragoman retries, when, and how often."""

from __future__ import annotations

import asyncio
from email.utils import formatdate

import pytest
from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.messages.events import Event, TextDelta
from dragoman.wire.http_client.client import Retry
from tests.wire.provider import (
    HELLO,
    NOW,
    Sleeps,
    answers,
    ask,
    client,
    dies,
    frame,
    model,
    provider,
    streams,
    text_of,
)

pytestmark = pytest.mark.slow


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
        with pytest.raises(ProviderError, match="the middle of the reply: it closed before") as raised:
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
