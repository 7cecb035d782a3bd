"""Builds messages from the events of a turn. No other code does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from dragoman.messages import events as e
from dragoman.messages.codec import replace_fast
from dragoman.messages.message import (
    CallState,
    Citation,
    Error,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Text,
    ToolCall,
)


class Draft:
    """A reply while it arrives. Feeding it costs an append. The message is built only when it is read."""

    def __init__(self, begun: Message) -> None:
        self._message = begun
        self._parts: list[Part | list[str]] = [*begun.parts]  # A list holds the chunks of an open part.
        self._open: dict[str, int] = {}  # "text", "reasoning" or a call's ID → its index in _parts
        self._calls = {part.id: at for at, part in enumerate(begun.parts) if isinstance(part, ToolCall)}
        self._inner = {call.id: call for call in begun.inner}
        self._citations: dict[int, tuple[Citation, ...]] = {}  # citations of the open text at this index
        self._logprobs: list[JsonValue] = []
        self._built: Message | None = begun

    @property
    def id(self) -> str:
        return self._message.id

    @property
    def message(self) -> Message:
        """Return the message so far."""
        if self._built is None:
            inner = tuple(self._inner.values())
            self._built = replace_fast(self._message, parts=tuple(self._so_far()), inner=inner)
            if self._logprobs:
                metadata = {**self._message.metadata, "logprobs": [*self._logprobs]}
                self._built = replace_fast(self._built, metadata=metadata)
        return self._built

    def apply(self, event: e.Event) -> None:
        self._built = None
        fold = _FOLD.get(type(event))
        if fold is not None:
            fold(self, event)

    def fail(self, error: Error) -> None:
        """Mark the message with the error that interrupted it."""
        self._built = None
        self._close_all()
        self._parts.append(error)

    # ── one method for each event that shapes a message ───────────────────────────────────────────

    def _name_model(self, event: e.StepModel) -> None:
        self._message = replace(self._message, model=event.model)

    def _start_reasoning(self, event: e.ReasoningStart) -> None:
        self._begin("reasoning")

    def _start_text(self, event: e.TextStart) -> None:
        self._begin("text")

    def _add_reasoning(self, event: e.ReasoningDelta) -> None:
        self._pieces("reasoning").append(event.text)

    def _add_text(self, event: e.TextDelta) -> None:
        self._pieces("text").append(event.text)

    def _end_reasoning(self, event: e.ReasoningEnd) -> None:
        place, text = self._close("reasoning")
        self._parts[place] = Reasoning(
            text,
            event.signature,
            event.wire,
            self._message.model,
            event.opaque,
            event.seconds,
            event.field_name,
        )

    def _end_text(self, event: e.TextEnd) -> None:
        place, text = self._close("text")
        self._parts[place] = Text(text, self._citations.get(place, ()), event.phase)
        if event.was_reasoning:
            model = self._message.model
            self._parts = [
                Reasoning(part.text, model=model) if isinstance(part, Text) else part for part in self._parts
            ]

    def _cite(self, event: e.TextCited) -> None:
        place = self._open.get("text")
        if place is not None:
            self._citations[place] = (*self._citations.get(place, ()), *event.citations)
            return
        for place in reversed(range(len(self._parts))):
            if isinstance(part := self._parts[place], Text):
                self._parts[place] = replace(part, citations=(*part.citations, *event.citations))
                return
        self._parts.append(Text("", tuple(event.citations)))  # Citations without any text.

    def _add_item(self, event: e.ItemAdded) -> None:
        self._parts.append(
            ProviderItem(event.kind, event.text, event.wire, self._message.model, event.opaque)
        )

    def _add_file(self, event: e.FileAdded) -> None:
        self._parts.append(replace(event.file, made_by=self._message.model))

    def _start_call(self, event: e.CallInputStart) -> None:
        self._calls[event.call] = len(self._parts)
        self._parts.append(
            ToolCall(
                event.call,
                event.tool,
                provider_id=event.provider_id,
                format=event.format,
                guessed=event.guessed,
            )
        )

    def _end_call(self, event: e.CallInputEnd) -> None:
        self._change(
            event.call,
            tool=event.tool,
            arguments=event.arguments or {},
            raw=event.raw,
            signature=event.signature,
            signed_by=self._message.model if event.signature else None,
        )

    def _ask_call(self, event: e.CallAsked) -> None:
        if event.kind == "review":
            self._change(event.call, state=CallState.REVIEWING)
        elif event.kind != "tool":  # A tool that asks a question keeps running.
            self._change(event.call, state=CallState.ASKED, arguments=event.arguments)

    def _run_call(self, event: e.CallStart) -> None:
        self._change(event.call, state=CallState.RUNNING, arguments=event.arguments, started=event.at)

    def _settle_call(self, event: e.CallEnd) -> None:
        self._change(
            event.call,
            tool=event.tool,
            arguments=event.arguments,
            state=event.state,
            result=event.result,
            original=event.original,
            ended=event.at,
        )

    def _add_data(self, event: e.ProviderData) -> None:
        """Store log probabilities per token, and the metadata of a transcript, with the message.

        Other provider data is only for listeners.
        """
        if isinstance(transcript := event.data.get("transcript"), dict):
            self._message = replace(
                self._message, metadata={**self._message.metadata, "transcript": transcript}
            )
        chances = event.data.get("logprobs")
        tokens = chances.get("content") if isinstance(chances, dict) else chances
        if isinstance(tokens, list):
            self._logprobs += tokens

    def _end(self, event: e.MessageEnd) -> None:
        self._close_all()
        self._message = replace_fast(self._message, finish=event.finish, usage=event.usage)
        if event.reason:
            metadata = {**self._message.metadata, "reason": event.reason}
            self._message = replace_fast(self._message, metadata=metadata)

    # ── open and closed parts ─────────────────────────────────────────────────────────────────────

    def _begin(self, kind: str) -> int:
        if kind in self._open:  # The previous part was never ended.
            self._parts = [*self._so_far()]
        self._open[kind] = place = len(self._parts)
        self._parts.append([])
        return place

    def _pieces(self, kind: str) -> list[str]:
        place = self._open.get(kind)
        if place is None:
            place = self._begin(kind)
        pieces = self._parts[place]
        assert isinstance(pieces, list)
        return pieces

    def _close(self, kind: str) -> tuple[int, str]:
        text = "".join(self._pieces(kind))
        return self._open.pop(kind), text

    def _close_all(self) -> None:
        self._parts = [*self._so_far()]
        self._open.clear()

    def _make_inner(self, event: e.InnerCallMade) -> None:
        self._inner[event.call] = ToolCall(event.call, event.tool, event.arguments, made_in=event.made_in)

    def _change(self, call: str, **changes: object) -> None:
        if (inner := self._inner.get(call)) is not None:
            self._inner[call] = replace_fast(inner, **changes)
            return
        place = self._calls[call]
        part = self._parts[place]
        assert isinstance(part, ToolCall)
        self._parts[place] = replace_fast(part, **changes)

    def _so_far(self) -> list[Part]:
        reasoning = self._open.get("reasoning")
        return [
            part
            if not isinstance(part, list)
            else Reasoning("".join(part), model=self._message.model)
            if place == reasoning
            else Text("".join(part), self._citations.get(place, ()))
            for place, part in enumerate(self._parts)
        ]


class DraftView:
    """A read-only view of an arriving reply, for plugins."""

    __slots__ = ("_draft",)
    _draft: Draft

    def __init__(self, draft: Draft) -> None:
        object.__setattr__(self, "_draft", draft)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"A draft cannot be changed (draft.{name} = …). To change a reply while it streams, call "
            "request.filter_reply in on_before_request."
        )

    @property
    def id(self) -> str:
        return self._draft.id

    @property
    def message(self) -> Message:
        """Return the message so far."""
        return self._draft.message


_FOLD: dict[type, Callable[[Draft, Any], None]] = {
    e.StepModel: Draft._name_model,
    e.ReasoningStart: Draft._start_reasoning,
    e.ReasoningDelta: Draft._add_reasoning,
    e.ReasoningEnd: Draft._end_reasoning,
    e.TextStart: Draft._start_text,
    e.TextDelta: Draft._add_text,
    e.TextEnd: Draft._end_text,
    e.TextCited: Draft._cite,
    e.ItemAdded: Draft._add_item,
    e.FileAdded: Draft._add_file,
    e.CallInputStart: Draft._start_call,
    e.CallInputEnd: Draft._end_call,
    e.InnerCallMade: Draft._make_inner,
    e.CallAsked: Draft._ask_call,
    e.CallStart: Draft._run_call,
    e.CallEnd: Draft._settle_call,
    e.ProviderData: Draft._add_data,
    e.MessageEnd: Draft._end,
}


class TurnFold:
    """The messages of a turn, built from its events in order.

    `begun` holds the messages it had before them.
    """

    def __init__(self, conversation: str, turn: str, begun: Iterable[Message] = ()) -> None:
        self._conversation = conversation
        self._turn = turn
        self._drafts: dict[str, Draft] = {}
        self._homes: dict[str, Draft] = {}  # the reply of each call
        self._current: Draft | None = None
        for message in begun:
            self._add(message)

    @property
    def messages(self) -> dict[str, Message]:
        """Return the messages by ID, in the order in which they started."""
        return {id: draft.message for id, draft in self._drafts.items()}

    @property
    def arriving(self) -> str | None:
        """Return the ID of the unfinished reply."""
        reply = self._current
        return reply.id if reply is not None and reply.message.finish is None else None

    def apply(self, event: e.Event) -> None:
        match event:
            case e.StepStart(message=id, parent=parent, model=model):
                empty = Message(id, self._conversation, parent, "assistant", (), turn=self._turn, model=model)
                self._current = self._drafts[id] = Draft(empty)
            case e.MessageAdded(message=message):
                self._add(message)
            case e.CallAsked(call=call) | e.CallStart(call=call) | e.CallEnd(call=call):
                if (home := self._homes.get(call)) is not None:
                    home.apply(event)
            case e.InnerCallMade(call=call, made_in=made_in):
                if (home := self._homes.get(made_in.call)) is not None:
                    self._homes[call] = home
                    home.apply(event)
            case _ if self._current is not None:
                if isinstance(event, e.CallInputStart):
                    self._homes[event.call] = self._current
                self._current.apply(event)

    def _add(self, message: Message) -> None:
        self._drafts[message.id] = draft = Draft(message)
        self._homes.update({call.id: draft for call in message.all_calls})


def fold(events: Iterable[e.Event], conversation: str = "", turn: str = "") -> list[Message]:
    """Return the messages of a whole turn from its events, in the order in which they started."""
    folded = TurnFold(conversation, turn)
    for event in events:
        folded.apply(event)
    return [message for message in folded.messages.values() if message.parts]


@dataclass(slots=True)
class Appending:
    """A message about to be added. Replace `message` to change it."""

    message: Message
    prevented: bool = False
    placed: list[Message] = field(default_factory=list)
    id: str = ""  # its ID before any change

    def __post_init__(self) -> None:
        self.id = self.id or self.message.id

    def prevent(self) -> None:
        """Do not add the message. A plugin that wants it elsewhere calls `place`."""
        self.prevented = True

    def place(self, message: Message) -> None:
        """Add this message instead, with any parent."""
        self.placed.append(message)

    @property
    def added(self) -> list[Message]:
        """Return the messages that remain to be added."""
        return self.placed if self.prevented else [self.message]
