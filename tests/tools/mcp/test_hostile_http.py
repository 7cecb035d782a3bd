"""Servers at an address that answer with nonsense, too much, or elsewhere: said in words, and soon (C7)."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY as SUBSCRIPTION

from dragoman.messages.message import CallState
from dragoman.tools.mcp.http import AT_ONCE, LISTEN_AGAIN, MOST_OF_A_MESSAGE
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import BETWEEN_LISTS
from tests.patience import eventually
from tests.tools.mcp.rig import call, source

ECHO = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "x", "version": "1"},
}
CHANGED = b'data: {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n\n'
JSON = "application/json"

ODD: dict[str, dict[str, Any]] = {
    "no JSON": {"body": b'{"jsonrpc": "2.0", oops', "content_type": JSON},
    "nothing": {"body": b'{"jsonrpc": "2.0", "id": 1, "result": null}', "content_type": JSON},
    "a page": {"body": b"<html>", "content_type": "text/html"},
    "an event": {"body": b"data: {oops\n\n", "content_type": "text/event-stream"},
    "too often": {"status": 429, "body": b"slow down", "headers": {"retry-after": "3600"}},
    "no key": {"status": 401},
    "packed": {
        "body": gzip.compress(b" " * 10_000),
        "content_type": JSON,
        "headers": {"content-encoding": "gzip"},
    },
}
SAID = {
    "no JSON": "it sent invalid MCP data: Invalid JSON: key must be a string at line 1 column 20",
    "nothing": "it sent invalid MCP data: an answer that is neither a result nor an error",
    "a page": "it sent invalid MCP data: an answer of the type text/html",
    "an event": "it sent invalid MCP data: Invalid JSON: key must be a string at line 1 column 2",
    "too often": "it answered with HTTP 429",
    "no key": "it refused the key, or requires a login (HTTP 401)",
    "packed": "it sent a compressed answer, which Dragoman did not ask for",
}


class Hostile:
    """Greets well, and answers one method in an odd way, once."""

    def __init__(self, method: str = "", **odd: Any) -> None:
        self.method, self.odd = method, odd
        self.heard: list[tuple[str, float]] = []  # received requests, with their times
        self.headers: list[dict[str, str]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        asked = await request.json() if request.method == "POST" else {"method": request.method}
        self.heard.append((asked["method"], asyncio.get_running_loop().time()))
        if asked["method"] == self.method:
            self.method = ""
            return web.Response(**self.odd)
        if asked["method"] == "GET":
            return web.Response(body=b"retry: 0\n" + CHANGED, content_type="text/event-stream")
        if "id" not in asked:
            return web.Response(status=202)
        content = [{"type": "text", "text": "hi"}]
        result = {"initialize": HELLO, "tools/list": {"tools": [ECHO]}, "tools/call": {"content": content}}
        if asked["method"] not in result:
            error = {"code": -32601, "message": "no such method"}
            return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        return web.json_response(
            {"jsonrpc": "2.0", "id": asked["id"], "result": result[asked["method"]]},
            headers={"mcp-session-id": "s1"},
        )

    def times(self, method: str) -> list[float]:
        return [when for heard, when in self.heard if heard == method]

    @asynccontextmanager
    async def served(self) -> AsyncIterator[McpServer]:
        app = web.Application()
        app.router.add_route("*", "/mcp", self.answer)
        async with TestServer(app) as server:
            self.url = str(server.make_url("/mcp"))
            yield McpServer(url=self.url, headers={"x-key": "s3cret"})


@pytest.mark.parametrize("how", ODD)
async def test_an_odd_answer_to_a_call_is_told_in_words_and_the_next_one_is_fine(how: str) -> None:
    hostile = Hostile("tools/call", **ODD[how])
    async with hostile.served() as settings, source(settings) as server:
        odd, well = await call(server, "echo", text="x"), await call(server, "echo", text="x")
        assert (odd.state, odd.result.text) == (CallState.FAILED, f"it: {SAID[how]}")
        assert (well.state, well.result.text) == (CallState.COMPLETED, "hi")
        assert server.state == "running"


@pytest.mark.parametrize("how", ["no JSON", "a page", "too often", "no key", "packed"])
async def test_an_odd_list_is_told_in_words(how: str) -> None:
    async with (
        Hostile("tools/list", **ODD[how]).served() as settings,
        source(settings, ready=False) as server,
    ):
        await server.ready()
        assert server.error.startswith(SAID[how])
        assert server.state == ("login" if how == "no key" else "failed")


async def test_an_answer_without_measure_is_not_read_to_its_end() -> None:
    async with (
        Hostile("tools/call", body=b" " * (MOST_OF_A_MESSAGE + 1), content_type=JSON).served() as settings,
        source(settings) as server,
    ):
        outcome = await call(server, "echo", text="x")
        assert outcome.result.text == "it: it sent an answer of more than 32 MB"


async def test_nothing_compressed_is_asked_for() -> None:
    """A few bytes could stand for more than the memory holds."""
    hostile = Hostile()
    async with hostile.served() as settings, source(settings):
        assert {headers["accept-encoding"] for headers in hostile.headers} == {"identity"}


async def test_a_key_does_not_follow_a_redirect_to_another_host() -> None:
    other = Hostile()
    async with other.served():
        hostile = Hostile("tools/call", status=307, headers={"location": other.url})
        async with hostile.served() as settings, source(settings) as server:
            outcome = await call(server, "echo", text="x")
            assert outcome.state is CallState.FAILED
            assert f"Redirect to {other.url} not followed" in outcome.result.text
    assert other.heard == []


async def test_changes_and_streams_without_end_are_followed_at_our_own_pace() -> None:
    """Each stream of notices reports a changed list, ends, and demands to be opened again immediately."""
    hostile = Hostile()
    async with hostile.served() as settings, source(settings) as server:
        while len(hostile.times("GET")) <= AT_ONCE + 1 or len(hostile.times("tools/list")) < 3:
            assert (await call(server, "echo", text="x")).state is CallState.COMPLETED
            await asyncio.sleep(0.05)
    streams, lists = hostile.times("GET"), hostile.times("tools/list")
    assert streams[AT_ONCE + 1] - streams[0] > 1.9 * LISTEN_AGAIN
    assert lists[2] - lists[1] > 0.9 * BETWEEN_LISTS


Break = Literal["before", "in a body", "in a stream"]


class Breaking(Hostile):
    """Breaks off its answer to one call, and waits with the other."""

    def __init__(self, how: Break) -> None:
        super().__init__()
        self.how, self.go_on = how, asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json() if request.method == "POST" else {}
        match asked.get("params", {}).get("arguments"):
            case {"text": "waits"}:
                await self.go_on.wait()
            case {"text": "breaks"}:
                type = "text/event-stream" if self.how == "in a stream" else JSON
                response = web.StreamResponse(headers={"content-type": type, "content-length": "500"})
                if self.how != "before":
                    await response.prepare(request)
                    await response.write(b"data: ")
                assert request.transport is not None
                request.transport.abort()
                return response
        return await super().answer(request)


@pytest.mark.parametrize("how", ["before", "in a body", "in a stream"])
async def test_an_answer_that_breaks_off_ends_no_other_call(how: Break) -> None:
    """Others have their calls at the same server: they know nothing of this one."""
    hostile = Breaking(how)
    async with hostile.served() as settings, source(settings) as server:
        other = asyncio.create_task(call(server, "echo", text="waits"))
        broken = await call(server, "echo", text="breaks")
        assert broken.state is CallState.FAILED
        assert broken.result.text.startswith("it: it broke off its answer: ")
        assert broken.result.text.endswith(". Whether the call took effect is not known.")
        hostile.go_on.set()
        assert (await other).result.text == "hi"


class Aborting(Hostile):
    """Breaks the connection at one method."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at = at

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json() if request.method == "POST" else {}
        if asked.get("method") == self.at:
            assert request.transport is not None
            request.transport.abort()
        return await super().answer(request)


@pytest.mark.parametrize(
    ("at", "state"), [("notifications/initialized", "running"), ("initialize", "failed")]
)
async def test_a_message_without_an_answer_may_break_off_and_a_greeting_may_not(at: str, state: str) -> None:
    async with Aborting(at).served() as settings, source(settings, ready=False) as server:
        await server.ready()
        assert server.state == state
        assert server.error.startswith("nothing answers there: " if state == "failed" else "")
        if state == "running":
            assert (await call(server, "echo", text="x")).result.text == "hi"


class Forgetful(Hostile):
    """Forgets its session when so many calls have come in it, and says so to one after the other."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls, self.forgotten = calls, asyncio.Event()
        self.listens, self.gone = True, asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json() if request.method == "POST" else {}
        if request.method == "DELETE" and not self.listens:
            await self.gone.wait()
        if asked.get("method") == "tools/call" and self.calls:
            self.calls = left = self.calls - 1
            if not left:
                self.forgotten.set()
            await self.forgotten.wait()
            await asyncio.sleep(0.1 * left)  # as networks do
            return web.Response(status=404)
        return await super().answer(request)


async def test_calls_that_meet_a_forgotten_session_together_are_all_made_again() -> None:
    """The server saw none of them."""
    async with Forgetful(3).served() as settings, source(settings) as server:
        made = await asyncio.gather(*(call(server, "echo", text=str(n)) for n in range(3)))
        assert [one.result.text for one in made] == ["hi"] * 3


async def test_a_server_that_does_not_listen_to_a_good_bye_is_greeted_again_all_the_same() -> None:
    forgetful = Forgetful(1)
    forgetful.listens = False
    async with forgetful.served() as settings, source(settings) as server:
        async with asyncio.timeout(settings.timeout / 2):
            assert (await call(server, "echo", text="x")).result.text == "hi"
        forgetful.gone.set()


async def test_an_error_of_the_server_is_its_own_whatever_its_number() -> None:
    """Many servers use the number that the SDK uses for a closed connection."""
    error = b'{"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "it is locked"}}'
    hostile = Hostile("tools/call", body=error, status=400, content_type=JSON)
    async with hostile.served() as settings, source(settings) as server:
        told = await call(server, "echo", text="x")
        assert (told.state, told.result.text) == (CallState.FAILED, "it says: it is locked")


class Older(Hostile):
    """Answers in one stream, and refuses one of the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()
        self.refused = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await stream.prepare(request)
            await stream.write(b"event: endpoint\ndata: /mcp\n\n")
            while True:
                await stream.write(b"event: message\ndata: " + await self.answers.get() + b"\n\n")
        asked = await request.json()
        if asked["method"] == "tools/call" and not self.refused.is_set():
            self.refused.set()
            return web.Response(status=500)
        answered = await super().answer(request)
        if isinstance(answered, web.Response) and isinstance(answered.body, bytes):
            self.answers.put_nowait(answered.body)
        return web.Response(status=202)


async def test_a_server_to_which_nothing_can_be_sent_any_more_is_greeted_again() -> None:
    """The SDK sends nothing after a refused message, and continues to listen."""
    older = Older()
    async with older.served() as settings, source(replace(settings, transport="sse")) as server:
        refused = asyncio.create_task(call(server, "echo", text="x"))
        await older.refused.wait()
        refused.cancel()
        assert "went away" in (await call(server, "echo", text="x")).result.text
        older.answers = asyncio.Queue()
        assert (await call(server, "echo", text="x")).result.text == "hi"


class Newest(Hostile):
    """Speaks the newest protocol, and breaks off what it would report changes in."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        self.heard.append((asked["method"], asyncio.get_running_loop().time()))
        if asked["method"] == "subscriptions/listen":
            assert request.transport is not None
            request.transport.abort()
        cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        result = {**HELLO, **cached, "supportedVersions": ["2026-07-28"], "tools": [ECHO]}
        return web.json_response({"jsonrpc": "2.0", "id": asked.get("id"), "result": result})


async def test_changes_are_followed_on_where_their_reports_break_off() -> None:
    newest = Newest()
    async with newest.served() as settings, source(settings):
        await eventually(lambda: len(newest.times("tools/list")) == 2)  # the change was not reported


class Slow(Newest):
    """A server that agrees to report changes only after its list was read."""

    def __init__(self) -> None:
        super().__init__()
        self.listed, self.gone = asyncio.Event(), asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        if asked["method"] != "subscriptions/listen":
            if asked["method"] == "tools/list":
                self.listed.set()
            return await super().answer(request)
        await self.listed.wait()
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        agreed = {"_meta": {SUBSCRIPTION: asked["id"]}, "notifications": {"toolsListChanged": True}}
        said = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": agreed}
        await stream.write(f"data: {json.dumps(said)}\n\n".encode())
        await self.gone.wait()
        return stream


async def test_what_changed_before_changes_are_reported_is_seen() -> None:
    slow = Slow()
    async with slow.served() as settings:
        try:
            async with source(settings):
                await eventually(lambda: len(slow.times("tools/list")) == 2)
        finally:
            slow.gone.set()


class Idle(Slow):
    """A server that claims to report changes, and agrees to none after its list was read."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        if asked["method"] != "subscriptions/listen":
            return await super().answer(request)
        await self.listed.wait()
        self.gone.set()
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": {"resultType": "complete"}})


async def test_the_list_of_a_server_that_agrees_to_report_nothing_is_read_once() -> None:
    idle = Idle()
    async with idle.served() as settings, source(settings) as server:
        await idle.gone.wait()
        for _ in range(3):
            await call(server, "echo", text="x")
        assert len(idle.times("tools/list")) == 1
