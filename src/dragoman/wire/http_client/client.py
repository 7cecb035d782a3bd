"""The HTTP client: connections to all providers.

One attempt, from the request to the end of its stream, is in `exchange.py`; asking again is the model's
(`http_model.py`).
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

if TYPE_CHECKING:  # aiohttp costs a fifth of a second to import: that is done when the first request goes out
    import aiohttp

TOKEN_SECONDS = 30.0  # for an access token: those who give them are quick
MACHINE_SECONDS = 3.0  # for one from this machine's own link: whoever is not there does not answer
LARGE_BODY = 1 << 20  # above this aiohttp wants something it can read in pieces, and writing takes a while


@dataclass(slots=True, frozen=True)
class Timeouts:
    """Seconds. None means: wait for ever."""

    connect: float | None = 15
    first_byte: float | None = 300  # some models think for minutes before they say a word
    between_chunks: float | None = 120
    whole_reply: float | None = 3600  # a stream that goes on and on ends some time
    after_done: float | None = 0.1  # for its end after the last event, not longer than a new connection takes


@dataclass(slots=True, frozen=True)
class Retry:
    """How often a request is asked again, and how long it waits: the first time, and at most."""

    attempts: int = 4  # the first one counts
    first_wait: float = 0.5
    longest_wait: float = 60

    def wait(self, attempt: int, retry_after: float | None, chance: float) -> float:
        """Seconds before the next attempt. Half of the back-off is chance, so that clients spread out."""
        back_off = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1)) * (0.5 + chance / 2)
        return back_off if retry_after is None else retry_after + back_off * chance

    def may_follow(self, error: ProviderError, attempt: int) -> bool:
        return error.retryable and attempt < self.attempts and (error.retry_after or 0) <= self.longest_wait


class HttpClient:
    """One pool of connections, for all providers. An async context manager; else call `close`.

    `proxy` wins over the environment's (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), which counts
    unless `use_environment` is off. `ca` is a file or folder of certificates to trust beside the system's.
    A reply that has more than `longest_text` characters is broken off.
    """

    may_upload = True  # large files may be kept at a provider, in requests of their own

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
        """Send a body. The response is the caller's to close; raises what aiohttp raises.

        `exact` is for an address that is signed: nothing in it is written in another way.
        """
        return await self.send("POST", url, headers=headers, body=body, exact=exact)

    async def send(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | Payload, exact: bool = False
    ) -> aiohttp.ClientResponse:
        """The same with another verb."""
        if isinstance(body, bytes) and len(body) >= LARGE_BODY:
            body = Payload([body])  # what aiohttp has for bytes copies all of them first, while others wait
        try:
            return await self._pool().request(
                method,
                exact_url(url) if exact else url,
                data=body.pieces() if isinstance(body, Payload) else body,
                headers={**headers, "Content-Length": str(body.size)}
                if isinstance(body, Payload)
                else headers,
                proxy=self._proxy_for(url),
                allow_redirects=False,  # a key must not follow a redirect to somebody else
            )
        except client_error() as error:
            if isinstance(error.__cause__, DragomanError):  # a file could not be read to its end
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
        """One attempt at a reply. Nothing is sent before it is opened. `trace` are headers, too."""
        url, auth = endpoint.url(model), endpoint.auth

        async def send() -> aiohttp.ClientResponse:
            outgoing = await outgoing_to(url, body, auth)
            signed = await auth.headers(outgoing, self)  # each attempt anew: it holds the time
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
        """A small body, whole. ProviderError where there is none, or none so small.

        `endpoint` is the one whose headers go along: the address has to be one of its own.
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
        """Ask for an access token: the status and the body of the answer. ProviderError where none comes."""
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
        """Ask whoever gives tokens: they are quick. No proxy stands before what is on this machine's own
        link. Of a longer body a little more than `largest` bytes come."""
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
        raise failure  # out here, where no error that holds a secret can hang on to it

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=trust(self._ca)),  # a stream must not queue
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.timeouts.connect),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={
                    "Accept": "text/event-stream",
                    "Accept-Encoding": "identity",  # a compressed stream arrives in lumps
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
