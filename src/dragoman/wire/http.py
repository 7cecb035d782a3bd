"""The HTTP client: connections to all providers, and `HttpModel`, which asks again where that may help.

One attempt, from the request to the end of its stream, is in `wire/exchange.py`.
"""

from __future__ import annotations

import asyncio
import random as randomness
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlencode

from pydantic import JsonValue

from dragoman.errors import ConfigError, DragomanError, ProviderError
from dragoman.extras import describe_missing
from dragoman.messages.events import Event, FileAdded, Notice, StepRetry
from dragoman.messages.parts import File
from dragoman.messages.request import Request
from dragoman.redaction import redact_text
from dragoman.trace_context import attempt_headers
from dragoman.wire.attachments import AttachmentReader
from dragoman.wire.auth.auth import Outgoing, outgoing_to
from dragoman.wire.bodies import is_large, write, write_large
from dragoman.wire.body_fields import fields_of
from dragoman.wire.downloads import LARGEST, fetch_made
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.exchange import Exchange, client_error, read_bounded
from dragoman.wire.files import Attachments
from dragoman.wire.forms import write_form
from dragoman.wire.learned import Learned, may_teach
from dragoman.wire.network import environment_proxy, exact_url, is_link_local, trust
from dragoman.wire.options import Extra, check_options, own_fields, with_extra, with_tool_choice
from dragoman.wire.payload import Payload
from dragoman.wire.pictures import NO_LIMITS, FileLimits, has_pillow, is_too_large
from dragoman.wire.request_files import NO_ROOM, RequestFiles
from dragoman.wire.strict import restore_calls
from dragoman.wire.transport_errors import host_of, unreachable
from dragoman.wire.uploads import Uploads, is_unknown_file
from dragoman.wire.wire import Decoder, MediaWire, Wire

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
    after_done: float | None = 1  # for the end of the connection after the last event: some never close it


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

    may_upload = True  # large files may be kept at a provider, in requests of their own

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
            raise ProviderError(f"{host_of(url)} refuses the key", kind="auth", status=status)
        if status != 200 or len(body) > largest:
            raise ProviderError(f"{host_of(url)} has no such list", kind="no_list", status=status)
        return body

    async def post_form(self, url: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Ask for an access token: the status and the body of the answer. ProviderError where none comes."""
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        return await self.ask(url, method="POST", headers=headers, body=urlencode(form).encode())

    async def ask(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, bytes]:
        """Ask whoever gives tokens: they are quick. No proxy stands before what is on this machine's own
        link."""
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
                return response.status, await read_bounded(response)
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
            raise ConfigError(f"the proxy for {host_of(url)} is not an http:// or https:// address")
        return proxy


class HttpModel:
    """A model at an endpoint: satisfies `wire.Model`.

    `name` is how people write it; `model` is how its provider does, and what stands in the body or the URL.
    `extra` are the options that it takes beside the words of its wire: of an unknown server, all.
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
        extra: Extra = True,
        attachments: AttachmentReader | None = None,
        learned: Learned | None = None,
        limits: FileLimits = NO_LIMITS,
        uploads: Uploads | None = None,
    ) -> None:
        self.name = name or model
        self.context = context
        self.variant: Mapping[str, JsonValue] = {}
        self.model = model
        self._extra = extra
        self._files = RequestFiles(attachments or AttachmentReader(), wire, limits, uploads)
        self._learned = learned or Learned()
        self._client = client
        self._wire = wire
        self._media = wire if isinstance(wire, MediaWire) else None
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"HttpModel({self.name!r}, {self._wire.name}, {host_of(self._endpoint.base_url)})"

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        if self._media is not None:
            self._media.check_options(options, model=self.name, strict=self._extra is not True)
        else:
            check_options(options, model=self.name, words=self._wire.options, extra=self._extra)

    def check_files(self, files: Sequence[File]) -> None:
        self._files.check(files, self.name)

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[list[Event], None]:
        """The reply's events, one list per network read. Close the iterator, or cancel, to hang up."""
        request, left_out = self._files.fit(request)
        if left_out:
            yield [Notice(f"{self.name} is not shown the {left_out} oldest files: {NO_ROOM}", "no_room")]
        endpoint, body, uploaded = await self._addressed(request)
        retry = self._client.retry
        attempt = 1
        while True:
            exchange = self._client.exchange(
                endpoint,
                self.model,
                body=body,
                decoder=self._wire.decoder(reply),
                trace=attempt_headers(),
            )
            failure: ProviderError
            try:
                await exchange.open()
                while events := await exchange.read():
                    for event in events:
                        if type(event) is FileAdded:
                            await fetch_made(event, endpoint.base_url, self._download)
                    yield restore_calls(events, request.tools)
                return
            except ProviderError as error:
                failure = self._for_people(error)
                if not exchange.began and uploaded and is_unknown_file(error):
                    assert self._files.uploads is not None
                    await self._files.uploads.forget(uploaded)
                    endpoint, body, _ = await self._addressed(request)
                    uploaded = frozenset()  # once
                    continue
                if not exchange.began and error.kind in ("invalid_request", "unknown_model", "server"):
                    error.sent = await self._fields(request)
                if exchange.began or not retry.may_follow(error, attempt) or may_teach(error):
                    raise
            finally:
                exchange.close()
            wait = retry.wait(attempt, failure.retry_after, self._client.random())
            attempt += 1
            yield [StepRetry(attempt, retry.attempts, round(wait, 3), failure.message, failure.status)]
            await self._client.sleep(wait)

    async def _download(self, url: str) -> bytes:
        """What lies at an address in a reply. The key does not go there."""
        return await self._client.get(url, largest=LARGEST)

    async def _addressed(self, request: Request) -> tuple[Endpoint, bytes | Payload, frozenset[str]]:
        """The request as it is sent, where it goes, and the blobs that are named by an id in it. What takes
        long is done in a thread."""
        self.check_options(request.options)
        request = self._complete(request)
        attachments = await self._files.read(request)
        ids = frozenset(attachments.ids)
        if attachments.size > LARGE_BODY or is_large(request):
            return *await asyncio.to_thread(self._written, request, attachments), ids
        return *self._written(request, attachments), ids

    def _written(self, request: Request, attachments: Attachments) -> tuple[Endpoint, bytes | Payload]:
        body = self._encode(request, attachments)
        endpoint = self._endpoint.with_headers_of(body)
        if self._media is not None:
            endpoint = self._media.endpoint(request, endpoint)
        files = attachments.contents
        if not endpoint.form:
            large = files or attachments.size > LARGE_BODY or is_large(request)
            return endpoint, write_large(body, files) if large else write(body)
        data, type = write_form(body, files)
        return replace(endpoint, headers={**endpoint.headers, "Content-Type": type}), data

    def _complete(self, request: Request) -> Request:
        request = with_tool_choice(request)
        if self._media is not None:
            request = self._media.select(request)
        if own := own_fields(request.options, self._wire.options):
            request = replace(request, extra=with_extra(own, request.extra))
        return request

    async def _fields(self, request: Request) -> frozenset[str]:
        """The names of what stood in the body: of an error they tell what it is about."""
        request = self._complete(request)
        return fields_of(self._encode(request, await self._files.read(request)))

    def _encode(self, request: Request, attachments: Attachments) -> dict[str, JsonValue]:
        body = self._learned.trim(self._wire.encode(request, attachments))
        if body.get("model") == request.model:
            body["model"] = self.model
        return self._endpoint.fitted(body)

    def _for_people(self, error: ProviderError) -> ProviderError:
        """The error as a person may read it: without the key, and with the key's name."""
        error.message = redact_text(error.message, self._endpoint.secrets)
        error.args = (error.message,)
        auth = self._endpoint.auth
        if error.status == 401 or (auth.exact and error.status == 403):
            auth.refused()
        if error.kind == "auth" or (auth.exact and error.status == 403):  # Amazon: a signature that is wrong
            error.hint = auth.hint or error.hint
        if self._files.limits.picture_edge and not has_pillow() and is_too_large(error.message):
            error.hint = describe_missing("PIL")
        return error
