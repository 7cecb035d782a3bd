"""Writes a turn as the chunks that `useChat` of the AI SDK (5, 6 and 7) folds into one UI message.

The message of a turn has the turn's id. Tools that came with the request are static parts, run by the page
that sent them; all others are dynamic ones, since no page knows them beforehand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages import events as e
from dragoman.messages.asked import approval_text
from dragoman.messages.message import CallState, Citation, Error, File, Message, ProviderItem
from dragoman.messages.questions import Question
from dragoman.messages.usage import Usage
from dragoman.server.protocols.ai_sdk.ui_input import UIMessage, UIPart
from dragoman.server.protocols.event_reader import (
    Asked,
    CallOpened,
    CallShown,
    EventReader,
    MessageTold,
    PartClosed,
    PartDelta,
    PartOpened,
    TurnWriter,
    Value,
)
from dragoman.turn.live.log import Snapshot

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


class UIMessageStream(TurnWriter):
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
        super().__init__(EventReader(brought))
        self._turn = turn
        self._message = message or turn
        self._conversation = conversation
        self._has_approvals = approvals
        self._part = ""  # the id of the part that is being written
        self._parts = 0
        self._shown: dict[str, JsonValue] = {}  # calls whose arguments the client has, and what they are
        self._earlier: set[str] = set()  # calls of a message that the client goes on behind
        self._said = ""  # what stands between that and this one
        self._ends_in_calls = False  # the last step, as far as the client has it

    def begin(self) -> Chunk:
        about: JsonValue = {"turn": self._turn, "conversation": self._conversation}
        return {"type": "start", "messageId": self._message, "messageMetadata": about}

    def stopping(self, why: str) -> Chunk:
        return {"type": "error", "errorText": why}

    @property
    def waits(self) -> bool:
        """Whether the turn waits, and the client can move it: it comes back with another request."""
        asked = self.reader.asked.values() if self._has_approvals else ()
        theirs = bool(self.reader.handed) or any(about.kind in APPROVALS for about in asked)
        return self.reader.waits and theirs

    # ── what has been said already ────────────────────────────────────────────────────────────────

    def go_on_behind(self, snapshot: Snapshot, place: int, said: str) -> Iterator[Chunk]:
        """What was said up to this place stands in an earlier message of the client's, with this of the
        person's behind it. What came after it, and follows, is in a message of its own."""
        before, self._said = snapshot.messages[:place], said
        self._skip(self.reader.tell(before))
        self._earlier = {call.id for message in before for call in message.calls}
        self._ends_in_calls = False
        for value in self.reader.replay(replace(snapshot, messages=snapshot.messages[place:])):
            if not isinstance(value, Asked) or value.about.call not in self._earlier:
                yield from self.write(value)

    def catch_up(self, snapshot: Snapshot, shown: UIMessage) -> Iterator[Chunk]:
        """Of the turn so far what a client lacks who shows this much of it: results of calls, and all that
        came after them. It may have been answered elsewhere, or by an earlier request that was lost."""
        has = {part.call: part for part in shown.calls}
        known = {part.approval.id for part in has.values() if part.approval is not None}
        common = [place for place, one in enumerate(snapshot.messages) if any(c.id in has for c in one.calls)]
        last = common[-1] + 1 if common else len(snapshot.messages)
        for message in snapshot.messages[:last]:
            yield from self._results(message, has)
        for value in self.reader.replay(replace(snapshot, messages=snapshot.messages[last:])):
            if isinstance(value, Asked) and value.id in known:
                self._skip([value])
            else:
                yield from self.write(value)

    def _results(self, message: Message, has: Mapping[str, UIPart]) -> Iterator[Chunk]:
        """Of a reply that the client has: results of calls, and with which arguments they ran."""
        for value in self.reader.tell([message]):
            if isinstance(value, e.CallEnd) and value.call in has and not has[value.call].settled:
                yield from self.write(value)
            else:
                self._skip([value])
        self._skip(self.reader.close())
        if message.role == "assistant":
            self._ends_in_calls = bool(message.calls)

    def _skip(self, values: Iterable[Value]) -> None:
        """The client has it."""
        for _ in self.write_all(values):
            pass

    # ── what happens ──────────────────────────────────────────────────────────────────────────────

    def events(self, event: e.Event) -> Iterator[Chunk]:
        """What is about a call stands where the call does: with the client, if that is in an earlier
        message."""
        return (one for one in super().events(event) if one.get("toolCallId") not in self._earlier)

    def write(self, value: Value) -> Iterator[Chunk]:
        match value:
            case e.StepStart(attempt=attempt):
                if attempt > 1:
                    yield data_chunk("retry", {"attempt": attempt}, transient=True)
                yield self._start_step()
            case MessageTold(added=False):
                yield self._start_step()
            case e.StepEnd():
                yield {"type": "finish-step"}
            case PartOpened(kind=kind):
                self._parts += 1
                self._part = f"{kind}-{self._parts}"
                yield {"type": f"{kind}-start", "id": self._part}
            case PartDelta(kind=kind, text=text):
                yield {"type": f"{kind}-delta", "id": self._part, "delta": text}
            case PartClosed(kind=kind):
                yield {"type": f"{kind}-end", "id": self._part}
            case e.TextCited(citations=citations):
                yield from self._cite(citations)
            case e.FileAdded(file=file):
                yield file_chunk(file)
            case e.ItemAdded(kind=item, text=text) | ProviderItem(kind=item, text=text):
                yield data_chunk("item", {"kind": item, "text": text})
            case Error(message=failed):
                yield {"type": "error", "errorText": failed}
            case e.MessageAdded(message=message):
                if (
                    message.author is None
                    and message.turn == self._turn
                    and message.text not in ("", self._said)
                ):
                    yield data_chunk("steered", {"text": message.text})
            case e.Notice(text=text, kind=notice):
                yield data_chunk("notice", {"kind": notice, "text": text}, transient=True)
            case e.TurnEnd():
                yield from self._end(value)
            case _:
                yield from self._write_call(value)

    def _write_call(self, value: Value) -> Iterator[Chunk]:
        match value:
            case CallOpened(call=call, tool=tool) if call not in self._shown:
                yield {
                    "type": "tool-input-start",
                    "toolCallId": call,
                    "toolName": tool,
                    **self._dynamic(tool),
                }
            case e.CallInputDelta(call=call, text=text):
                yield {"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": text}
            case CallShown(stored=True, arguments=arguments, tool=tool) if (
                not arguments and tool not in self.reader.client_tools
            ):
                pass
            case CallShown(call=call, tool=tool, arguments=arguments, raw=raw):
                yield from self._show_input(call, tool, raw if arguments is None else arguments)
            case Asked(id=id, about=about, call=call):
                yield question_chunk(id, about)
                if about.tool not in self.reader.client_tools and not value.inner:
                    yield from self._show_input(about.call, about.tool, about.arguments)
                if about.kind in APPROVALS and self._has_approvals:
                    yield {"type": "tool-approval-request", "approvalId": id, "toolCallId": call}
            case e.CallAnswered(question=question, verdict=verdict):
                yield data_chunk("question", {"id": question, "verdict": verdict}, id=question)
            case e.CallProgress(call=call, value=progress):
                yield data_chunk("progress", {"call": call, "value": progress}, transient=True)
            case e.CallEnd():
                yield from self._end_call(value)

    def ask_within(self, question: Question) -> Iterator[Chunk]:
        """The calls of a task stand in a conversation of their own: the stream stays open. A review comes in
        place of what its event told: that has no result."""
        if question.open:
            yield question_chunk(question.id, question)

    def pause(self) -> Iterator[Chunk]:
        yield from self.close()
        yield {"type": "finish", "finishReason": "tool-calls"}

    def _end(self, end: e.TurnEnd) -> Iterator[Chunk]:
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
        about: JsonValue = {"usage": usage_data(end.usage), "model": self.reader.model}
        yield {"type": "finish", "finishReason": reason, "messageMetadata": about}

    def _start_step(self) -> Chunk:
        self._ends_in_calls = False
        return {"type": "start-step"}

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────

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

    def _show_input(self, call: str, tool: str, arguments: JsonValue) -> Iterator[Chunk]:
        if call not in self._shown or self._shown[call] != arguments:
            self._shown[call] = arguments
            named: Chunk = {"toolCallId": call, "toolName": tool, "input": arguments}
            yield {"type": "tool-input-available", **named, **self._dynamic(tool)}

    def _dynamic(self, tool: str) -> Chunk:
        return {} if tool in self.reader.client_tools else {"dynamic": True}

    def _end_call(self, end: e.CallEnd) -> Iterator[Chunk]:
        call, tool, result = end.call, end.tool, end.result
        self._ends_in_calls = call not in self._earlier
        if (
            tool in self.reader.client_tools
            and call not in self._shown
            and end.state is not CallState.COMPLETED
        ):
            refused: Chunk = {"toolCallId": call, "toolName": tool, "input": end.arguments}
            yield {"type": "tool-input-error", **refused, "errorText": result.text}  # nobody is to run it
            return
        yield from self._show_input(call, tool, end.arguments)
        if end.state is CallState.COMPLETED:
            output = result.value if result.value is not None else result.text
            done: Chunk = {"toolCallId": call, "output": output}
            yield {"type": "tool-output-available", **done, **self._dynamic(tool)}
            for file in result.attachments:
                yield file_chunk(file)
        elif end.state is CallState.REJECTED and self._has_approvals:
            yield {"type": "tool-output-denied", "toolCallId": call}
        else:
            failed: Chunk = {"toolCallId": call, "errorText": result.text}
            yield {"type": "tool-output-error", **failed, **self._dynamic(tool)}
