"""Write a turn as the chunks that `useChat` of the AI SDK (5, 6 and 7) folds into one UI message.

The message of a turn has the turn's ID. Tools of the request are static parts, which the client runs. All
others are dynamic parts, because no client knows them beforehand.
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
    """Return a file by its relative address, which `useChat` accepts."""
    url = file.url or f"/api/files/{file.blob}?type={file.media_type}"
    return {"type": "file", "url": url, "mediaType": file.media_type}


def question_chunk(id: str, asked: Question | e.CallAsked) -> Chunk:
    """Return everything that a user must know to answer an approval request. `shown` has all of it as one
    string, without invisible characters."""
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
    """Return a chunk for data that the protocol does not define."""
    chunk: Chunk = {"type": f"data-{name}", "data": data}
    if id is not None:
        chunk["id"] = id
    if transient:
        chunk["transient"] = True
    return chunk


def usage_data(usage: Usage) -> JsonValue:
    return {key: value for key, value in asdict(usage).items() if value is not None}


APPROVALS = frozenset({"approve", "run", "loop", "interrupted"})  # approval requests that yes or no answers
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
    """Writes one turn as UI message chunks.

    `brought` are the tools of the request. `approvals` tells whether the client supports them (from 6 on).
    `message` is the ID of the answer at the client.
    """

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
        self._part = ""  # the ID of the current part
        self._parts = 0
        self._shown: dict[str, JsonValue] = {}  # calls whose arguments the client has, with these arguments
        self._earlier: set[str] = set()  # calls of an earlier message that this one continues
        self._said = ""  # the user message between the two
        self._ends_in_calls = False  # whether the last step that the client has ends in calls

    def begin(self) -> Chunk:
        about: JsonValue = {"turn": self._turn, "conversation": self._conversation}
        return {"type": "start", "messageId": self._message, "messageMetadata": about}

    def stopping(self, why: str) -> Chunk:
        return {"type": "error", "errorText": why}

    @property
    def waits(self) -> bool:
        """Whether the turn waits for something that the client can bring with its next request."""
        asked = self.reader.asked.values() if self._has_approvals else ()
        theirs = bool(self.reader.handed) or any(about.kind in APPROVALS for about in asked)
        return self.reader.waits and theirs

    # ── text already sent ─────────────────────────────────────────────────────────────────────────

    def go_on_behind(self, snapshot: Snapshot, place: int, said: str) -> Iterator[Chunk]:
        """Yield the answer after this place as a separate message. The part before it is in an earlier
        message of the client, followed by the user message `said`."""
        before, self._said = snapshot.messages[:place], said
        self._skip(self.reader.tell(before))
        self._earlier = {call.id for message in before for call in message.calls}
        self._ends_in_calls = False
        for value in self.reader.replay(replace(snapshot, messages=snapshot.messages[place:])):
            if not isinstance(value, Asked) or value.about.call not in self._earlier:
                yield from self.write(value)

    def catch_up(self, snapshot: Snapshot, shown: UIMessage) -> Iterator[Chunk]:
        """Yield what a client lacks that shows this much of the answer: results of calls, and everything
        after them.

        The turn can have been answered elsewhere, or by an earlier request whose response was lost.
        """
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
        """Yield the results of calls in a reply that the client already has, with the arguments that were
        used."""
        for value in self.reader.tell([message]):
            if isinstance(value, e.CallEnd) and value.call in has and not has[value.call].settled:
                yield from self.write(value)
            else:
                self._skip([value])
        self._skip(self.reader.close())
        if message.role == "assistant":
            self._ends_in_calls = bool(message.calls)

    def _skip(self, values: Iterable[Value]) -> None:
        """Advance the state without output: the client already has these values."""
        for _ in self.write_all(values):
            pass

    # ── events ────────────────────────────────────────────────────────────────────────────────────

    def events(self, event: e.Event) -> Iterator[Chunk]:
        """Yield chunks, but none about calls of an earlier message: those belong to that message."""
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
        """Yield an approval request of a task's call: that call is in another conversation, so the stream
        stays open. A review replaces its event, which lacks the result."""
        if question.open:
            yield question_chunk(question.id, question)

    def pause(self) -> Iterator[Chunk]:
        yield from self.close()
        yield {"type": "finish", "finishReason": "tool-calls"}

    def _end(self, end: e.TurnEnd) -> Iterator[Chunk]:
        if self._ends_in_calls:  # A client whose last step has only results would send them again and again.
            yield self._start_step()
            # The client shows the step from here on.
            yield {"type": "message-metadata", "messageMetadata": {"turn": self._turn}}
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
            yield {"type": "tool-input-error", **refused, "errorText": result.text}  # The call must not run.
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
