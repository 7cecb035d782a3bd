"""Read a turn as replies to a caller: their texts, the calls for the caller, and their ends.

A turn in which the caller runs tools consists of several replies. Each ends when only the caller has
something left to do. The next begins after the message that made those calls.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dragoman.errors import DragomanError
from dragoman.messages import events as e
from dragoman.messages.endings import FAILED, INCOMPLETE, REFUSED, notice_of
from dragoman.messages.message import Arguments, Citation, Error, Message
from dragoman.messages.usage import Usage
from dragoman.runtime import Runtime
from dragoman.server.context import Context
from dragoman.server.protocols.event_reader import (
    CallForClient,
    CallOpened,
    EventReader,
    Kind,
    PartClosed,
    PartDelta,
    PartOpened,
    Value,
)
from dragoman.server.protocols.openai.api_errors import NEVER_AGAIN
from dragoman.server.protocols.openai.begin_turn import ReplyPlace
from dragoman.turn.facts import TurnOptions, options_in
from dragoman.turn.output import Unfit, read_answer

Outcome: TypeAlias = Literal["completed", "tool_calls", "error", "cancelled"]

STOPPED = "stopped"  # the kind of error when the server stops and the turn resumes after a restart
BROKEN = "The reply broke off, and the model writes it again. Send the request again."


@dataclass(slots=True, frozen=True)
class OutputOpened:
    """A part begins. `continues` means that it follows the text before it without a break."""

    kind: Kind
    message: str
    continues: bool = False


@dataclass(slots=True, frozen=True)
class OutputClosed:
    kind: Kind
    citations: tuple[Citation, ...] = ()


@dataclass(slots=True, frozen=True)
class TextBecameReasoning:
    """All texts of a message so far turned out to be reasoning. Clients that have shown them cannot remove
    them."""

    message: str


@dataclass(slots=True, frozen=True)
class ReplyOver:
    outcome: Outcome
    finish: str = "stop"
    usage: Usage = Usage()
    error: str = ""
    kind: str = "error"  # of the error


Piece: TypeAlias = OutputOpened | PartDelta | OutputClosed | TextBecameReasoning | CallForClient | ReplyOver


@dataclass(slots=True)
class ReplyReader:
    """Reads the events of one reply.

    `tools` are those that the caller runs. With `typed`, only a validated answer is shown. `after` is the
    message after which the reply begins.
    """

    tools: frozenset[str] = frozenset()
    typed: bool = False
    after: str | None = None
    over: bool = False
    usage: Usage = Usage()
    _passed: bool = False  # whether the message `after` was seen
    _begun: bool = False
    _message: str = ""
    _known: set[str] = field(default_factory=set)  # messages that have begun
    _whole: set[str] = field(default_factory=set)  # messages that came complete
    _shown: set[str] = field(default_factory=set)  # messages of which text was shown
    _thought: set[str] = field(default_factory=set)  # messages of which only reasoning was shown
    _finish: str = ""
    # the calls of the current message, and whether each is done
    _calls: dict[str, bool] = field(default_factory=dict)
    _handed: set[str] = field(default_factory=set)
    _cited: list[Citation] | None = None  # citations of the open text
    _kind: str = "error"
    _reader: EventReader = field(default_factory=EventReader)

    def feed(self, event: e.Event) -> Iterator[Piece]:
        if self.over:
            return
        match event:
            case e.MessageAdded(message=whole):
                yield from self._add(whole)
            case e.ErrorRaised(kind=kind):
                self._kind = kind
            case e.CallStart() | e.CallEnd() if self._belongs:
                yield from self._move(event)
            case _:
                for value in self._reader.read(event):
                    yield from self._take(value)

    @property
    def _belongs(self) -> bool:
        return self._begun or self.after is None

    def interrupt(self, why: str, kind: str = "error") -> Iterator[Piece]:
        """End the reply: no process writes it any longer, or another one does."""
        if not self.over:
            self._kind = kind
            yield from self._close()
            yield from self._finish_with("error", error=why)

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    def _enter(self, message: str) -> bool:
        """Return whether a message belongs to this reply."""
        self._begun = self._begun or self.after is None or (self._passed and message != self.after)
        self._passed = self._passed or message == self.after
        return self._begun

    def _begin(self, message: str) -> Iterator[Piece]:
        if not self._enter(message):
            return
        if message in self._whole:  # The message was read from the store at the moment it arrived.
            return
        if message in self._shown:
            yield from self._finish_with("error", error=BROKEN)
            return
        self._known.add(message)
        self._message = message
        self._calls.clear()

    def _add(self, message: Message) -> Iterator[Piece]:
        if not self._enter(message.id) or message.id in self._known or message.role == "user":
            return
        yield from self._begin(message.id)
        for value in self._reader.tell([message], added=True):
            yield from self._write(value)
        self._whole.add(message.id)
        self._calls = {call.id: call.state.settled for call in message.calls}
        for call in message.calls:  # A complete reply has already started its calls.
            if call.started is not None and call.tool in self.tools:
                yield from self._hand(call.id, call.tool, call.arguments)
        self._end_message(message.finish or "stop", message.usage or Usage())
        yield from self._look()

    # ── parts of a message ────────────────────────────────────────────────────────────────────────

    def _take(self, value: Value) -> Iterator[Piece]:
        match value:
            case e.StepStart(message=message):
                yield from self._begin(message)
            case e.TurnEnd():
                yield from self._end(value)
            case _ if self._belongs and self._message not in self._whole:
                yield from self._write(value)

    def _write(self, value: Value) -> Iterator[Piece]:
        match value:
            case PartOpened(kind="text") | PartDelta(kind="text") | PartClosed(kind="text") if self.typed:
                pass
            case PartOpened(kind=kind):
                yield self._open(kind)
            case PartDelta():
                yield value
            case PartClosed(kind=kind):
                citations, self._cited = self._cited or (), None
                yield OutputClosed(kind, tuple(citations))
            case e.TextCited(citations=sources) if self._cited is not None:
                self._cited += sources
            case e.TextEnd(was_reasoning=True):
                self._thought.add(self._message)
                yield TextBecameReasoning(self._message)
            case CallOpened(call=call):
                self._calls[call] = False
            case e.MessageEnd(finish=finish, usage=usage):
                self._end_message(finish, usage)
            case Error(kind=failed):
                self._kind = failed

    def _open(self, kind: Kind) -> OutputOpened:
        said = self._shown - self._thought
        same = self._message in said or not said
        if kind == "text":
            self._cited = []
            self._shown.add(self._message)
            self._thought.discard(self._message)
        return OutputOpened(kind, self._message, same or self._finish in INCOMPLETE)

    def _close(self) -> Iterator[Piece]:
        for value in self._reader.close():
            yield from self._take(value)

    def _end_message(self, finish: str, usage: Usage) -> None:
        self._finish = finish
        self.usage += usage

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def _move(self, event: e.CallStart | e.CallEnd) -> Iterator[Piece]:
        if isinstance(event, e.CallStart) and event.client and event.tool in self.tools:
            yield from self._hand(event.call, event.tool, event.arguments)
        else:
            self._calls[event.call] = isinstance(event, e.CallEnd)
        yield from self._look()

    def _hand(self, call: str, tool: str, arguments: Arguments) -> Iterator[Piece]:
        self._calls[call] = True
        if call not in self._handed:  # A new owner of the turn starts the call again.
            self._handed.add(call)
            yield from self._close()
            yield CallForClient(call, tool, arguments)

    def _look(self) -> Iterator[Piece]:
        """End the reply if only the caller has something left to do."""
        if self._handed & self._calls.keys() and all(self._calls.values()):
            yield from self._finish_with("tool_calls")

    # ── the end ───────────────────────────────────────────────────────────────────────────────────

    def _end(self, end: e.TurnEnd) -> Iterator[Piece]:
        finish = end.finish or self._finish or "stop"
        match end.state:
            case "completed" if finish in FAILED:
                yield from self._finish_with("error", error=notice_of(finish, "the model") or finish)
            case "completed":
                if self.typed:
                    yield from self._answer(end.text, finish)
                yield from self._finish_with("completed", finish)
            case "cancelled":
                yield from self._finish_with("cancelled", error="The turn was cancelled.")
            case _:
                yield from self._finish_with("error", error=end.error or "the turn failed")

    def _answer(self, text: str, finish: str) -> Iterator[Piece]:
        """Yield only the value: validation accepts a sentence or a fence around it."""
        if finish not in INCOMPLETE | REFUSED:
            try:
                text = json.dumps(read_answer(text, wrapped=False), ensure_ascii=False)
            except Unfit:
                pass  # This text was never validated, so it is shown unchanged.
        if text:
            yield self._open("text")
            yield PartDelta("text", text)
            yield OutputClosed("text")

    def _finish_with(self, outcome: Outcome, finish: str = "stop", error: str = "") -> Iterator[Piece]:
        self.over = True
        # Calls of the server do not concern the caller.
        if outcome == "tool_calls" or finish == "tool_calls":
            finish = "tool_calls" if outcome == "tool_calls" else "stop"
        yield ReplyOver(outcome, finish, self.usage, error, self._kind)


# ── while a caller listens ────────────────────────────────────────────────────────────────────────


T = TypeVar("T")

WELCOME = b": welcome\n\n"
STOPPING = "The server is stopping. The turn continues after the restart."
LEFT = "the client went away"


async def reader_of(runtime: Runtime, place: ReplyPlace) -> ReplyReader:
    options = await options_of(runtime, place.turn)
    tools = frozenset(spec.name for spec in options.client_tools)
    return ReplyReader(tools, typed=options.output is not None, after=place.after)


async def options_of(runtime: Runtime, turn: str) -> TurnOptions:
    return options_in(await runtime.store.facts(turn))


async def pieces_of(runtime: Runtime, place: ReplyPlace, reader: ReplyReader) -> AsyncIterator[Piece]:
    """Yield the reply until it ends. A turn that waits for a user has not ended."""
    try:
        async for event in runtime.turn(place.turn).events():
            if isinstance(event, e.TurnStart) and event.resumed:  # Only the store has what came before.
                for message in await messages_of_turn(runtime, place):
                    for piece in reader.feed(e.MessageAdded(message)):
                        yield piece
            for piece in reader.feed(event):
                yield piece
            if reader.over:
                return
        why, kind = STOPPING, STOPPED
    except DragomanError as error:
        why, kind = str(error), "error"
    for piece in reader.interrupt(why, kind):
        yield piece


async def messages_of_turn(runtime: Runtime, place: ReplyPlace) -> list[Message]:
    messages, _ = await runtime.store.messages(place.conversation)
    return [message for message in messages if message.turn == place.turn]


# ── while a caller listens ────────────────────────────────────────────────────────────────────────


async def while_connected(
    request: Request, work: Awaitable[T], left: Callable[[], Awaitable[object]]
) -> T | None:
    """Return the result of `work`. If the client disconnects first, call `left` and return None."""
    task = asyncio.ensure_future(work)
    gone = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        await left()
        return None
    # The server is stopping and has waited long enough for this request.
    except asyncio.CancelledError as error:
        raise HTTPException(503, STOPPING, headers=NEVER_AGAIN) from error
    finally:
        gone.cancel()
        task.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def cancelled_if_left(
    context: Context, place: ReplyPlace, reader: ReplyReader, chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield the chunks. If the client disconnects before the reply ends, cancel the turn, unless the server
    stops."""
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    finally:
        if not reader.over and not context.publisher.streams.closed:
            await asyncio.shield(asyncio.create_task(cancel(context, place)))


async def cancel(context: Context, place: ReplyPlace, reason: str = LEFT) -> None:
    await context.runtime.commands.cancel(place.turn, reason)
    context.publisher.changed(place.conversation)


def frame(data: dict[str, Any], event: str | None = None) -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "replace")
