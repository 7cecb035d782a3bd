"""OAuth logins at MCP servers: one that is stored, or one that a person makes now in the browser."""

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
from dragoman.tools.mcp.references import Find, look_up, resolve_references
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.tokens import TokenStore

PATH = "/callback"
HOST = "127.0.0.1"

Show: TypeAlias = Callable[[str], Awaitable[None]]
"""Brings an address before the person: opens the browser, prints it."""
Answer: TypeAlias = Callable[[], Awaitable[AuthorizationCodeResult]]
"""Waits for what the browser comes back with."""


def stored_login(server: McpServer, tokens: TokenStore | None = None) -> OAuthClientProvider | None:
    """For a turn, which never waits for a login: LoginNeeded where there is none, or where it is over."""
    if server.auth is None or server.url is None:
        return None
    tokens = tokens or TokenStore(server.url)
    if tokens.login().tokens is None:
        raise LoginNeeded

    async def refuse(_: str) -> None:
        raise LoginNeeded

    async def nothing() -> AuthorizationCodeResult:
        raise LoginNeeded

    return _provider(server, tokens, _redirect(tokens) or f"http://{HOST}{PATH}", refuse, nothing)


@asynccontextmanager
async def new_login(
    server: McpServer, show: Show, tokens: TokenStore, find: Find = look_up
) -> AsyncIterator[OAuthClientProvider]:
    """With a person at hand: listens on the loopback address for the browser to come back with a code."""
    assert server.url is not None
    callback = _Callback()
    known = _redirect(tokens)
    try:
        listener = await asyncio.start_server(callback.handle, HOST, _port_here(known))
    except OSError:  # somebody else sits there
        listener = await asyncio.start_server(callback.handle, HOST, 0)
    async with listener:
        redirect = f"http://{HOST}:{listener.sockets[0].getsockname()[1]}{PATH}"
        if known not in (None, redirect):  # who is registered with one address may not come back to another
            tokens.save(client=None)

        async def show_expected(url: str) -> None:
            callback.expect(url)
            await show(url)

        provider = login_at(redirect, server, tokens, show=show_expected, answer=callback.answer, find=find)
        yield provider
        save_issuer(provider, tokens)


def login_at(
    redirect: str,
    server: McpServer,
    tokens: TokenStore,
    *,
    show: Show,
    answer: Answer,
    find: Find = look_up,
) -> OAuthClientProvider:
    """One that a person makes now, whoever listens at `redirect` for the browser to come back."""
    if server.client_id is not None:
        secret = resolve_references({"secret": server.client_secret or ""}, find)["secret"] or None
        method = "client_secret_basic" if secret else "none"
        tokens.save(
            client=OAuthClientInformationFull(
                client_id=server.client_id,
                client_secret=secret,
                redirect_uris=[AnyUrl(redirect)],
                token_endpoint_auth_method=method,
            )
        )
    return _provider(server, tokens, redirect, show, answer)


def save_issuer(provider: OAuthClientProvider, tokens: TokenStore) -> None:
    """Where a token is made new, as the login found out."""
    context = provider.context
    if context.oauth_metadata is not None:
        tokens.save(issuer=context.oauth_metadata, resource=context.protected_resource_metadata)


def _provider(
    server: McpServer,
    tokens: TokenStore,
    redirect: str,
    show: Show,
    answer: Answer,
) -> OAuthClientProvider:
    assert server.url is not None
    metadata = OAuthClientMetadata(
        client_name="Dragoman",
        redirect_uris=[AnyUrl(redirect)],
        application_type="web" if redirect.startswith("https:") else "native",
    )
    provider = OAuthClientProvider(
        server.url, metadata, tokens, show, answer, client_metadata_url=server.client_metadata_url
    )
    login = tokens.login()  # else a token would be made new where the server is, not where it is issued
    provider.context.oauth_metadata = login.issuer
    provider.context.protected_resource_metadata = login.resource
    return provider


def _port_here(known: str | None) -> int:
    """That of an address to which a browser came back, if we can listen there; else any (0)."""
    parts = urlsplit(known or "")
    return (parts.port or 0) if parts.hostname == HOST else 0


def _redirect(tokens: TokenStore) -> str | None:
    client = tokens.login().client
    return str(client.redirect_uris[0]) if client is not None and client.redirect_uris else None


def _future() -> asyncio.Future[AuthorizationCodeResult]:
    return asyncio.get_running_loop().create_future()


class _Callback:
    """Where the browser comes back to: one request with a code, one page that says it may be closed."""

    def __init__(self) -> None:
        self._result = _future()  # from the beginning: who is logged in already comes back at once
        self._state: str | None = None

    def expect(self, url: str) -> None:
        """The address that the browser is sent to says what it has to bring back."""
        self._state = parse_qs(urlsplit(url).query).get("state", [None])[-1]

    async def answer(self) -> AuthorizationCodeResult:
        try:
            return await self._result
        finally:
            self._result = _future()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
            pass  # whoever that was sent no request that makes sense
        finally:
            writer.close()

    def _take(self, target: str) -> tuple[str, str]:
        result, parts = self._result, urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != PATH or result.done():
            return "404 Not Found", "There is nothing here."
        if "code" not in query:
            why = query.get("error_description") or query.get("error") or "there was no code"
            result.set_exception(LoginNeeded(why))
            return "400 Bad Request", f"The login did not work: {why}"
        if query.get("state") != self._state:
            why = "the browser came back from another login than the one that was begun"
            result.set_exception(LoginNeeded(why))
            return "400 Bad Request", f"The login did not work: {why}"
        result.set_result(
            AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))
        )
        return "200 OK", "The program goes on with the login. This page can be closed."
