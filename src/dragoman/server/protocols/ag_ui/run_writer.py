"""Write a turn as the events of an AG-UI run. A turn that waits ends its run, and the next run resumes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.errors import AlreadyAnswered, NotFound
from dragoman.messages import events as e
from dragoman.messages.asked import approval_text
from dragoman.messages.endings import FAILED, notice_of
from dragoman.messages.message import CallState, Message, canonical
from dragoman.messages.questions import Question
from dragoman.messages.usage import Usage
from dragoman.server.protocols.ag_ui.run_input import UPDATE_STATE, changes_in, difference, merged
from dragoman.server.protocols.event_reader import (
    Asked,
    CallForClient,
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
from dragoman.turn.api.turn_handle import TurnHandle

RunEvent: TypeAlias = dict[str, JsonValue]

VERSION = "1.0"
_YES_OR_NO: JsonValue = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "arguments": {"type": "object"},
    },
    "required": ["approved"],
}
_RELEASE: JsonValue = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "text": {"type": "string"}},
    "required": ["approved"],
}


class AgentRun(TurnWriter):
    """One run: from the client's request to the turn's end, or until the turn waits for input.

    `version` is the client's protocol version, empty before 1.0. `state` is the thread's state.
    """

    def __init__(
        self,
        thread: str,
        run: str,
        client_tools: Collection[str] = (),
        *,
        version: str = VERSION,
        state: JsonValue = None,
    ) -> None:
        super().__init__(EventReader(client_tools, also_handed=(UPDATE_STATE,)))
        self._has_state_tool = UPDATE_STATE not in client_tools
        self._all_outcomes = bool(version)
        self.state = state
        self.history: Sequence[Message] = ()
        self.end: e.TurnEnd | None = None  # the end of the turn that has already answered
        self._updates: set[str] = set()  # state-changing calls that wait for their result
        self._named: RunEvent = {"threadId": thread, "runId": run}
        self._message = ""  # the ID of the current reply
        self._step: str | None = None
        self._part = ""  # the ID of its current part
        self._parts = 0
        # calls whose arguments are still being written, with their arguments so far
        self._written: dict[str, str] = {}
        self._shown: set[str] = set()  # calls that the client has completely

    def begin(self) -> RunEvent:
        return {"type": "RUN_STARTED", **self._named, "protocolVersion": VERSION}

    def stopping(self, why: str) -> RunEvent:
        return {"type": "RUN_ERROR", "message": why, "code": "server_stops"}

    def show_thread(self) -> Iterator[RunEvent]:
        """Yield the history, for a client that lacks it, and the state if there is one."""
        if self.history:
            said: JsonValue = [shown for message in self.history for shown in thread_messages(message)]
            self.reader.model = next((one.model for one in reversed(self.history) if one.model), "")
            yield {"type": "MESSAGES_SNAPSHOT", "messages": said}
        if self.state:
            yield {"type": "STATE_SNAPSHOT", "snapshot": self.state}

    def finish(self) -> Iterator[RunEvent]:
        """Yield the end of a run without a live turn."""
        if self.end is not None:
            yield from self._end(self.end)
            return
        yield {"type": "RUN_FINISHED", **self._named, "outcome": {"type": "success"}}

    async def act(self, turn: TurnHandle) -> None:
        """Deliver the results of state-changing calls. Readers of the run receive the new state as events."""
        while self._updates:
            with suppress(AlreadyAnswered, NotFound):  # Another reader of the same turn was faster.
                await turn.deliver(self._updates.pop(), "Changed the state.")

    # ── events ────────────────────────────────────────────────────────────────────────────────────

    def write(self, value: Value) -> Iterator[RunEvent]:
        match value:
            case e.StepStart():
                yield from self._start_step(value)
            case MessageTold(message=message):
                self._message, self._parts = message.id, 0
            case e.StepEnd():
                yield from self._end_step()
            case PartOpened(kind=kind):
                self._parts += 1
                first = kind == "text" and self._parts == 1
                self._part = self._message if first else f"{self._message}-{self._parts}"
                yield from _opening(kind, self._part)
            case PartDelta(kind=kind, text=text):
                name = "TEXT_MESSAGE_CONTENT" if kind == "text" else "REASONING_MESSAGE_CONTENT"
                yield {"type": name, "messageId": self._part, "delta": text}
            case PartClosed(kind="text"):
                yield {"type": "TEXT_MESSAGE_END", "messageId": self._part}
            case PartClosed():
                yield {"type": "REASONING_MESSAGE_END", "messageId": self._part}
                yield {"type": "REASONING_END", "messageId": self._part}
            case e.Notice(text=text, kind=notice):
                yield _custom("notice", {"kind": notice, "text": text})
            case e.ItemAdded(kind=item, text=text):
                yield _custom("item", {"kind": item, "text": text})
            case e.TurnEnd():
                yield from self._end(value)
            case _:
                yield from self._write_call(value)

    def _write_call(self, value: Value) -> Iterator[RunEvent]:
        match value:
            case CallOpened(call=call, tool=tool, resumed=False):
                if tool not in self.reader.client_tools:
                    yield self._start_call(call, tool)
            case e.CallInputDelta(call=call, text=text):
                yield from self._write_arguments(call, text)
            case CallShown(call=call, tool=tool, arguments=arguments):
                yield from self._show(call, tool, arguments or {})
            case Asked(about=about):
                if about.tool not in self.reader.client_tools and not value.inner:
                    yield from self._show(about.call, about.tool, about.arguments)
            case CallForClient(call=call, tool=tool):
                if tool == UPDATE_STATE and self._has_state_tool:  # The server runs this tool for the client.
                    self.reader.was_brought(call)
                    self._updates.add(call)
            case e.CallProgress(call=call, value=progress):
                yield _custom("progress", {"call": call, "value": progress})
            case e.CallEnd(call=call, tool=tool, arguments=arguments):
                yield from self._show(call, tool, arguments)
                if value.original is not None:  # The protocol has no event for edited arguments.
                    yield _custom("call.edited", {"call": call, "arguments": arguments})
                yield from self._settle(value)

    def ask_within(self, question: Question) -> Iterator[RunEvent]:
        """Yield an approval request of a task's call as a custom event: that call is in another conversation,
        so the run continues. A review that was already announced only gets its full text."""
        if question.id in self.reader.asked:
            self.reader.asked[question.id] = question
        elif question.open:
            yield _custom(
                "question", _interrupt(question.id, question, self.reader.program_of(question.call))
            )

    def pause(self) -> Iterator[RunEvent]:
        yield from self.close()
        yield from self._end_step()
        if self.reader.asked:
            interrupts: JsonValue = [
                _interrupt(id, asked, self.reader.program_of(asked.call))
                for id, asked in self.reader.asked.items()
            ]
            how: RunEvent = {"outcome": {"type": "interrupt", "interrupts": interrupts}}
        elif self._all_outcomes:
            how = {"outcome": {"type": "success", "pendingToolCallIds": [*self.reader.handed]}}
        else:
            how = {}  # assistant-ui treats a success as the end and would not send the results of its tools.
        yield {"type": "RUN_FINISHED", **self._named, **how}

    def _end(self, end: e.TurnEnd) -> Iterator[RunEvent]:
        yield from self._end_step()
        used: JsonValue = [_usage(end.usage, self.reader.model)]
        failure = end.error
        if failure is None and end.state == "completed" and end.finish in FAILED:
            failure = notice_of(end.finish, self.reader.model or "the model")
        if failure is not None:
            yield {"type": "RUN_ERROR", "message": failure, "usage": used}
            return
        if end.state == "cancelled" and not self._all_outcomes:
            yield {"type": "RUN_ERROR", "message": "The run was cancelled.", "code": "cancelled"}
            return
        kind = "cancelled" if end.state == "cancelled" else "success"
        yield {"type": "RUN_FINISHED", **self._named, "outcome": {"type": kind}, "usage": used}

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────

    def _start_step(self, step: e.StepStart) -> Iterator[RunEvent]:
        yield from self._end_step()
        again = "" if step.attempt == 1 else f", attempt {step.attempt}"
        self._message = step.message if step.attempt == 1 else f"{step.message}-attempt-{step.attempt}"
        self._step = f"step {step.step}{again}"
        self._parts = 0
        yield {"type": "STEP_STARTED", "stepName": self._step}

    def _end_step(self) -> Iterator[RunEvent]:
        for call in list(self._written):
            yield from self._end_arguments(call)
        if self._step is not None:
            yield {"type": "STEP_FINISHED", "stepName": self._step}
            self._step = None

    def _start_call(self, call: str, tool: str) -> RunEvent:
        self._written[call] = ""
        named: RunEvent = {"toolCallId": call, "toolCallName": tool, "parentMessageId": self._message}
        return {"type": "TOOL_CALL_START", **named}

    def _write_arguments(self, call: str, text: str) -> Iterator[RunEvent]:
        """Yield argument chunks as they arrive if they are JSON. Calls written as text are shown when they
        are complete."""
        if call in self._written and (self._written[call] or text.lstrip().startswith("{")):
            self._written[call] += text
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": text}

    def _show(self, call: str, tool: str, arguments: JsonValue) -> Iterator[RunEvent]:
        if call in self._shown:
            return
        yield from self.close()
        if call not in self._written:
            yield self._start_call(call, tool)
        if not self._written[call]:
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": canonical(arguments)}
        yield from self._end_arguments(call)

    def _end_arguments(self, call: str) -> Iterator[RunEvent]:
        del self._written[call]
        self._shown.add(call)
        yield {"type": "TOOL_CALL_END", "toolCallId": call}

    def _settle(self, end: e.CallEnd) -> Iterator[RunEvent]:
        self._updates.discard(end.call)
        told: RunEvent = {
            "messageId": f"{end.call}-result",
            "toolCallId": end.call,
            "content": end.result.text,
        }
        # The event has no field for failures, and clients treat `role` as success. `error` is a field of
        # messages.
        how: RunEvent = {"role": "tool"} if end.state is CallState.COMPLETED else {"error": end.result.text}
        yield {"type": "TOOL_CALL_RESULT", **told, **how, "metadata": {"state": end.state.value}}
        if end.tool == UPDATE_STATE and self._has_state_tool and end.state is CallState.COMPLETED:
            before, self.state = self.state, merged(self.state, changes_in(end.arguments))
            if delta := [*difference(before, self.state)]:
                yield {"type": "STATE_DELTA", "delta": [*delta]}


def _opening(kind: str, id: str) -> Iterator[RunEvent]:
    if kind == "text":
        yield {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}
    else:
        yield {"type": "REASONING_START", "messageId": id}
        yield {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}


def _interrupt(id: str, asked: Question | e.CallAsked, call: str) -> JsonValue:
    schemas = {"tool": asked.schema or _words(asked), "review": _RELEASE}
    return {
        "id": id,
        "reason": "input_required" if asked.kind == "tool" else "tool_call",  # Clients bind it to its call.
        "message": approval_text(asked),
        "toolCallId": call,
        "responseSchema": schemas.get(asked.kind, _YES_OR_NO),
        "metadata": {
            "tool": asked.tool,
            "arguments": asked.arguments,
            "kind": asked.kind,
            "because": asked.because,
            "choices": [*asked.choices],
            "free": asked.free,
            "diff": asked.diff,
            "told": [*asked.told],
        },
    }


def _words(asked: Question | e.CallAsked) -> JsonValue:
    """Return the schema of a reply to a tool that defines none."""
    if asked.choices and not asked.free:
        return {"type": "string", "enum": [*asked.choices]}
    return {"type": "string", "examples": [*asked.choices]} if asked.choices else {}


def _custom(name: str, value: JsonValue) -> RunEvent:
    return {"type": "CUSTOM", "name": f"dragoman.{name}", "value": value}


def _usage(usage: Usage, model: str) -> JsonValue:
    return {
        "model": model,
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "totalTokens": usage.input + usage.output,
        "reasoningTokens": usage.reasoning,
        "cachedInputTokens": usage.cached,
        "cacheWriteInputTokens": usage.cache_written,
    }


def thread_messages(message: Message) -> Iterator[JsonValue]:
    """Yield a stored message, followed by the results of its calls."""
    if message.role == "user":
        yield {"id": message.id, "role": "user", "content": message.text}
        return
    calls: JsonValue = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.tool, "arguments": canonical(call.arguments)},
        }
        for call in message.calls
    ]
    made: dict[str, JsonValue] = {"toolCalls": calls} if calls else {}
    yield {"id": message.id, "role": "assistant", "content": message.text, **made}
    for call in message.calls:
        if call.result is not None:
            yield {
                "id": f"{call.id}-result",
                "role": "tool",
                "toolCallId": call.id,
                "content": call.result.text,
                **({} if call.state is CallState.COMPLETED else {"error": call.result.text}),
            }
