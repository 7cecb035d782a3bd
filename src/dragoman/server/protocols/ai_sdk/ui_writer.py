"""Writes a turn as the chunks that `useChat` of the AI SDK (5, 6 and 7) folds into one UI message.

The message of a turn has the turn's id. Tools that came with the request are static parts, run by the page
that sent them; all others are dynamic ones, since no page knows them beforehand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages import events as e
from dragoman.messages.causes import approval_text
from dragoman.messages.message import Message
from dragoman.messages.parts import (
    CallState,
    Citation,
    Error,
    File,
    ProviderItem,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.questions import Question
from dragoman.messages.usage import Usage
from dragoman.server.protocols.ai_sdk.ui_input import UIMessage, UIPart
from dragoman.turn.live.log import Snapshot
from dragoman.turn.machine import State

Chunk: TypeAlias = dict[str, JsonValue]


def file_chunk(file: File) -> Chunk:
    """By its address here: `useChat` takes any."""
    url = file.url or f"/api/files/{file.blob}?type={file.media_type}"
    return {"type": "file", "url": url, "mediaType": file.media_type}


def question_chunk(id: str, asked: Question | e.CallAsked) -> Chunk:
    """Everything that a person is to know who answers it, wherever; `shown` is all of it in one text, with
    nothing invisible in it."""
    about: Chunk = {
        "id": id,
        "call": asked.call,
        "kind": asked.kind,
        "tool": asked.tool,
        "arguments": asked.arguments,
        "text": asked.text,
        "because": asked.because,
        "choices": [*asked.choices],
        "free": asked.free,
        "schema": asked.schema,
        "diff": asked.diff,
        "told": [*asked.told],
        "shown": approval_text(asked),
    }
    return data_chunk("question", about, id=id)


def data_chunk(name: str, data: JsonValue, *, id: str | None = None, transient: bool = False) -> Chunk:
    """What the protocol has no word for."""
    chunk: Chunk = {"type": f"data-{name}", "data": data}
    if id is not None:
        chunk["id"] = id
    if transient:
        chunk["transient"] = True
    return chunk


def usage_data(usage: Usage) -> JsonValue:
    return {key: value for key, value in asdict(usage).items() if value is not None}


APPROVALS = frozenset({"approve", "run", "loop", "interrupted"})  # questions that a yes or no answers
_FINISH = {
    "stop": "stop",
    "length": "length",
    "context": "length",
    "filter": "content-filter",
    "safety": "content-filter",
    "recitation": "content-filter",
    "refusal": "content-filter",
    "tool_calls": "tool-calls",
    "malformed": "error",
    "error": "error",
}


class UIMessageStream:
    """`brought` are the tools of the request; `approvals`: the client knows the word for them (from 6 on);
    `message`: the id under which it has the answer, or will have it."""

    def __init__(
        self,
        turn: str,
        conversation: str,
        *,
        brought: Collection[str],
        approvals: bool,
        message: str | None = None,
    ) -> None:
        self._turn = turn
        self._message = message or turn
        self._conversation = conversation
        self._brought = brought
        self._has_approvals = approvals
        self._open: dict[str, str] = {}  # "text" or "reasoning" → the id of the part that is being written
        self._parts = 0
        self._shown: dict[str, JsonValue] = {}  # calls whose arguments the client has, and what they are
        self._unsettled: set[str] = set()  # calls without a result
        self._asked: dict[str, tuple[str, str]] = {}  # open questions → their calls and kinds
        self._handed_out: set[str] = set()  # calls that the client is to run
        self._earlier: set[str] = set()  # calls of a message that the client goes on behind
        self._said = ""  # what stands between that and this one
        self._ends_in_calls = False  # the last step, as far as the client has it
        self._state = ""  # of the turn
        self._model = ""

    def begin(self) -> Chunk:
        about: JsonValue = {"turn": self._turn, "conversation": self._conversation}
        return {"type": "start", "messageId": self._message, "messageMetadata": about}

    def go_on_behind(self, snapshot: Snapshot, place: int, said: str) -> Iterator[Chunk]:
        """What was said up to this place stands in an earlier message of the client's, with this of the
        person's behind it. What came after it, and follows, is in a message of its own."""
        self._state, self._said = snapshot.state, said
        for message in snapshot.messages[:place]:
            for _ in self._replay_message(message):
                pass
            self._earlier |= {call.id for call in message.calls}
        self._open.clear()
        self._ends_in_calls = False
        for message in snapshot.messages[place:]:
            yield from self._replay_message(message)
        for question in snapshot.questions:
            asked = [*self._ask(question.id, question)]
            yield from asked if question.call not in self._earlier else ()

    @property
    def waits_for_client(self) -> bool:
        """Whether the turn waits, and the client can move it: it comes back with another request."""
        waiting = self._handed_out | {call for call, _ in self._asked.values()}
        approvals = self._has_approvals and any(kind in APPROVALS for _, kind in self._asked.values())
        told = self._unsettled <= waiting  # the state of a turn is published before the question
        return self._state == State.WAITING and told and bool(self._handed_out or approvals)

    def was_brought(self, id: str) -> None:
        """The client has answered this question, or run this call: it is not what the turn waits for now."""
        self._asked.pop(id, None)
        self._handed_out.discard(id)

    # ── what has been said already ────────────────────────────────────────────────────────────────

    def replay(self, snapshot: Snapshot) -> Iterator[Chunk]:
        """The turn so far. The last part of a reply that is still being written stays open."""
        self._state = snapshot.state
        for message in snapshot.messages:
            yield from self._replay_message(message)
        for question in snapshot.questions:
            yield from self._ask(question.id, question)

    def catch_up(self, snapshot: Snapshot, shown: UIMessage) -> Iterator[Chunk]:
        """Of the turn so far what a client lacks who shows this much of it: results of calls, and all that
        came after them. It may have been answered elsewhere, or by an earlier request that was lost."""
        self._state = snapshot.state
        has = {part.call: part for part in shown.calls}
        common = [place for place, one in enumerate(snapshot.messages) if any(c.id in has for c in one.calls)]
        last = common[-1] if common else len(snapshot.messages)
        for place, message in enumerate(snapshot.messages):
            yield from self._replay_message(message) if place > last else self._results(message, has)
        known = {part.approval.id for part in has.values() if part.approval is not None}
        for question in snapshot.questions:
            asked = [*self._ask(question.id, question)]
            yield from asked if question.id not in known else ()

    def _results(self, message: Message, has: Mapping[str, UIPart]) -> Iterator[Chunk]:
        """Of a reply that the client has: results of calls, and with which arguments they ran."""
        self._ends_in_calls = bool(message.calls) if message.role == "assistant" else self._ends_in_calls
        for part in message.parts if message.role == "assistant" else ():
            chunks = [*self._replay_part(part)]
            self._open.clear()
            if isinstance(part, ToolCall) and part.state.settled and part.id in has:
                known = has[part.id].settled
                yield from (c for c in chunks if not known and c["type"] != "tool-input-start")

    def _replay_message(self, message: Message) -> Iterator[Chunk]:
        if message.role != "assistant":
            return
        yield self._start_step()
        self._model = message.model or self._model
        for part in message.parts:
            yield from self._close()
            yield from self._replay_part(part)
        if message.finish is not None:
            yield from self._close()

    def _replay_part(self, part: object) -> Iterator[Chunk]:
        match part:
            case Text(text=text, citations=citations):
                yield from self._write("text", text)
                yield from self._cite(citations)
            case Reasoning(text=text) if text:
                yield from self._write("reasoning", text)
            case ToolCall():
                yield from self._replay_call(part)
            case File():
                yield file_chunk(part)
            case ProviderItem(kind=kind, text=text):
                yield data_chunk("item", {"kind": kind, "text": text})
            case Error(message=message):
                yield {"type": "error", "errorText": message}

    def _replay_call(self, call: ToolCall) -> Iterator[Chunk]:
        yield from self._start_input(call.id, call.tool)
        if call.state.settled and call.result is not None:
            yield from self._end_call(call.id, call.tool, call.arguments, call.state, call.result)
            return
        self._unsettled.add(call.id)
        if call.tool not in self._brought:
            if call.arguments:  # else they may be on their way
                yield from self._show_input(call.id, call.tool, call.arguments)
        elif call.state is CallState.RUNNING:
            yield from self._show_input(call.id, call.tool, call.arguments)
            self._handed_out.add(call.id)

    # ── what happens ──────────────────────────────────────────────────────────────────────────────

    def chunks(self, event: e.Event) -> Iterator[Chunk]:
        """Of an event. What is about a call stands where the call does: with the client, if that is in an
        earlier message."""
        return (one for one in self._chunks(event) if one.get("toolCallId") not in self._earlier)

    def _chunks(self, event: e.Event) -> Iterator[Chunk]:
        match event:
            case e.StepStart(attempt=attempt, model=model):
                self._model = model
                yield from self._close()
                if attempt > 1:
                    yield data_chunk("retry", {"attempt": attempt}, transient=True)
                yield self._start_step()
            case e.StepModel(model=model):
                self._model = model
            case e.StepEnd():
                yield from self._close()
                yield {"type": "finish-step"}
            case e.TextStart() | e.ReasoningStart():
                yield from self._close()
            case e.TextDelta(text=text):
                yield from self._write("text", text)
            case e.ReasoningDelta(text=text):
                yield from self._write("reasoning", text)
            case e.TextEnd() | e.ReasoningEnd() | e.MessageEnd():
                yield from self._close()
            case e.TextCited(citations=citations):
                yield from self._cite(citations)
            case e.FileAdded(file=file):
                yield from self._close()
                yield file_chunk(file)
            case e.ItemAdded(kind=kind, text=text):
                yield data_chunk("item", {"kind": kind, "text": text})
            case e.MessageAdded(message=message):
                yield from self._add(message)
            case e.Notice(text=text, kind=kind):
                yield data_chunk("notice", {"kind": kind, "text": text}, transient=True)
            case e.TurnState(state=state):
                self._state = state
            case e.TurnEnd():
                yield from self.end(event)
            case _:
                yield from self._call_chunks(event)

    def _call_chunks(self, event: e.Event) -> Iterator[Chunk]:
        match event:
            case e.CallInputStart(call=call, tool=tool):
                yield from self._close()
                yield from self._start_input(call, tool)
            case e.CallInputDelta(call=call, text=text):
                yield {"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": text}
            case e.CallInputEnd(call=call, tool=tool, arguments=arguments, raw=raw):
                self._unsettled.add(call)
                if tool not in self._brought:  # else the client would run it before anybody has decided
                    yield from self._show_input(call, tool, raw if arguments is None else arguments)
            case e.CallAsked(question=question):
                yield from self._ask(question, event)
            case e.CallAnswered(question=question, verdict=verdict):
                self._asked.pop(question, None)
                yield data_chunk("question", {"id": question, "verdict": verdict}, id=question)
            case e.CallStart(call=call, tool=tool, arguments=arguments, client=client):
                yield from self._show_input(call, tool, arguments)
                if client:
                    self._handed_out.add(call)
            case e.CallProgress(call=call, value=value):
                yield data_chunk("progress", {"call": call, "value": value}, transient=True)
            case e.CallEnd(call=call, tool=tool, arguments=arguments, state=state, result=result):
                yield from self._end_call(call, tool, arguments, state, result)
            case _:
                pass

    def ask_within(self, question: Question) -> Iterator[Chunk]:
        """By the calls of a task, which stand in a conversation of their own: the stream stays open. A review
        comes in place of what its event told: that has no result."""
        if question.open:
            yield question_chunk(question.id, question)

    def pause(self) -> Iterator[Chunk]:
        """The turn waits for the client: this response is over, and the turn is not."""
        yield from self._close()
        yield {"type": "finish", "finishReason": "tool-calls"}

    def end(self, end: e.TurnEnd) -> Iterator[Chunk]:
        yield from self._close()
        if self._ends_in_calls:  # a client whose last step has but results sends them in, again and again
            yield self._start_step()
            yield {"type": "message-metadata", "messageMetadata": {"turn": self._turn}}  # now it is shown
        if end.state == "cancelled":
            yield {"type": "abort"}
            return
        if end.limit is not None:
            yield data_chunk("notice", {"kind": "limit", "text": end.limit})
        if end.error is not None:
            yield {"type": "error", "errorText": end.error}
        reason = "error" if end.error is not None else _FINISH.get(end.finish, "other")
        about: JsonValue = {"usage": usage_data(end.usage), "model": self._model}
        yield {"type": "finish", "finishReason": reason, "messageMetadata": about}

    def _start_step(self) -> Chunk:
        self._ends_in_calls = False
        return {"type": "start-step"}

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────

    def _write(self, kind: str, text: str) -> Iterator[Chunk]:
        if kind not in self._open:
            yield from self._close()
            self._parts += 1
            self._open[kind] = f"{kind}-{self._parts}"
            yield {"type": f"{kind}-start", "id": self._open[kind]}
        if text:
            yield {"type": f"{kind}-delta", "id": self._open[kind], "delta": text}

    def _close(self) -> Iterator[Chunk]:
        for kind, id in self._open.items():
            yield {"type": f"{kind}-end", "id": id}
        self._open.clear()

    def _cite(self, citations: Collection[Citation]) -> Iterator[Chunk]:
        for citation in citations:
            self._parts += 1
            id = f"source-{self._parts}"
            if citation.url is not None:
                titled: Chunk = {"title": citation.title} if citation.title else {}
                yield {"type": "source-url", "sourceId": id, "url": citation.url, **titled}
            elif citation.title or citation.quote:
                title = citation.title or citation.quote
                yield {"type": "source-document", "sourceId": id, "mediaType": "text/plain", "title": title}

    def _add(self, message: Message) -> Iterator[Chunk]:
        """A whole message at once: of a plugin, or what a person said meanwhile."""
        yield from self._close()
        if message.role == "assistant":
            for part in message.parts:
                yield from self._replay_part(part)
                yield from self._close()
        elif message.author is None and message.turn == self._turn and message.text not in ("", self._said):
            yield data_chunk("steered", {"text": message.text})

    def _start_input(self, call: str, tool: str) -> Iterator[Chunk]:
        if call not in self._shown:
            yield {"type": "tool-input-start", "toolCallId": call, "toolName": tool, **self._dynamic(tool)}

    def _show_input(self, call: str, tool: str, arguments: JsonValue) -> Iterator[Chunk]:
        if call not in self._shown or self._shown[call] != arguments:
            self._shown[call] = arguments
            named: Chunk = {"toolCallId": call, "toolName": tool, "input": arguments}
            yield {"type": "tool-input-available", **named, **self._dynamic(tool)}

    def _dynamic(self, tool: str) -> Chunk:
        return {} if tool in self._brought else {"dynamic": True}

    def _ask(self, question: str, asked: Question | e.CallAsked) -> Iterator[Chunk]:
        yield question_chunk(question, asked)
        if asked.tool not in self._brought:
            yield from self._show_input(asked.call, asked.tool, asked.arguments)
        self._asked[question] = (asked.call, asked.kind)
        if asked.kind in APPROVALS and self._has_approvals:
            yield {"type": "tool-approval-request", "approvalId": question, "toolCallId": asked.call}

    def _end_call(
        self, call: str, tool: str, arguments: JsonValue, state: CallState, result: ToolResult
    ) -> Iterator[Chunk]:
        self._handed_out.discard(call)
        self._unsettled.discard(call)
        self._ends_in_calls = call not in self._earlier
        if tool in self._brought and call not in self._shown and state is not CallState.COMPLETED:
            refused: Chunk = {"toolCallId": call, "toolName": tool, "input": arguments}
            yield {"type": "tool-input-error", **refused, "errorText": result.text}  # nobody is to run it
            return
        yield from self._show_input(call, tool, arguments)
        if state is CallState.COMPLETED:
            output = result.value if result.value is not None else result.text
            done: Chunk = {"toolCallId": call, "output": output}
            yield {"type": "tool-output-available", **done, **self._dynamic(tool)}
            for file in result.attachments:
                yield file_chunk(file)
        elif state is CallState.REJECTED and self._has_approvals:
            yield {"type": "tool-output-denied", "toolCallId": call}
        else:
            failed: Chunk = {"toolCallId": call, "errorText": result.text}
            yield {"type": "tool-output-error", **failed, **self._dynamic(tool)}
