"""Define a model behind HTTP that retries if a retry may help."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.installed import describe_missing
from dragoman.messages.events import Event, FileAdded, Notice, StepRetry
from dragoman.messages.message import File, Text
from dragoman.messages.request import LostReply, Request, RequestMessage
from dragoman.redaction import redact_text
from dragoman.sentences import sentence
from dragoman.trace_context import attempt_headers
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.files.attachments import AttachmentReader
from dragoman.wire.files.file_parts import Attachments, files_of
from dragoman.wire.files.pictures import (
    NO_LIMITS,
    FileLimits,
    fetch_made,
    has_pillow,
    is_too_large,
)
from dragoman.wire.files.uploads import NO_ROOM, RequestFiles, Uploads, is_unknown_file
from dragoman.wire.http_client.body import is_large, write, write_form, write_large
from dragoman.wire.http_client.client import LARGE_BODY, HttpClient
from dragoman.wire.http_client.payload import Payload
from dragoman.wire.learned import Learned, fields_of, may_teach
from dragoman.wire.options import Extra, own_fields, with_extra, with_tool_choice
from dragoman.wire.schemas.strict import restore_calls
from dragoman.wire.transport_errors import host_of
from dragoman.wire.wire import MediaWire, Wire


class HttpModel:
    """A model at an endpoint: satisfies `wire.Model`.

    `name` is the name for users. `model` is the provider's name, which the body or the URL contains. `extra`
    are options that it accepts in addition to those of its wire: for an unknown server, all.
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
        self._wire.check_options(options, model=self.name, extra=self._extra)

    def check_files(self, files: Sequence[File]) -> None:
        self._files.check(files, self.name)

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[list[Event], None]:
        """Yield the reply's events, one list per network read.

        Close the iterator, or cancel, to disconnect.
        """
        left_out = 0
        if self._media is not None:  # A note in place of a file would be drawn or spoken.
            request = self._media.select(request)
            self._files.check([*files_of(request)], self.name)
        else:
            request, left_out = self._files.fit(request)
        if left_out:
            yield [
                Notice(sentence("model.no_room", name=self.name, left_out=left_out, why=NO_ROOM), "no_room")
            ]
        endpoint, body, uploaded = await self._addressed(request)
        retry = self._client.retry
        attempt = 1
        while True:
            exchange = self._client.exchange(
                endpoint,
                self.model,
                body=body,
                decoder=self._wire.decoder(reply),
                largest=self._files.limits.reply,
                trace=attempt_headers(),
            )
            failure: ProviderError
            over = False
            try:
                await exchange.open()
                while events := await exchange.read():
                    for event in events:
                        if type(event) is FileAdded:
                            problem = await fetch_made(event, endpoint.base_url, self._download)
                            if problem is not None:
                                yield [
                                    Notice(
                                        sentence("file.not_fetched", name=event.file.name, problem=problem),
                                        "address",
                                    )
                                ]
                    yield restore_calls(events, request.tools)
                over = True
                return
            except ProviderError as error:
                failure = self._for_people(error)
                if not exchange.began and uploaded and is_unknown_file(error):
                    assert self._files.uploads is not None
                    await self._files.uploads.forget(uploaded)
                    endpoint, body, _ = await self._addressed(request)
                    uploaded = frozenset()  # only once
                    continue
                if not exchange.began and error.kind in ("invalid_request", "unknown_model", "server"):
                    error.sent = await self._fields(request)
                if exchange.began or not retry.may_follow(error, attempt) or may_teach(error):
                    raise
            finally:
                exchange.close()
                if not over and not exchange.usage.is_empty:  # it broke off or was cancelled
                    request.lost.append(LostReply(self.name, exchange.usage))
            wait = retry.wait(attempt, failure.retry_after, self._client.random())
            if request.deadline is not None and asyncio.get_running_loop().time() + wait > request.deadline:
                told = sentence("hint.deadline", wait=wait)
                failure.hint = ". ".join(filter(None, (failure.hint, told)))
                raise failure
            attempt += 1
            yield [StepRetry(attempt, retry.attempts, round(wait, 3), failure.message, failure.status)]
            await self._client.sleep(wait)

    async def _download(self, url: str) -> bytes:
        """Return a file that a reply links to. The key is not sent."""
        return await self._client.get(url, largest=self._files.limits.reply)

    async def _addressed(self, request: Request) -> tuple[Endpoint, bytes | Payload, frozenset[str]]:
        """Return the endpoint, the body as it is sent, and the blobs that the body names by an ID.

        Slow work is done in a thread.
        """
        self.check_options(request.options)
        request = self._complete(request)
        attachments = await self._files.read(request)
        request.texts[:] = attachments.texts.values()
        ids = frozenset(attachments.ids)
        if attachments.size > LARGE_BODY or is_large(request):
            return *await asyncio.to_thread(self._written, request, attachments, large=True), ids
        return *self._written(request, attachments, large=False), ids

    def _written(
        self, request: Request, attachments: Attachments, *, large: bool
    ) -> tuple[Endpoint, bytes | Payload]:
        body = self._encode(request, attachments)
        endpoint = self._endpoint.with_headers_of(body)
        if self._media is not None:
            endpoint = self._media.endpoint(request, endpoint)
        files = attachments.contents
        if not endpoint.form:
            return endpoint, write_large(body, files) if large or files else write(body)
        data, type = write_form(body, files)
        return replace(endpoint, headers={**endpoint.headers, "Content-Type": type}), data

    def _complete(self, request: Request) -> Request:
        request = with_tool_choice(request)
        if own := own_fields(request.options, self._wire.options):
            request = replace(request, extra=with_extra(own, request.extra))
        return request

    async def _fields(self, request: Request) -> frozenset[str]:
        """Return the names of the body's fields, to find which of them an error is about."""
        request = self._complete(request)
        fields = fields_of(self._encode(request, await self._files.read(request)))
        return fields if (free := self._unasked(request)) is None else fields & free

    def _unasked(self, request: Request) -> frozenset[str] | None:
        """Return the fields that may be left out of a media request: only our defaults, never the user's
        choices (R9).

        Without such a choice, the user would pay for something else. None for a chat model.
        """
        return self._wire.options - request.options.keys() if self._media is not None else None

    def left_out(self, request: Request, asked: Collection[str]) -> list[str]:
        """Return the fields that its server has refused, and that the request would have for the options
        `asked`."""
        if self._media is not None or not self._learned.dropped:
            return []
        full = replace(request, messages=(RequestMessage("user", (Text("?"),)),))
        bare = replace(full, options={name: one for name, one in full.options.items() if name not in asked})
        fields, without = (fields_of(self._wire.encode(self._complete(one))) for one in (full, bare))
        return sorted((fields - without) & self._learned.dropped)

    def _encode(self, request: Request, attachments: Attachments) -> dict[str, JsonValue]:
        body = self._learned.trim(self._wire.encode(request, attachments), self._unasked(request))
        if body.get("model") == request.model:
            body["model"] = self.model
        return self._endpoint.fitted(body)

    def _for_people(self, error: ProviderError) -> ProviderError:
        """Return the error for users: without the key, and with the key's name."""
        error.message = redact_text(error.message, self._endpoint.secrets)
        error.args = (error.message,)
        auth = self._endpoint.auth
        if error.status == 401 or (auth.exact and error.status == 403):
            auth.refused()
        if error.kind == "auth" or (auth.exact and error.status == 403):  # Amazon: a wrong signature
            error.hint = auth.hint or error.hint
        if self._files.limits.picture_edge and not has_pillow() and is_too_large(error.message):
            error.hint = describe_missing("PIL")
        return error
