"""Requests go out, events come in: the only module that calls a provider.

`HttpClient` owns the connections, the patience and the second tries; `HttpModel` is one model behind them.
"""

from __future__ import annotations

import asyncio
import io
import json
import random as randomness
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from pydantic_core import PydanticSerializationError, to_json

from dragoman.errors import ConfigError, ProviderError
from dragoman.messages.events import Event
from dragoman.messages.request import Request
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.refusal import refusal_in_body, without
from dragoman.wire.sse import Splitter
from dragoman.wire.trouble import (
    SHOWN,
    broken,
    garbled,
    is_no_stream,
    no_event,
    no_stream,
    place,
    redirected,
    retry_after,
    stalled,
    unreachable,
)
from dragoman.wire.wire import Wire

if TYPE_CHECKING:  # aiohttp costs a fifth of a second to import: that is done when the first request goes out
    import ssl

    import aiohttp

ERROR_BODY = 64 * 1024  # bytes: enough for any error message
ERROR_SECONDS = 10.0  # for the body of an error, once its status is known
LARGE_BODY = 1 << 20  # above this aiohttp wants something it can read in pieces
DONE = b"[DONE]"  # how OpenAI and its imitators end a stream


@dataclass(slots=True, frozen=True)
class Timeouts:
    """Seconds. None means: wait for ever."""

    connect: float | None = 15
    first_byte: float | None = 300  # some models think for minutes before they say a word
    between_chunks: float | None = 120
    after_done: float | None = 1  # for the connection to end when all was said: some servers leave it open


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
    """

    def __init__(
        self,
        *,
        timeouts: Timeouts | None = None,
        retry: Retry | None = None,
        proxy: str | None = None,
        use_environment: bool = True,
        ca: str | Path | None = None,
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
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> aiohttp.ClientResponse:
        """Send a body. The response is the caller's to close; raises what aiohttp raises."""
        return await self._pool().post(
            url,
            data=body if len(body) < LARGE_BODY else io.BytesIO(body),
            headers=headers,
            proxy=self._proxy_for(url),
            allow_redirects=False,  # a key must not follow a redirect to somebody else
        )

    async def get(self, url: str, *, largest: int) -> bytes:
        """A small body, whole. ProviderError where there is none, or none so small."""
        try:
            async with self._pool().get(
                url,
                headers={"Accept": "application/json"},
                proxy=self._proxy_for(url),
                allow_redirects=False,
            ) as response:
                body = await _some(response, largest=largest)
                status = response.status
        except (OSError, _client_error()) as error:
            raise unreachable(error, url, self.timeouts.first_byte) from None
        if status != 200 or len(body) > largest:
            raise ProviderError(f"{place(url)} has no such list", kind="no_list", status=status)
        return body

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=_trust(self._ca)),  # a stream must not queue
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
        proxy = self._proxy or (_environment_proxy(url) if self._use_environment else None)
        if proxy is not None and not proxy.startswith(("http://", "https://")):
            raise ConfigError(f"the proxy for {place(url)} is not an http:// or https:// address")
        return proxy


class HttpModel:
    """A model at an endpoint: satisfies `wire.Model`.

    `name` is how people write it; `model` is how its provider does, and what stands in the body or the URL.
    """

    def __init__(
        self,
        client: HttpClient,
        wire: Wire,
        endpoint: Endpoint,
        *,
        model: str,
        name: str | None = None,
        context: int | None = None,
    ) -> None:
        self.name = name or model
        self.context = context
        self.model = model
        self._client = client
        self._wire = wire
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"HttpModel({self.name!r}, {self._wire.name}, {place(self._endpoint.base_url)})"

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[list[Event], None]:
        """The reply's events, one list per network read. Close the iterator, or cancel, to hang up."""
        body = self._body(request)
        retry = self._client.retry
        attempt = 1
        while True:
            answer = _Answer(self._client, self._endpoint, self.model, self._wire, reply)
            failure: ProviderError
            try:
                await answer.open(body)
                while events := await answer.read():
                    yield events
                return
            except ProviderError as error:
                failure = self._told(error)
                if answer.spoke or not retry.may_follow(error, attempt):
                    raise
            finally:
                answer.close()
            await self._client.sleep(retry.wait(attempt, failure.retry_after, self._client.random()))
            attempt += 1

    def _body(self, request: Request) -> bytes:
        body = self._wire.encode(request)
        if body.get("model") == request.model:
            body["model"] = self.model
        try:
            return to_json(body, inf_nan_mode="null")
        except PydanticSerializationError:  # half a surrogate pair somewhere in the history
            return json.dumps(body, ensure_ascii=False).encode(errors="replace")

    def _told(self, error: ProviderError) -> ProviderError:
        """The error as a person may read it: without the key, and with the key's name."""
        error.message = without(error.message, self._endpoint.secrets)
        error.args = (error.message,)
        if error.kind == "auth" and (name := self._endpoint.key_name):
            error.hint = f"Check {name}" if self._endpoint.key else f"Set {name} to your API key"
        return error


class _Answer:
    """One attempt: a response while it is read. Whatever goes wrong in it leaves as a ProviderError."""

    def __init__(self, client: HttpClient, endpoint: Endpoint, model: str, wire: Wire, reply: str) -> None:
        self.spoke = False  # an event has left: from here on nothing may be asked again
        self._client = client
        self._url = endpoint.url(model)
        self._headers = endpoint.all_headers()
        self._frames = Splitter()
        self._decoder = wire.decoder(reply)
        self._response: aiohttp.ClientResponse | None = None
        self._patience: _Patience | None = None
        self._unread = b""
        self._head = b""  # how the body began, for the error that has to show it
        self._framed = False
        self._done = False
        self._ended = False
        self._failure: ProviderError | None = None

    async def open(self, body: bytes) -> None:
        """Send the request and wait for the first bytes of a stream."""
        limit = self._client.timeouts.first_byte
        failure: ProviderError | None = None
        try:
            async with asyncio.timeout(limit):
                response = await self._client.post(self._url, headers=self._headers, body=body)
                self._response = response
                accepted = response.status // 100 == 2
                if accepted:
                    self._unread = await response.content.readany()
            if not accepted:
                failure = self._refused(response, await _some(response))
            elif is_no_stream(self._unread):
                failure = no_stream(await _some(response, self._unread))
        except (OSError, _client_error()) as error:  # TimeoutError is an OSError
            failure = unreachable(error, self._url, limit)
        if failure is not None:
            raise failure  # out here, where no error that holds our headers can hang on to it
        self._head = self._unread[:SHOWN]
        self._patience = _Patience(self._client.timeouts.between_chunks, self.close)

    async def read(self) -> list[Event]:
        """The next events; none when the reply is over."""
        assert self._response is not None
        assert self._patience is not None
        content, patience = self._response.content, self._patience
        while self._failure is None and not self._ended:
            chunk, self._unread = self._unread, b""
            if not chunk and self._done:
                await _some(self._response, seconds=self._client.timeouts.after_done)
            elif not chunk:
                patience.begin()
                try:
                    chunk = await content.readany()
                except (OSError, _client_error()) as error:
                    self._frames = Splitter()  # half an event is none
                    if not getattr(self._decoder, "finish_word", None):  # else all was said already
                        lost, limit = patience.lost, patience.limit
                        self._failure = stalled(self._url, limit) if lost else broken(error, self._url)
                        break
                patience.end()
            if events := self._decoded(chunk):
                self.spoke = True
                return events
        if self._failure is not None:
            raise self._failure
        return []

    def close(self) -> None:
        """Hang up, unless all was read: then the connection is back in the pool already."""
        if self._patience is not None:
            self._patience.stop()
        if self._response is not None:
            self._response.close()

    def _decoded(self, chunk: bytes) -> list[Event]:
        """The events in a chunk, or in its absence the last ones. A failure waits until these were read."""
        events: list[Event] = []
        frame = b""
        try:
            for frame in self._frames.feed(chunk) if chunk else self._frames.end():
                self._framed = True
                self._done = frame == DONE
                events.extend(self._decoder.feed(frame))
            if not chunk:
                self._ended = True
                if not self._framed:
                    raise no_event(self._head)
                events.extend(self._decoder.end())
        except ProviderError as error:
            self._failure = error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self._failure = garbled(frame, error)
        return events

    def _refused(self, response: aiohttp.ClientResponse, body: bytes) -> ProviderError:
        if 300 <= response.status < 400:
            return redirected(self._url, response.status, response.headers.get("Location"))
        wait = retry_after(response.headers, self._client.clock())
        return refusal_in_body(body, status=response.status, retry_after=wait)


class _Patience:
    """Hangs up when nothing came for too long while somebody waited.

    One timer looks at the stream now and then; a read costs two assignments, not a timer of its own.
    """

    def __init__(self, limit: float | None, hang_up: Callable[[], None]) -> None:
        self.limit = limit
        self.lost = False
        self._hang_up = hang_up
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer = None if limit is None else self._loop.call_later(limit, self._look)

    def begin(self) -> None:
        self._since = self._loop.time()

    def end(self) -> None:
        self._since = None

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        assert self.limit is not None
        now = self._loop.time()
        due = (now if self._since is None else self._since) + self.limit
        if now < due:
            self._timer = self._loop.call_at(due, self._look)
        else:
            self.lost = True
            self._hang_up()


async def _some(
    response: aiohttp.ClientResponse,
    begun: bytes = b"",
    *,
    seconds: float | None = ERROR_SECONDS,
    largest: int = ERROR_BODY,
) -> bytes:
    """What is left of a body, but not much more than can be used, and not for ever."""
    body = bytearray(begun)
    try:
        async with asyncio.timeout(seconds):
            while len(body) <= largest and (piece := await response.content.readany()):
                body += piece
    except (OSError, _client_error()):
        pass
    return bytes(body)


def _client_error() -> type[Exception]:
    import aiohttp

    return aiohttp.ClientError


# ── the way out ───────────────────────────────────────────────────────────────────────────────────


def _environment_proxy(url: str) -> str | None:
    from urllib.request import getproxies_environment, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies_environment()
    if host in ("localhost", "::1") or host.startswith("127.") or proxy_bypass(host):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def _trust(ca: str | Path | None) -> ssl.SSLContext | bool:
    if ca is None:
        return True
    import ssl

    context = ssl.create_default_context()
    try:
        if Path(ca).is_dir():
            context.load_verify_locations(capath=ca)
        else:
            context.load_verify_locations(cafile=ca)
    except OSError as error:
        raise ConfigError(f"the certificates in {ca} cannot be used: {error}") from error
    return context
