"""A server's settings in, what proves who we are out: a login we have, or one that a person makes now."""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from dragoman.tools.mcp.errors import LoginNeeded
from dragoman.tools.mcp.references import Find, find, resolved
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.tokens import Tokens

PATH = "/callback"
HOST = "127.0.0.1"

Show: TypeAlias = Callable[[str], Awaitable[None]]
"""Brings an address before the person: opens the browser, prints it."""


def known_login(server: McpServer, tokens: Tokens | None = None) -> OAuthClientProvider | None:
    """For a turn, which never waits for a login: LoginNeeded where there is none, or where it is over."""
    if server.auth is None or server.url is None:
        return None
    tokens = tokens or Tokens(server.url)
    if tokens.login().tokens is None:
        raise LoginNeeded

    async def refuse(_: str) -> None:
        raise LoginNeeded

    async def nothing() -> AuthorizationCodeResult:
        raise LoginNeeded

    return _provider(server, tokens, _redirect(tokens) or f"http://{HOST}{PATH}", refuse, nothing)


@asynccontextmanager
async def new_login(
    server: McpServer, show: Show, tokens: Tokens, find: Find = find
) -> AsyncIterator[OAuthClientProvider]:
    """With a person at hand: listens on the loopback address for the browser to come back with a code."""
    assert server.url is not None
    door = _Door()
    port = urlsplit(_redirect(tokens) or "").port or 0
    try:
        listener = await asyncio.start_server(door.open, HOST, port)
    except OSError:  # somebody else sits there: register anew, with another one
        tokens.keep(client=None)
        listener = await asyncio.start_server(door.open, HOST, 0)
    async with listener:
        redirect = f"http://{HOST}:{listener.sockets[0].getsockname()[1]}{PATH}"
        if server.client_id is not None:
            secret = resolved({"secret": server.client_secret or ""}, find)["secret"] or None
            method = "client_secret_basic" if secret else "none"
            tokens.keep(
                client=OAuthClientInformationFull(
                    client_id=server.client_id,
                    client_secret=secret,
                    redirect_uris=[AnyUrl(redirect)],
                    token_endpoint_auth_method=method,
                )
            )
        provider = _provider(server, tokens, redirect, show, door.answer)
        yield provider
        context = provider.context
        if context.oauth_metadata is not None:
            tokens.keep(issuer=context.oauth_metadata, resource=context.protected_resource_metadata)


def _provider(
    server: McpServer,
    tokens: Tokens,
    redirect: str,
    show: Show,
    answer: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    assert server.url is not None
    metadata = OAuthClientMetadata(client_name="Dragoman", redirect_uris=[AnyUrl(redirect)])
    provider = OAuthClientProvider(
        server.url, metadata, tokens, show, answer, client_metadata_url=server.client_metadata_url
    )
    login = tokens.login()  # else a token would be made new where the server is, not where it is issued
    provider.context.oauth_metadata = login.issuer
    provider.context.protected_resource_metadata = login.resource
    return provider


def _redirect(tokens: Tokens) -> str | None:
    client = tokens.login().client
    return str(client.redirect_uris[0]) if client is not None and client.redirect_uris else None


def _future() -> asyncio.Future[AuthorizationCodeResult]:
    return asyncio.get_running_loop().create_future()


class _Door:
    """Where the browser comes back to: one request with a code, one page that says it may be closed."""

    def __init__(self) -> None:
        self._came = _future()  # from the beginning: who is logged in already comes back at once

    async def answer(self) -> AuthorizationCodeResult:
        try:
            return await self._came
        finally:
            self._came = _future()

    async def open(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                line = (await reader.readline()).decode("latin-1").split(" ")
                while (await reader.readline()).strip():
                    pass
            status, text = self._take(line[1] if len(line) > 1 else "")
            page = f"<!doctype html><title>Dragoman</title><p>{html.escape(text)}</p>".encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
            writer.write(f"{head}Content-Length: {len(page)}\r\nConnection: close\r\n\r\n".encode() + page)
            await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass  # somebody knocked and said nothing that makes sense
        finally:
            writer.close()

    def _take(self, target: str) -> tuple[str, str]:
        came, parts = self._came, urlsplit(target)
        said = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != PATH or came.done():
            return "404 Not Found", "There is nothing here."
        if "code" not in said:
            why = said.get("error_description") or said.get("error") or "there was no code"
            came.set_exception(LoginNeeded(why))
            return "400 Bad Request", f"The login did not work: {why}"
        came.set_result(
            AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))
        )
        return "200 OK", "You are logged in. This page can be closed."
