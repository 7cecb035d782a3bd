"""Run sign-ins at MCP servers (OAuth) that an admin makes in the web UI.

The browser returns to the web UI, which passes its parameters on. So only the admin can complete a sign-in,
and only one that was started here. Tokens never leave this process.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

from dragoman.background import Background, in_thread
from dragoman.errors import BadRequest, ConfigError
from dragoman.redaction import redact_text
from dragoman.sentences import sentence
from dragoman.server.setup.setup_models import LoginState, Returned, ServerLogin
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.web_address import web_address

LIFETIME = 600.0  # seconds that the admin has to sign in
_AT_ONCE = 5.0  # seconds that a request waits for the next step
_TO_THE_END = 30.0  # seconds that the returning page waits for the outcome
_LONGEST = 500  # maximum characters of an external error text

OnDone: TypeAlias = Callable[[], Awaitable[None]]
"""Called for a server after a successful sign-in."""


class ServerLogins:
    """The latest sign-in at each server. It is kept after its end, because the web UI shows the outcome."""

    def __init__(self, lifetime: float = LIFETIME) -> None:
        self._lifetime = lifetime
        self._latest: dict[str, _Login] = {}

    async def begin(
        self, name: str, server: McpServer, redirect: str, on_done: OnDone, background: Background
    ) -> ServerLogin:
        """Start a sign-in. A running one continues, unless the browser would return to another address."""
        login = before = self._latest.get(name)
        if login is None or login.is_over or login.redirect != redirect:
            login = self._latest[name] = _Login(name, server, redirect, self._lifetime)
            login.begin(on_done, background)
            if before is not None:
                await before.call_off()
        await asyncio.wait({login.shown}, timeout=_AT_ONCE)
        return login.view()

    async def finish(self, returned: Returned) -> ServerLogin:
        """Pass the browser's parameters to the sign-in that waits for them, and return its outcome. Raises
        BadRequest if none waits."""
        for login in self._latest.values():
            if login.waits_for(returned.state):
                login.take(returned)
                await asyncio.wait({login.over}, timeout=_TO_THE_END)
                return login.view()
        raise BadRequest(sentence("login.gone"))

    async def call_off(self, name: str) -> None:
        if (login := self._latest.pop(name, None)) is not None:
            await login.call_off()

    def view(self, name: str) -> ServerLogin | None:
        login = self._latest.get(name)
        return login.view() if login is not None else None


class _Login:
    """One sign-in. `shown` is done when its address is known or never will be. `over` is done at its end."""

    def __init__(self, name: str, server: McpServer, redirect: str, lifetime: float) -> None:
        loop = asyncio.get_running_loop()
        self.redirect = redirect
        self.shown: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()
        self._name = name
        self._said = server.auth is not None  # whether the settings require a sign-in
        self._server = replace(server, auth="oauth", enabled=True, start_timeout=lifetime * 2)
        self._lifetime = lifetime
        self._until = time.time() + lifetime
        self._state: LoginState = "starting"
        self._url = ""
        self._error = ""
        self._key = b""  # the state parameter that the browser must return
        self._answer: asyncio.Future[Returned] = loop.create_future()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        return self.over.done()

    def view(self) -> ServerLogin:
        waits = self._state == "waiting"
        return ServerLogin(
            self._name,
            self._state,
            self._url if waits else None,
            urlsplit(self._url).netloc if waits else None,
            self._until if waits else None,
            self._error or None,
        )

    def begin(self, on_done: OnDone, background: Background) -> None:
        self._task = background.run(f"sign-in at {self._name}", lambda: self._run(on_done))

    async def call_off(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    def waits_for(self, key: str) -> bool:
        return self._state == "waiting" and secrets.compare_digest(key.encode("utf-8", "replace"), self._key)

    def take(self, returned: Returned) -> None:
        self._state = "finishing"
        if returned.code is None:
            refused = returned.error == "access_denied"
            why = returned.error_description or ("" if refused else returned.error or "there was no code")
            self._state = "refused" if refused else "failed"
            self._error = redact_text(why[:_LONGEST])
        self._answer.set_result(returned)

    async def _run(self, on_done: OnDone) -> None:
        try:
            async with asyncio.timeout(self._lifetime):
                await self._sign_in()
            if self._state == "done":
                await on_done()
        except TimeoutError:
            self._end("timed_out")
        except Exception as error:
            self._end("failed", str(error))
            raise
        finally:
            for future in (self.shown, self.over):
                if not future.done():
                    future.set_result(None)

    async def _sign_in(self) -> None:
        """Sign in over a separate connection, as a trial: the connection of turns never waits for it."""
        from mcp.shared.auth import AuthorizationCodeResult

        from dragoman.tools.mcp import errors, login

        async def answer() -> AuthorizationCodeResult:
            returned = await self._answer
            if returned.code is None:
                raise errors.LoginNeeded(self._error)
            return AuthorizationCodeResult(code=returned.code, state=returned.state, iss=returned.iss)

        url = self._server.url
        assert url is not None
        new = await in_thread(lambda: login.NewTokens(login.TokenStore(url), self.redirect))
        provider = login.login_at(self.redirect, self._server, new, show=self._show, answer=answer)
        patience = self._server.start_timeout
        trial = McpSource(self._name, self._server, patience=patience, authorize=lambda _: provider)
        try:
            await trial.ready()
            works = trial.state == "running"
        finally:
            await trial.close()

        def keep() -> None:
            login.save_issuer(provider, new)
            new.keep()

        if new.login().tokens is not None:
            await in_thread(keep)
            self._end("done" if works else "failed", trial.error)
        elif works:
            self._end("unneeded", sentence("login.not_needed") if self._said else "")
        else:
            self._end("failed", trial.error)

    def _end(self, state: LoginState, error: str = "") -> None:
        """Record the end. The first reason counts."""
        if self._state not in ("refused", "failed", "timed_out"):
            self._state, self._error = (
                state,
                redact_text(error if len(error) <= _LONGEST else error[:_LONGEST]),
            )

    async def _show(self, url: str) -> None:
        parts = web_address(url)
        if parts is None:
            raise ConfigError(sentence("login.address"))
        self._url, self._key = url, parse_qs(parts.query)["state"][-1].encode()
        self._answer = asyncio.get_running_loop().create_future()
        self._state = "waiting"
        if not self.shown.done():
            self.shown.set_result(None)
