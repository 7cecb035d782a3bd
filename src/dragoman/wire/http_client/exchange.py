"""Make one attempt at a reply: send a request and decode its stream.

Every failure becomes a ProviderError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from dragoman.errors import ProviderError
from dragoman.messages.events import CallInputDelta, Event, FileAdded, ReasoningDelta, TextDelta
from dragoman.messages.usage import Usage
from dragoman.wire.http_client.framing import DONE, FRAMINGS, FramingName, Unsplit
from dragoman.wire.http_client.payload import WholeBody
from dragoman.wire.provider_errors import error_in_body
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
    unfinished,
    unreachable,
)
from dragoman.wire.wire import BreaksOff, Decoder, ReadsWhole, begins_reply

if TYPE_CHECKING:  # aiohttp takes 0.2 s to import, so it is imported when the first request is sent.
    import aiohttp

ERROR_BODY = 64 * 1024  # bytes: enough for any error message
ERROR_SECONDS = 10.0  # for the body of an error, once its status is known
LONGEST_TEXT = 8_000_000  # characters of text, reasoning and arguments: ten times what any model writes
LARGE_BODY = 1 << 20  # bytes: anything larger is read in a thread


class Exchange:
    """One attempt: `open` sends the request, `read` returns events, `close` disconnects.

    `send` returns the response. The limits are seconds. None: wait forever. `largest` is the maximum of bytes
    of the whole reply.
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
        largest: int,
        framing: FramingName = "sse",
        longest_text: int = LONGEST_TEXT,
    ) -> None:
        self.began = False  # A part of the reply was passed on: the request must not be repeated.
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
        self._largest = largest
        self._clock = clock
        self._framing = FRAMINGS[framing]
        self._frames = self._framing()
        self._response: aiohttp.ClientResponse | None = None
        self._stall_timer: _StallTimer | None = None
        self._unread = b""
        self._whole_reply: Iterator[Event] | None = None  # if it came in one chunk
        self._head = b""  # the start of the body, for an error that quotes it
        self._framed = False
        self._blank = True  # only white space has arrived
        self._done = False
        self._ended = False
        self._failure: ProviderError | None = None

    @property
    def usage(self) -> Usage:
        """The usage that the provider has reported so far: some do before the end. Invalid counts are
        ignored."""
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
                self._begin_whole()
                begun, self._unread = self._unread, b""
                failure = await self._take_whole(response, begun)
        except (OSError, client_error()) as error:  # TimeoutError is an OSError
            failure = unreachable(error, self._url, self._first_byte)
        if failure is not None:
            raise failure  # raised here, so that no error with our headers is attached as its context
        self._head = self._unread[:EXCERPT]
        self._begin_whole()
        self._stall_timer = _StallTimer(self._between_chunks, self.close)

    def _begin_whole(self) -> None:
        """Start the time limit of the whole reply."""
        if self._whole is not None and self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._whole

    def _is_whole(self, response: aiohttp.ClientResponse) -> bool:
        """Return whether the body is not a stream. Audio can begin with any byte: only its type tells."""
        if self._framing is Unsplit:
            return response.content_type in ("application/json", "application/problem+json", "text/html")
        return is_no_stream(self._unread)

    async def _take_whole(self, response: aiohttp.ClientResponse, begun: bytes) -> ProviderError | None:
        """Read a body that is not a stream, such as a complete reply of a server that does not stream.

        If it breaks off, the complete images in it are kept.
        """
        if begun.lstrip().startswith(b"<"):
            return no_stream(await read_bounded(response, begun, seconds=self._between_chunks))
        body, chunk, torn = WholeBody(), begun, None
        while chunk:
            if (torn := self._out_of_bounds(chunk)) is not None:
                break
            body.feed(chunk)
            try:
                async with asyncio.timeout(self._between_chunks):
                    chunk = await response.content.readany()
            except TimeoutError:
                torn = stalled(self._url, self._between_chunks)
                break
            except (OSError, client_error()) as error:
                torn = broken(error, self._url)
                break
        # Decode images in a thread, while other tasks wait for their events.
        large = self._received > LARGE_BODY
        return await asyncio.to_thread(self._read_body, body, torn) if large else self._read_body(body, torn)

    def _read_body(self, body: WholeBody, torn: ProviderError | None) -> ProviderError | None:
        try:
            try:
                value = body.value(cut=torn is not None)
            except ValueError:  # It ended normally but is incomplete, usually because a proxy gave up.
                value, torn = body.value(cut=True), torn or unfinished()
            events = self._decoder.whole(value) if isinstance(self._decoder, ReadsWhole) else None
            if events is not None and not isinstance(events, Iterator):
                events = [*events, *(() if torn else self._decoder.end())]
        except ProviderError as error:
            return error
        except (ValueError, LookupError, TypeError, AttributeError):
            events = None
        if events is None:
            return torn or no_stream(bytes(body.head))
        ended = isinstance(events, list) or torn is not None
        self._whole_reply = iter(events) if ended else chain(events, self._decoder.end())
        self._failure = torn
        return None

    async def read(self) -> list[Event]:
        """Return the next events. None when the reply is over."""
        if self._whole_reply is not None:
            return self._within_text(self._next_of_whole(self._whole_reply))
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
                    self._frames = self._framing()  # Discard half an event.
                    if not self._decoder.finish_word:  # otherwise the reply is complete
                        expired, limit = timer.expired, timer.limit
                        self._failure = stalled(self._url, limit) if expired else broken(error, self._url)
                        break
                timer.end()
            if (failure := self._out_of_bounds(chunk)) is not None:
                self._failure = failure
                fitting = chunk[: len(chunk) - max(0, self._received - self._largest)]
                if fitting and (events := self._decode(fitting)):
                    return events
                break
            if self._blank and chunk.strip():
                self._blank = False
                # after empty lines that were sent as keep-alive
                if self._framing is not Unsplit and is_no_stream(chunk):
                    self._received -= len(chunk)
                    if (failure := await self._take_whole(self._response, chunk)) is not None:
                        raise failure
                    return await self.read()
            # The end of an image is decoded in a thread, while other tasks wait for their events.
            large = self._frames.pending > LARGE_BODY and b"\n" in chunk
            if events := await asyncio.to_thread(self._decode, chunk) if large else self._decode(chunk):
                self.began = self.began or begins_reply(events)
                return self._within_text(events)
        if self._failure is not None:
            decoder, is_last = (
                self._decoder,
                self.began or not self._failure.retryable,
            )  # it is not retried
            if is_last and isinstance(decoder, BreaksOff) and (kept := [*decoder.break_off()]):
                return kept
            raise self._failure
        return []

    def _within_text(self, events: list[Event]) -> list[Event]:
        """Return the events up to the text limit.

        The failure for the rest is raised after these were read.
        """
        for place, event in enumerate(events):
            if isinstance(event, TextDelta | ReasoningDelta | CallInputDelta):
                self._characters += len(event.text)
                if self._characters > self._longest_text:
                    self._failure = too_much_text(self._url, self._longest_text)
                    if not place:
                        raise self._failure
                    return events[:place]
        return events

    def _next_of_whole(self, events: Iterator[Event]) -> list[Event]:
        """Return the next events of a reply in one chunk: one file at a time, since each can be large."""
        batch: list[Event] = []
        try:
            for event in events:
                batch.append(event)
                if type(event) is FileAdded:
                    break
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self._failure = garbled(b"", error)
        self.began = self.began or begins_reply(batch)
        if not batch and self._failure is not None:
            raise self._failure
        return batch

    def _out_of_bounds(self, chunk: bytes) -> ProviderError | None:
        """Return an error if the reply exceeds its limit of bytes or time."""
        self._received += len(chunk)
        if self._received > self._largest:
            return too_large(self._url, self._largest)
        if self._deadline is not None and asyncio.get_running_loop().time() > self._deadline:
            return too_long(self._url, self._whole)
        return None

    def close(self) -> None:
        """Disconnect, unless everything was read: then the connection is already back in the pool."""
        if self._stall_timer is not None:
            self._stall_timer.stop()
        if self._response is not None:
            self._response.close()

    def _decode(self, chunk: bytes) -> list[Event]:
        """Return the events in a chunk, or the last ones without a chunk. A failure is raised after these
        were read."""
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
    """Disconnects when a reader has waited too long without data.

    One timer checks the stream from time to time. A read costs two assignments instead of a timer, and a
    reply that arrives immediately needs none.
    """

    def __init__(self, limit: float | None, disconnect: Callable[[], None]) -> None:
        self.limit = limit
        self.expired = False
        self._disconnect = disconnect
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
            self._disconnect()


async def read_bounded(
    response: aiohttp.ClientResponse,
    begun: bytes = b"",
    *,
    seconds: float | None = ERROR_SECONDS,
    largest: int = ERROR_BODY,
) -> bytes:
    """Return the rest of a body, up to slightly more than `largest` bytes and for a limited time."""
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
