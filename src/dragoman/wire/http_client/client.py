"""Hold the HTTP connections to all providers.

One attempt, from the request to the end of its stream, is in `exchange.py`. Retries are in `http_model.py`.
"""

from __future__ import annotations

import asyncio
import random as randomness
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlencode

from dragoman.errors import ConfigError, DragomanError, ProviderError
from dragoman.sentences import sentence
from dragoman.wire.auth.auth import Outgoing, outgoing_to
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.http_client.exchange import (
    ERROR_BODY,
    LONGEST_TEXT,
    Exchange,
    client_error,
    read_bounded,
)
from dragoman.wire.http_client.network import environment_proxy, exact_url, is_link_local, trust
from dragoman.wire.http_client.payload import Payload
from dragoman.wire.transport_errors import host_of, too_large, unreachable
from dragoman.wire.wire import Decoder

if TYPE_CHECKING:  # aiohttp takes 0.2 s to import, so it is imported when the first request is sent.
    import aiohttp

TOKEN_SECONDS = 30.0  # for an access token: token servers are quick
MACHINE_SECONDS = 3.0  # for one from this machine's link: a missing service does not answer
LARGE_BODY = 1 << 20  # Above this, aiohttp needs a stream, and writing takes a while.


@dataclass(slots=True, frozen=True)
class Timeouts:
    """Limits in seconds. None: wait forever."""

    connect: float | None = 15
    first_byte: float | None = 300  # some models reason for minutes before their first word
    between_chunks: float | None = 120
    whole_reply: float | None = 3600  # ends a stream that would not end
    # for the end of the stream after the last event, not longer than a new connection takes
    after_done: float | None = 0.1


@dataclass(slots=True, frozen=True)
class Retry:
    """How often a request is retried, and how long the client waits: the first time, and at most."""

    attempts: int = 4  # including the first one
    first_wait: float = 0.5
    longest_wait: float = 60

    def wait(self, attempt: int, retry_after: float | None, chance: float) -> float:
        """Return the seconds before the next attempt. Half of the back-off is random, so that clients spread
        out."""
        back_off = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1)) * (0.5 + chance / 2)
        return back_off if retry_after is None else retry_after + back_off * chance

    def may_follow(self, error: ProviderError, attempt: int) -> bool:
        return error.retryable and attempt < self.attempts and (error.retry_after or 0) <= self.longest_wait


class HttpClient:
    """One pool of connections, for all providers. Use it as an async context manager, or call `close`.

    `proxy` overrides the environment's (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), which applies
    unless `use_environment` is off. `ca` is a file or folder of certificates to trust in addition to the
    system's. A reply with more than `longest_text` characters is broken off.
    """

    may_upload = True  # large files can be uploaded to a provider, in separate requests

    def __init__(
        self,
        *,
        timeouts: Timeouts | None = None,
        retry: Retry | None = None,
        proxy: str | None = None,
        use_environment: bool = True,
        ca: str | Path | None = None,
        longest_text: int = LONGEST_TEXT,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] = randomness.random,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.timeouts = timeouts or Timeouts()
        self.retry = retry or Retry()
        self.sleep = sleep
        self.random = random
        self.clock = clock
        self._proxy = proxy
        self._use_environment = use_environment
        self._ca = ca
        self._longest_text = longest_text
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(
        self, url: str, *, headers: Mapping[str, str], body: bytes | Payload, exact: bool = False
    ) -> aiohttp.ClientResponse:
        """Send a body. The caller closes the response. Raises what aiohttp raises.

        `exact` is for a signed URL: its encoding stays unchanged.
        """
        return await self.send("POST", url, headers=headers, body=body, exact=exact)

    async def send(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | Payload, exact: bool = False
    ) -> aiohttp.ClientResponse:
        """Send a request with another method."""
        if isinstance(body, bytes) and len(body) >= LARGE_BODY:
            # aiohttp's payload for bytes copies all of them first, which blocks other tasks.
            body = Payload([body])
        try:
            return await self._pool().request(
                method,
                exact_url(url) if exact else url,
                data=body.pieces() if isinstance(body, Payload) else body,
                headers={**headers, "Content-Length": str(body.size)}
                if isinstance(body, Payload)
                else headers,
                proxy=self._proxy_for(url),
                allow_redirects=False,  # A key must not follow a redirect to another host.
            )
        except client_error() as error:
            if isinstance(error.__cause__, DragomanError):  # A file could not be read completely.
                raise error.__cause__ from None
            raise

    def exchange(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        body: bytes | Payload,
        decoder: Decoder,
        largest: int,
        trace: Mapping[str, str] | None = None,
    ) -> Exchange:
        """Return one attempt at a reply.

        Nothing is sent before it is opened. `trace` are additional headers.
        """
        url, auth = endpoint.url(model), endpoint.auth

        async def send() -> aiohttp.ClientResponse:
            outgoing = await outgoing_to(url, body, auth)
            # signed again for each attempt, because the signature contains the time
            signed = await auth.headers(outgoing, self)
            headers = {**signed, **endpoint.headers, **(trace or {})}
            return await self.post(url, headers=headers, body=body, exact=auth.exact)

        return Exchange(
            send,
            decoder,
            url=url,
            framing=endpoint.framing,
            first_byte=self.timeouts.first_byte,
            between_chunks=self.timeouts.between_chunks,
            after_done=self.timeouts.after_done,
            whole=self.timeouts.whole_reply,
            clock=self.clock,
            longest_text=self._longest_text,
            largest=largest,
        )

    async def get(self, url: str, *, largest: int, endpoint: Endpoint | None = None) -> bytes:
        """Return a small body. Raises ProviderError if there is none, or it is too large.

        `endpoint` provides the headers: the URL must be one of that endpoint's.
        """
        headers = {"Accept": "application/json"}
        exact = endpoint is not None and endpoint.auth.exact
        if endpoint is not None:
            signed = await endpoint.auth.headers(Outgoing(url, method="GET"), self)
            headers = {**signed, **endpoint.headers, **headers}
        try:
            async with self._pool().get(
                exact_url(url) if exact else url,
                headers=headers,
                proxy=self._proxy_for(url),
                allow_redirects=False,
            ) as response:
                body = await read_bounded(response, largest=largest)
                status = response.status
        except (OSError, client_error()) as error:
            raise unreachable(error, url, self.timeouts.first_byte) from None
        if status in (401, 403):
            raise ProviderError(sentence("key.refused", host=host_of(url)), kind="auth", status=status)
        if len(body) > largest:
            raise too_large(url, largest)
        if status != 200:
            raise ProviderError(
                sentence("models.no_such_list", host=host_of(url)), kind="no_list", status=status
            )
        return body

    async def post_form(self, url: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Request an access token. Return the status and the body of the answer. ProviderError without an
        answer."""
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        return await self.ask(url, method="POST", headers=headers, body=urlencode(form).encode())

    async def ask(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        largest: int = ERROR_BODY,
    ) -> tuple[int, bytes]:
        """Send a quick request, such as for a token. No proxy is used for services on this machine's link.

        A longer body is cut off a little after `largest` bytes.
        """
        here = is_link_local(url)
        try:
            async with (
                asyncio.timeout(MACHINE_SECONDS if here else TOKEN_SECONDS),
                self._pool().request(
                    method,
                    exact_url(url),
                    data=body or None,
                    headers={"Accept": "application/json", **(headers or {})},
                    proxy=None if here else self._proxy_for(url),
                    allow_redirects=False,
                ) as response,
            ):
                return response.status, await read_bounded(response, largest=largest)
        except (OSError, client_error()) as error:
            failure = unreachable(error, url, MACHINE_SECONDS if here else TOKEN_SECONDS)
        raise failure  # raised here, so that no error with a secret is attached as its context

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=trust(self._ca)),  # a stream must not queue
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.timeouts.connect),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={
                    "Accept": "text/event-stream",
                    "Accept-Encoding": "identity",  # A compressed stream arrives in bursts.
                    "Content-Type": "application/json",
                    "User-Agent": "dragoman",
                },
            )
        return self._session

    def _proxy_for(self, url: str) -> str | None:
        proxy = self._proxy or (environment_proxy(url) if self._use_environment else None)
        if proxy is not None and not proxy.startswith(("http://", "https://")):
            raise ConfigError(sentence("proxy.address", host=host_of(url)))
        return proxy
