"""Read a turn for clients of other protocols: events and stored messages, as one sequence of values.

A value is defined here, or is an event that needs no interpretation. Missed and current events yield the same
values, so a writer has one case for each and only maps fields. The reader pairs the beginnings and ends of
parts, and knows what the turn waits for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import JsonValue

from dragoman.messages import events as e
from dragoman.messages.message import (
    Arguments,
    CallState,
    Error,
    File,
    Message,
    ProviderItem,
    Reasoning,
    Text,
    ToolCall,
    json_text,
)
from dragoman.messages.questions import Question
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.live.log import Snapshot
from dragoman.turn.machine import State

_LONGEST = 200  # maximum characters of a progress line
Kind: TypeAlias = Literal["text", "reasoning"]


@dataclass(slots=True, frozen=True)
class MessageTold:
    """A whole message of the model follows. `added` marks a new message, otherwise it was stored before."""

    message: Message
    added: bool = False


@dataclass(slots=True, frozen=True)
class PartOpened:
    kind: Kind


@dataclass(slots=True, frozen=True)
class PartDelta:
    kind: Kind
    text: str


@dataclass(slots=True, frozen=True)
class PartClosed:
    kind: Kind


@dataclass(slots=True, frozen=True)
class CallOpened:
    """The arguments of a call follow. `resumed` means that some were written before and are left out."""

    call: str
    tool: str
    resumed: bool = False


@dataclass(slots=True, frozen=True)
class CallShown:
    """The complete arguments of a call: an object, or the `raw` string. The same call can be shown again."""

    call: str
    tool: str
    arguments: Arguments | None
    raw: str | None = None
    stored: bool = False  # A stored call has an empty object instead of its raw string.
    runs: bool = False


@dataclass(slots=True, frozen=True)
class CallForClient:
    """A call that the client must run."""

    call: str
    tool: str
    arguments: Arguments


@dataclass(slots=True, frozen=True)
class Asked:
    """An approval request. If a program made the call, `call` is the program's call, which the client
    knows."""

    id: str
    about: Question | e.CallAsked
    call: str

    @property
    def inner(self) -> bool:
        return self.call != self.about.call


Value: TypeAlias = (
    MessageTold
    | PartOpened
    | PartDelta
    | PartClosed
    | CallOpened
    | CallShown
    | CallForClient
    | Asked
    | ProviderItem
    | Error
    | e.Event
)


class EventReader:
    """Follows one turn. A program counts as one call: its inner calls are reported as progress, unless the
    client must run them.

    `client_tools` are tools of the client. It runs each shown call of these, so such a call is shown only
    when it may run, or when it has ended. `also_handed` are tools that the client also runs, but that are
    always shown.
    """

    def __init__(self, client_tools: Collection[str] = (), also_handed: Collection[str] = ()) -> None:
        self.client_tools = client_tools
        self.asked: dict[str, Question | e.CallAsked] = {}  # open approval requests
        self.handed: dict[str, None] = {}  # calls that the client must run, in order
        self.model = ""
        self._also_handed = also_handed
        self._unsettled: set[str] = set()  # calls without a result
        self._programs: dict[str, str] = {}  # inner calls, with the calls of their programs
        self._state = ""
        self._open: Kind | None = None

    @property
    def waits(self) -> bool:
        """Whether the turn waits and everything that it waits for has been reported. The state is published
        before that."""
        waiting = {about.call for about in self.asked.values()} | self.handed.keys()
        waiting |= {self.program_of(call) for call in waiting}
        return self._state == State.WAITING and bool(waiting) and self._unsettled <= waiting

    def was_brought(self, id: str) -> None:
        """Record that the client has answered this approval request or run this call."""
        self.asked.pop(id, None)
        self.handed.pop(id, None)

    def program_of(self, call: str) -> str:
        """Return the call of the program that made this call. For other calls, return the call itself."""
        return self._programs.get(call, call)

    # ── text already sent ─────────────────────────────────────────────────────────────────────────

    def replay(self, snapshot: Snapshot) -> Iterator[Value]:
        """Yield the turn so far. The last part of an unfinished reply stays open."""
        self._state = snapshot.state
        yield from self.tell(snapshot.messages)
        for question in snapshot.questions:
            self.asked[question.id] = question
            yield Asked(question.id, question, self.program_of(question.call))

    def tell(self, messages: Iterable[Message], *, added: bool = False) -> Iterator[Value]:
        """Yield the model's output in these messages."""
        for message in messages:
            if message.role == "assistant":
                yield from self.close()
                self.model = message.model or self.model
                yield MessageTold(message, added)
                for call in message.inner:
                    yield from self._tell_inner(call)
                for part in message.parts:
                    yield from self.close()
                    yield from self._tell_part(part, whole=message.finish is not None)
                if message.finish is not None or added:
                    yield from self.close()

    def _tell_part(self, part: object, *, whole: bool) -> Iterator[Value]:
        match part:
            case Text(text=text, citations=citations):
                yield from self._write("text", text)
                if citations:
                    yield e.TextCited([*citations])
            case Reasoning(text=text):
                yield from self._write("reasoning", text)
            case ToolCall():
                yield from self._tell_call(part, whole=whole or bool(part.arguments))
            case File():
                yield e.FileAdded(part)
            case ProviderItem() | Error():
                yield part

    def _tell_call(self, call: ToolCall, *, whole: bool) -> Iterator[Value]:
        yield CallOpened(call.id, call.tool, resumed=not whole)
        if call.result is not None and call.state.settled:
            yield from self._settle(e.CallEnd(call.id, call.tool, call.arguments, call.state, call.result))
            return
        self._unsettled.add(call.id)
        theirs = call.tool in self.client_tools
        runs = call.state is CallState.RUNNING
        if whole and (runs or not theirs):
            yield CallShown(call.id, call.tool, call.arguments, stored=True, runs=runs)
        if runs and (theirs or call.tool in self._also_handed):
            yield from self._hand(call.id, call.tool, call.arguments)

    def _tell_inner(self, call: ToolCall) -> Iterator[Value]:
        if call.made_in is not None:
            self._programs[call.id] = call.made_in.call
        if call.state is CallState.RUNNING and call.tool in self._also_handed:
            yield from self._tell_call(call, whole=True)

    # ── events ────────────────────────────────────────────────────────────────────────────────────

    def read(self, event: e.Event) -> Iterator[Value]:
        match event:
            case e.InnerCallMade(call=call, made_in=place):
                self._programs[call] = place.call
                told = f"line {place.line}: {event.tool} {json_text(event.arguments)}"
                yield e.CallProgress(place.call, told[:_LONGEST])
            case e.CallStart(call=call, client=client) if call in self._programs and not client:
                pass
            case e.CallProgress(call=call, value=value) if call in self._programs:
                yield e.CallProgress(self._programs[call], value)
            case e.CallEnd(call=call) if call in self._programs and call not in self.handed:
                pass
            case e.TurnState(state=state):
                self._state = state
            case e.StepModel(model=model):
                self.model = model
            case e.StepStart(model=model):
                self.model = model
                yield from self._close_for(event)
            case e.TextDelta(text=text):
                yield from self._write("text", text)
            case e.ReasoningDelta(text=text):
                yield from self._write("reasoning", text)
            case e.MessageAdded(message=message) if message.role == "assistant":
                yield from self.tell([message], added=True)
            case e.CallInputStart(call=call, tool=tool):
                yield from self.close()
                yield CallOpened(call, tool)
            case e.CallInputEnd(call=call, tool=tool, arguments=arguments, raw=raw):
                self._unsettled.add(call)
                if tool not in self.client_tools:  # The client would run the call before a decision about it.
                    yield CallShown(call, tool, arguments, raw)
            case e.CallAsked(question=question):
                self.asked[question] = event
                yield Asked(question, event, self.program_of(event.call))
            case e.CallAnswered(question=question):
                self.asked.pop(question, None)
                yield e.CallAnswered(self.program_of(event.call), question, event.verdict, event.seq)
            case e.CallStart(call=call, tool=tool, arguments=arguments, client=client):
                yield CallShown(call, tool, arguments, runs=True)
                if client:
                    yield from self._hand(call, tool, arguments)
            case e.CallEnd():
                yield from self._settle(event)
            case (
                e.StepEnd()
                | e.TextStart()
                | e.ReasoningStart()
                | e.TextEnd()
                | e.ReasoningEnd()
                | e.FileAdded()
                | e.MessageEnd()
                | e.MessageAdded()
                | e.TurnEnd()
            ):
                yield from self._close_for(event)
            case _:
                yield event

    def close(self) -> Iterator[Value]:
        """Close the open part."""
        if self._open is not None:
            kind, self._open = self._open, None
            yield PartClosed(kind)

    def _close_for(self, event: e.Event) -> Iterator[Value]:
        yield from self.close()
        yield event

    def _write(self, kind: Kind, text: str) -> Iterator[Value]:
        if not text:
            return
        if self._open != kind:
            yield from self.close()
            self._open = kind
            yield PartOpened(kind)
        yield PartDelta(kind, text)

    def _hand(self, call: str, tool: str, arguments: Arguments) -> Iterator[Value]:
        self.handed[call] = None
        yield CallForClient(call, tool, arguments)

    def _settle(self, end: e.CallEnd) -> Iterator[Value]:
        self.handed.pop(end.call, None)
        self._unsettled.discard(end.call)
        yield end


class TurnWriter(ABC):
    """Writes the values of a reader in one protocol."""

    def __init__(self, reader: EventReader) -> None:
        self.reader = reader

    @abstractmethod
    def begin(self) -> dict[str, JsonValue]:
        """Return the first item of the stream."""

    @abstractmethod
    def stopping(self, why: str) -> dict[str, JsonValue]:
        """Return an error after which the client retries: the server stops, but the turn does not."""

    @abstractmethod
    def write(self, value: Value) -> Iterator[dict[str, JsonValue]]:
        """Yield the items for a value, often none."""

    @abstractmethod
    def ask_within(self, question: Question) -> Iterator[dict[str, JsonValue]]:
        """Yield an approval request whose event is incomplete: one of a task's calls, or a review."""

    @abstractmethod
    def pause(self) -> Iterator[dict[str, JsonValue]]:
        """End the response while the turn waits for the client."""

    @property
    def waits(self) -> bool:
        """Whether the client must return with input that the turn waits for."""
        return self.reader.waits

    async def act(self, turn: TurnHandle) -> None:  # noqa: B027 - most have nothing to do
        """Do what the turn expects from its writer."""

    def events(self, event: e.Event) -> Iterator[dict[str, JsonValue]]:
        return self.write_all(self.reader.read(event))

    def replay(self, snapshot: Snapshot) -> Iterator[dict[str, JsonValue]]:
        return self.write_all(self.reader.replay(snapshot))

    def close(self) -> Iterator[dict[str, JsonValue]]:
        return self.write_all(self.reader.close())

    def write_all(self, values: Iterable[Value]) -> Iterator[dict[str, JsonValue]]:
        return (written for value in values for written in self.write(value))
