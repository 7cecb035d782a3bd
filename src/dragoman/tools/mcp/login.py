"""Log in to MCP servers with OAuth, from a stored login or in the browser."""

from __future__ import annotations

import asyncio
import html
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from dragoman.background import in_thread
from dragoman.stored_keys import Secrets
from dragoman.tools.mcp.errors import LoginNeeded
from dragoman.tools.mcp.secrets import SERVICE, Find, logins_file, look_up, resolve_references
from dragoman.tools.mcp.servers import McpServer

# Store the tokens of MCP logins in the keyring, otherwise in a file that only its owner can read.


EARLY = 30  # seconds before its end from which a token counts as expired


class StoredLogin(BaseModel):
    """All that is known of one login. `expires` is a time, while a token only has a duration."""

    tokens: OAuthToken | None = None
    expires: float | None = None
    client: OAuthClientInformationFull | None = None
    issuer: OAuthMetadata | None = None  # where a token is renewed
    resource: ProtectedResourceMetadata | None = None


class TokenStore:
    """The login at one URL, as the SDK's token storage.

    A keyring may wait until the user unlocks it, so it is read in a thread while connecting.
    """

    def __init__(self, url: str, file: Path | None = None, *, use_keyring: bool = True) -> None:
        self._url = url
        self._file = file or logins_file()
        self._secrets = Secrets(SERVICE, self._file, use_keyring=use_keyring)
        self.where = ""  # for people, once something was saved

    def login(self) -> StoredLogin:
        """Return the stored login. An empty one if it is missing or unreadable."""
        try:
            return StoredLogin.model_validate_json(self._secrets.read(self._url) or "{}")
        except ValidationError:
            return StoredLogin()

    def save(self, **known: Any) -> None:
        text = self.login().model_copy(update=known).model_dump_json(exclude_none=True)
        if self._secrets.store(self._url, text) == "keyring":
            self.where = "the system's keyring"
        else:
            self.where = f"{self._file}, which only you can read, as there is no keyring"

    def forget(self) -> None:
        self._secrets.forget(self._url)

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, without an expired access token: then it is renewed before the server refuses
        it."""
        login = await in_thread(self.login)
        if login.tokens is not None and login.expires is not None and time.time() > login.expires - EARLY:
            return login.tokens.model_copy(update={"access_token": ""})
        return login.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        lasts = tokens.expires_in
        expires = time.time() + lasts if lasts is not None else None
        await in_thread(lambda: self.save(tokens=tokens, expires=expires))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return (await in_thread(self.login)).client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await in_thread(lambda: self.save(client=client_info))


class NewTokens(TokenStore):
    """A login in progress: in memory until `keep` stores all of it, so that a failed login removes nothing.

    The client registration is reused if the browser comes back to the same address.
    """

    def __init__(self, store: TokenStore, redirect: str) -> None:
        self._store = store
        client = store.login().client
        known = client is not None and redirect in map(str, client.redirect_uris or ())
        self._made = StoredLogin(client=client if known else None)

    def login(self) -> StoredLogin:
        return self._made

    def save(self, **known: Any) -> None:
        self._made = self._made.model_copy(update=known)

    def keep(self) -> None:
        self._store.save(**{name: getattr(self._made, name) for name in StoredLogin.model_fields})


PATH = "/callback"
HOST = "127.0.0.1"

Show: TypeAlias = Callable[[str], Awaitable[None]]
"""Shows an address to the user: opens the browser, or prints it."""
Answer: TypeAlias = Callable[[], Awaitable[AuthorizationCodeResult]]
"""Waits for the result that the browser returns."""


def stored_login(server: McpServer, tokens: TokenStore | None = None) -> OAuthClientProvider | None:
    """Return the login for a turn, which never waits.

    Raises LoginNeeded if none is stored or it has expired.
    """
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
    """Log in with a user present: listen on the loopback address for the browser to return with a code."""
    assert server.url is not None
    callback = _Callback()
    known = _redirect(tokens)
    try:
        listener = await asyncio.start_server(callback.handle, HOST, _port_here(known))
    except OSError:  # Another process uses the port.
        listener = await asyncio.start_server(callback.handle, HOST, 0)
    async with listener:
        redirect = f"http://{HOST}:{listener.sockets[0].getsockname()[1]}{PATH}"
        if known not in (None, redirect):  # A client registered with one address may not use another.
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
    """Return a login that a user makes now. The caller listens at `redirect` for the browser."""
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
    """Save where a token is renewed, as found during the login."""
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
    login = tokens.login()  # Otherwise a token would be renewed at the server, not at its issuer.
    provider.context.oauth_metadata = login.issuer
    provider.context.protected_resource_metadata = login.resource
    return provider


def _port_here(known: str | None) -> int:
    """Return the port of the previous redirect address if it is local. Otherwise 0 for any port."""
    parts = urlsplit(known or "")
    return (parts.port or 0) if parts.hostname == HOST else 0


def _redirect(tokens: TokenStore) -> str | None:
    client = tokens.login().client
    return str(client.redirect_uris[0]) if client is not None and client.redirect_uris else None


def _future() -> asyncio.Future[AuthorizationCodeResult]:
    return asyncio.get_running_loop().create_future()


class _Callback:
    """The address the browser returns to: one request with a code, one page that says it can be closed."""

    def __init__(self) -> None:
        # Exists from the start: a user who is already logged in returns immediately.
        self._result = _future()
        self._state: str | None = None

    def expect(self, url: str) -> None:
        """Remember the state that the browser has to return for this address."""
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
            pass  # The request was malformed.
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
        return "200 OK", "The program continues with the login. This page can be closed."
