"""Replies have limits in bytes, lines, time and calls. Dragoman disconnects from a sender above them (T8)."""

from __future__ import annotations

import gzip
import resource
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman import ProviderError, Runtime, ScriptedModel
from dragoman.messages.message import CallState
from dragoman.turn.steps.stream import MOST_CALLS
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.http_client.client import HttpClient, Timeouts
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.openai_chat import WIRE
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of

pytestmark = pytest.mark.slow

PIECE = b'data: {"choices": [{"index": 0, "delta": {"content": "word "}}]}\n\n'


@asynccontextmanager
async def endless(
    piece: bytes, headers: dict[str, str] | None = None, pause: Callable[[], object] | None = None
) -> AsyncIterator[tuple[str, list[int]]]:
    """Run a provider that sends the same chunk forever, and count the sent bytes."""
    sent = [0]

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream", **(headers or {})})
        await response.prepare(request)
        try:
            while sent[0] < 2_000_000_000:
                await response.write(piece)
                sent[0] += len(piece)
        except ConnectionError:
            pass
        return response

    app = web.Application()
    app.router.add_post("/{path:.*}", handler)
    server = TestServer(app)
    await server.start_server()
    try:
        yield str(server.make_url("/v1")), sent
    finally:
        await server.close()


async def ask(folder: Path, url: str, timeouts: Timeouts | None = None) -> ProviderError:
    """One turn, which fails."""
    async with HttpClient(timeouts=timeouts, use_environment=False) as client:
        model = HttpModel(client, WIRE(), Endpoint(url, "chat/completions"), model="m")
        async with Runtime(folder / "chat.db", model=model) as runtime:
            turn = await runtime.send("go")
            with pytest.raises(ProviderError) as failed:
                await turn.result()
            assert not (await runtime.store.turn(turn.id)).live
    return failed.value


def peak() -> int:
    """The most memory this process ever had, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


@pytest.mark.parametrize(
    ("make", "headers"),
    [
        (lambda: b"data: " + b"x" * 1_000_000, {}),  # a line without an end
        (lambda: b": " + b"x" * 1_000_000 + b"\n", {}),  # comments alone
        (lambda: gzip.compress(b"data: " + b"x" * 50_000_000), {"content-encoding": "gzip"}),  # sent unasked
    ],
    ids=["a line", "comments", "compressed"],
)
async def test_an_endless_reply_is_broken_off_with_flat_memory(
    tmp_path: Path, make: Callable[[], bytes], headers: dict[str, str]
) -> None:
    """T8"""
    piece = make()
    before = peak()
    async with endless(piece, headers) as (url, _):
        error = await ask(tmp_path, url)
    assert error.kind in ("too_large", "connection", "stream", "provider"), error.kind
    assert peak() - before < 600_000_000


def _delta(delta: str) -> bytes:
    return f'data: {{"choices": [{{"index": 0, "delta": {{{delta}}}}}]}}\n\n'.encode()


LONG = "x" * 100_000
CALL = f'{{"index": 0, "id": "c", "function": {{"name": "f", "arguments": "{LONG}"}}}}'


@pytest.mark.parametrize(
    "delta",
    [f'"content": "{LONG}"', f'"reasoning_content": "{LONG}"', f'"tool_calls": [{CALL}]'],
    ids=["text", "reasoning", "arguments"],
)
async def test_memory_does_not_grow_with_an_endless_text(tmp_path: Path, delta: str) -> None:
    """T8: a gigabyte took 679 MB. The error names the limit, and what to set."""
    before = peak()
    async with endless(_delta(delta)) as (url, sent):
        error = await ask(tmp_path, url)
    assert error.kind == "too_large"
    assert "8,000,000 characters" in str(error)
    assert "max_tokens" in str(error)
    assert sent[0] < 40_000_000
    assert peak() - before < 200_000_000


async def test_how_much_text_is_read_can_be_set(tmp_path: Path) -> None:
    """T8"""
    async with endless(PIECE) as (url, _), HttpClient(use_environment=False, longest_text=1000) as client:
        model = HttpModel(client, WIRE(), Endpoint(url, "chat/completions"), model="m")
        async with Runtime(tmp_path / "chat.db", model=model) as runtime:
            turn = await runtime.send("go")
            with pytest.raises(ProviderError, match="1,000 characters"):
                await turn.result()
            (_, reply) = (await turn.snapshot()).messages[-2:]
            assert reply.text.startswith("word word")  # the received text is stored
            assert len(reply.text) <= 1000


async def test_a_reply_in_one_piece_has_the_same_limit(tmp_path: Path) -> None:
    """T8"""

    async def handler(request: web.Request) -> web.Response:
        text = "x" * 9_000_000
        return web.json_response({"choices": [{"index": 0, "message": {"content": text}}]})

    app = web.Application()
    app.router.add_post("/{path:.*}", handler)
    server = TestServer(app)
    await server.start_server()
    try:
        error = await ask(tmp_path, str(server.make_url("/v1")))
    finally:
        await server.close()
    assert (error.kind, "8,000,000 characters" in str(error)) == ("too_large", True)


async def test_a_reply_that_goes_on_and_on_ends_some_time(tmp_path: Path) -> None:
    """T8: however busy the line is."""
    async with endless(PIECE) as (url, _):
        error = await ask(tmp_path, url, Timeouts(whole_reply=0.3))
    assert (error.kind, error.retryable) == ("timeout", False)


async def test_a_reply_with_too_many_calls_is_an_error_and_none_of_them_runs(tmp_path: Path) -> None:
    """Each call has a result anyway (T8, C2)."""
    many = calls("nosuch")
    for _ in range(3 * MOST_CALLS // 2):
        many = many + calls("nosuch", a=1)
    async with Runtime(tmp_path / "chat.db", model=ScriptedModel([many, says("x")])) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(ProviderError, match=f"more than {MOST_CALLS} calls"):
            await turn.result()
        made = calls_of((await turn.snapshot()).messages)
    assert len(made) == MOST_CALLS
    assert {call.state for call in made} == {CallState.CANCELLED}
