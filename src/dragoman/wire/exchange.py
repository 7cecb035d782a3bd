"""One attempt at a reply: sends a request and decodes its stream. Every failure becomes a ProviderError."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dragoman.errors import ProviderError
from dragoman.messages.events import CallInputDelta, Event, ReasoningDelta, TextDelta
from dragoman.messages.usage import Usage
from dragoman.wire.framing import FRAMINGS, FramingName, Unsplit
from dragoman.wire.provider_errors import error_in_body
from dragoman.wire.sse import DONE
from dragoman.wire.surrogates import read_json
from dragoman.wire.transport_errors import (
    EXCERPT,
    broken,
    garbled,
    is_no_stream,
    no_event,
    no_stream,
    redirected,
    retry_after,
    stalled,
    too_large,
    too_long,
    too_much_text,
    unreachable,
)
from dragoman.wire.wire import Decoder, ReadsWhole, begins_reply

if TYPE_CHECKING:  # aiohttp costs a fifth of a second to import: that is done when the first request goes out
    import aiohttp

ERROR_BODY = 64 * 1024  # bytes: enough for any error message
ERROR_SECONDS = 10.0  # for the body of an error, once its status is known
LONGEST_REPLY = 128_000_000  # bytes: more than any model says, and less than hurts
LONGEST_TEXT = 8_000_000  # characters of text, reasoning and arguments: ten times what any model writes
LONGEST_LINE = 32_000_000  # bytes of one event: a picture fits
LARGE_BODY = 1 << 20  # bytes: what is larger is read in a thread


class Exchange:
    """One attempt: `open` sends the request, `read` gives events, `close` hangs up.

    `send` gets the response. The limits are seconds; None means: wait for ever.
    """

    def __init__(
        self,
        send: Callable[[], Awaitable[aiohttp.ClientResponse]],
        decoder: Decoder,
        *,
        url: str,
        first_byte: float | None,
        between_chunks: float | None,
        after_done: float | None,
        whole: float | None,
        clock: Callable[[], float],
        framing: FramingName = "sse",
        longest_text: int = LONGEST_TEXT,
    ) -> None:
        self.began = False  # a part of the reply was handed out: the request must not be repeated
        self._send = send
        self._decoder = decoder
        self._url = url
        self._first_byte = first_byte
        self._between_chunks = between_chunks
        self._after_done = after_done
        self._whole = whole
        self._deadline: float | None = None
        self._received = 0  # bytes
        self._longest_text = longest_text
        self._characters = 0
        self._clock = clock
        self._framing = FRAMINGS[framing]
        self._frames = self._framing()
        self._response: aiohttp.ClientResponse | None = None
        self._stall_timer: _StallTimer | None = None
        self._unread = b""
        self._whole_reply: list[Event] | None = None  # where it came in one piece
        self._head = b""  # how the body began, for the error that has to show it
        self._framed = False
        self._blank = True  # nothing but white space has come
        self._done = False
        self._ended = False
        self._failure: ProviderError | None = None

    @property
    def usage(self) -> Usage:
        """What the provider has said of it so far: some do so before the end. What is no count is none."""
        try:
            return getattr(self._decoder, "usage", Usage())
        except (ValueError, LookupError, TypeError):
            return Usage()

    async def open(self) -> None:
        """Send the request and wait for the first bytes of a stream."""
        failure: ProviderError | None = None
        try:
            async with asyncio.timeout(self._first_byte):
                response = await self._send()
                self._response = response
                accepted = response.status // 100 == 2
                if accepted:
                    self._unread = await response.content.readany()
            if not accepted:
                failure = self._rejection(response, await read_bounded(response))
            elif self._is_whole(response):
                page = self._unread.lstrip().startswith(b"<")
                size = ERROR_BODY if page else LONGEST_LINE
                seconds = self._between_chunks
                body = await read_bounded(response, self._unread, seconds=seconds, largest=size)
                failure = await self._take(body)
        except (OSError, client_error()) as error:  # TimeoutError is an OSError
            failure = unreachable(error, self._url, self._first_byte)
        if failure is not None:
            raise failure  # out here, where no error that holds our headers can hang on to it
        self._head = self._unread[:EXCERPT]
        if self._whole is not None:
            self._deadline = asyncio.get_running_loop().time() + self._whole
        self._stall_timer = _StallTimer(self._between_chunks, self.close)

    def _is_whole(self, response: aiohttp.ClientResponse) -> bool:
        """Whether what comes is no stream. A sound may begin with any byte: there only its type can tell."""
        if self._framing is Unsplit:
            return response.content_type in ("application/json", "application/problem+json", "text/html")
        return is_no_stream(self._unread)

    async def _take(self, body: bytes) -> ProviderError | None:
        large = len(body) > LARGE_BODY  # pictures: not while others wait for their events
        return await asyncio.to_thread(self._take_whole, body) if large else self._take_whole(body)

    def _take_whole(self, body: bytes) -> ProviderError | None:
        """What came is no stream: it may be a reply in one piece, of a server that does not stream."""
        self._unread = b""
        try:
            value = read_json(body)
            events = self._decoder.whole(value) if isinstance(self._decoder, ReadsWhole) else None
            self._whole_reply = None if events is None else [*events, *self._decoder.end()]
        except ProviderError as error:
            return error
        except (ValueError, LookupError, TypeError, AttributeError):
            self._whole_reply = None
        return no_stream(body) if self._whole_reply is None else None

    async def read(self) -> list[Event]:
        """The next events; none when the reply is over."""
        if self._whole_reply is not None:
            if self._failure is not None:
                raise self._failure
            events, self._whole_reply = self._whole_reply, []
            self.began = True
            return self._within_text(events)
        assert self._response is not None
        assert self._stall_timer is not None
        content, timer = self._response.content, self._stall_timer
        while self._failure is None and not self._ended:
            chunk, self._unread = self._unread, b""
            if not chunk and self._done:
                if not content.at_eof():
                    await read_bounded(self._response, seconds=self._after_done)
            elif not chunk:
                timer.begin()
                try:
                    chunk = await content.readany()
                except (OSError, client_error()) as error:
                    self._frames = self._framing()  # half an event is none
                    if not self._decoder.finish_word:  # else the reply is complete
                        expired, limit = timer.expired, timer.limit
                        self._failure = stalled(self._url, limit) if expired else broken(error, self._url)
                        break
                timer.end()
            if (failure := self._out_of_bounds(chunk)) is not None:
                self._failure = failure
                break
            if self._blank and chunk.strip():
                self._blank = False
                if self._framing is not Unsplit and is_no_stream(chunk):  # after empty lines, sent to wait
                    return await self._read_whole(chunk)
            # the end of a picture: it is not read while others wait for their events
            large = self._frames.pending > LARGE_BODY and b"\n" in chunk
            if events := await asyncio.to_thread(self._decode, chunk) if large else self._decode(chunk):
                self.began = self.began or begins_reply(events)
                return self._within_text(events)
        if self._failure is not None:
            raise self._failure
        return []

    async def _read_whole(self, begun: bytes) -> list[Event]:
        """A reply in one piece, of which this is the beginning."""
        assert self._response is not None
        body = await read_bounded(self._response, begun, seconds=self._between_chunks, largest=LONGEST_LINE)
        if (failure := await self._take(body)) is not None:
            raise failure
        self.began, self._ended = True, True
        events, self._whole_reply = self._whole_reply or [], None
        return self._within_text(events)

    def _within_text(self, events: list[Event]) -> list[Event]:
        """Those up to the longest text. What is more is a failure, which waits until these were read."""
        for place, event in enumerate(events):
            if isinstance(event, TextDelta | ReasoningDelta | CallInputDelta):
                self._characters += len(event.text)
                if self._characters > self._longest_text:
                    self._failure = too_much_text(self._url, self._longest_text)
                    if not place:
                        raise self._failure
                    return events[:place]
        return events

    def _out_of_bounds(self, chunk: bytes) -> ProviderError | None:
        """A reply without an end, or in a line without one, is broken off."""
        self._received += len(chunk)
        if self._received > LONGEST_REPLY or self._frames.pending > LONGEST_LINE:
            return too_large(self._url, LONGEST_REPLY, LONGEST_LINE)
        if self._deadline is not None and asyncio.get_running_loop().time() > self._deadline:
            return too_long(self._url, self._whole)
        return None

    def close(self) -> None:
        """Hang up, unless all was read: then the connection is back in the pool already."""
        if self._stall_timer is not None:
            self._stall_timer.stop()
        if self._response is not None:
            self._response.close()

    def _decode(self, chunk: bytes) -> list[Event]:
        """The events in a chunk, or in its absence the last ones. A failure waits until these were read."""
        events: list[Event] = []
        frame = b""
        try:
            for frame in self._frames.feed(chunk) if chunk else self._frames.end():
                self._framed = True
                events.extend(self._decoder.feed(frame))
                self._done = frame == DONE or getattr(self._decoder, "over", False)
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

    def _rejection(self, response: aiohttp.ClientResponse, body: bytes) -> ProviderError:
        if 300 <= response.status < 400:
            return redirected(self._url, response.status, response.headers.get("Location"))
        wait = retry_after(response.headers, self._clock())
        return error_in_body(body, status=response.status, retry_after=wait)


class _StallTimer:
    """Hangs up when nothing came for too long while somebody waited.

    One timer looks at the stream now and then; a read costs two assignments, not a timer of its own, and a
    reply that came at once needs none.
    """

    def __init__(self, limit: float | None, hang_up: Callable[[], None]) -> None:
        self.limit = limit
        self.expired = False
        self._hang_up = hang_up
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._since = self._loop.time()
        if self._timer is None and self.limit is not None:
            self._timer = self._loop.call_at(self._since + self.limit, self._look)

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
            self.expired = True
            self._hang_up()


async def read_bounded(
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
    except (OSError, client_error()):
        pass
    return bytes(body)


def client_error() -> type[Exception]:
    import aiohttp

    return aiohttp.ClientError
