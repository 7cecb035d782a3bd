"""Connect to an MCP server at a URL, over streamable HTTP or SSE, with limits on what it can send."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED

from dragoman.tools.mcp.diagnostics import Diagnostics
from dragoman.tools.mcp.errors import BROKEN_OFF
from dragoman.trace_context import trace_headers

MOST_OF_A_MESSAGE = 32 << 20  # an image of 20 MB, in base64
CONNECT = 20.0
QUIET = 300.0  # minimum seconds without a byte: a stream may be silent
LISTEN_AGAIN = 1.0  # seconds between two notification streams, whatever the server requests,
AT_ONCE = 5  # except for this many


@asynccontextmanager
async def open_http(
    url: str,
    headers: Mapping[str, str],
    *,
    sse: bool,
    auth: httpx2.Auth | None,
    patience: float,
    diagnostics: Diagnostics,
) -> AsyncIterator[TransportStreams]:
    """Open the streams of a server at a URL. Proxies come from the environment."""
    listened = -math.inf

    async def inspect(response: httpx2.Response) -> None:
        # The others only request notifications, or end the session.
        if sse or response.request.method == "POST":
            diagnostics.status = response.status_code if response.status_code >= 400 else None
            diagnostics.overflow = ""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            response.stream = _Refused(response.stream, diagnostics)
        elif not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(response.stream, diagnostics)

    async def prepare(request: httpx2.Request) -> None:
        nonlocal listened
        if request.method == "GET" and "text/event-stream" in request.headers.get("accept", ""):
            now = anyio.current_time()
            listened = max(listened, now - AT_ONCE * LISTEN_AGAIN) + LISTEN_AGAIN
            await anyio.sleep(max(0.0, listened - now))
        request.headers["accept-encoding"] = "identity"  # A few compressed bytes can exceed the memory.
        request.headers.update(trace_headers())  # The SDK sends a call in the caller's context.

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        timeout = httpx2.Timeout(CONNECT, read=max(QUIET, patience + CONNECT))
        return _Client(
            headers=headers,
            timeout=timeout,
            auth=auth,
            event_hooks={"request": [prepare], "response": [inspect]},
        )

    if sse:
        async with sse_client(url, dict(headers), auth=auth, httpx_client_factory=client) as streams:
            yield streams
    else:
        async with (
            client(dict(headers), auth=auth) as http,
            streamable_http_client(url, http_client=http, max_sse_event_size=MOST_OF_A_MESSAGE) as streams,
        ):
            yield streams


class _Client(httpx2.AsyncClient):
    """Reports a broken connection only to the call that waits for it: the SDK would end all other
    calls too."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            return await super().send(request, **options)
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            if request.method != "POST" or isinstance(error, httpx2.ConnectError):
                raise
            message = json.loads(request.content)
            if message.get("method") == "initialize":
                raise
            if "method" not in message or "id" not in message:
                return httpx2.Response(202, request=request)  # Nothing waits for it.
            broken = {"code": CONNECTION_CLOSED, "message": _broken_off(error)}
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": broken}
            return httpx2.Response(200, json=answer, request=request)


class _Bounded(httpx2.AsyncByteStream):
    """A body that raises an error if it is too large for memory or breaks off."""

    def __init__(self, stream: httpx2.AsyncByteStream, diagnostics: Diagnostics) -> None:
        self._stream = stream
        self._diagnostics = diagnostics

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._stream:
                size += len(piece)
                if size > MOST_OF_A_MESSAGE:
                    much = f"it sent an answer of more than {MOST_OF_A_MESSAGE >> 20} MB"
                    self._diagnostics.overflow = much
                    raise httpx2.StreamError(much)
                yield piece
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            raise httpx2.StreamError(_broken_off(error)) from error  # of this call only

    async def aclose(self) -> None:
        await self._stream.aclose()


def _broken_off(error: httpx2.TransportError) -> str:
    return f"{BROKEN_OFF}: {str(error).rstrip('.') or type(error).__name__}"


class _Refused(_Bounded):
    """A compressed body, which Dragoman did not request: it is not read."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        self._diagnostics.overflow = "it sent a compressed answer, which Dragoman did not ask for"
        raise httpx2.StreamError(self._diagnostics.overflow)
