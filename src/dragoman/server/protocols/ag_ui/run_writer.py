"""Writes a turn as the events of an AG-UI run. A turn that waits ends its run; the next one resumes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages import events as e
from dragoman.messages.causes import approval_text
from dragoman.messages.endings import FAILED, notice_of
from dragoman.messages.message import Message
from dragoman.messages.parts import (
    Arguments,
    CallState,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    canonical,
)
from dragoman.messages.questions import Question
from dragoman.messages.usage import Usage
from dragoman.server.protocols.ag_ui.run_input import UPDATE_STATE, changes_in, difference, merged
from dragoman.turn.live.log import Snapshot
from dragoman.turn.machine import State

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


class AgentRun:
    """One run: from the client's request to the turn's end, or to where it waits for somebody.

    `version` is what the client says it speaks: nothing, before 1.0. `state` is the thread's.
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
        self._client_tools = client_tools
        self._all_outcomes = bool(version)
        self.state = state
        self.history: Sequence[Message] = ()
        self.end: e.TurnEnd | None = None  # of the turn that has answered already
        self.updates: dict[str, Arguments] = {}  # calls that change the state, and wait for their result
        self._named: RunEvent = {"threadId": thread, "runId": run}
        self._message = ""  # the reply that is being written
        self._step: str | None = None
        self._open: tuple[str, str] | None = None  # "text" or "reasoning", and the id it is written under
        self._parts = 0
        self._written: dict[str, str] = {}  # calls whose arguments are being written → as far as they are
        self._shown: set[str] = set()  # calls that the client has whole
        self._unsettled: set[str] = set()
        self._asked: dict[str, Question | e.CallAsked] = {}
        self._handed_out: dict[str, None] = {}  # calls that the client is to run, in order
        self._state = ""
        self._model = ""

    def begin(self) -> RunEvent:
        return {"type": "RUN_STARTED", **self._named, "protocolVersion": VERSION}

    def show_thread(self) -> Iterator[RunEvent]:
        """What was said before, for a client that has nothing of it, and the state where there is one."""
        if self.history:
            said: JsonValue = [shown for message in self.history for shown in thread_messages(message)]
            self._model = next((one.model for one in reversed(self.history) if one.model), self._model)
            yield {"type": "MESSAGES_SNAPSHOT", "messages": said}
        if self.state:
            yield {"type": "STATE_SNAPSHOT", "snapshot": self.state}

    def finish(self) -> Iterator[RunEvent]:
        """Nothing is being written in this thread."""
        if self.end is not None:
            yield from self._end(self.end)
            return
        yield {"type": "RUN_FINISHED", **self._named, "outcome": {"type": "success"}}

    @property
    def _has_state_tool(self) -> bool:
        return UPDATE_STATE not in self._client_tools

    @property
    def waits(self) -> bool:
        waiting = {asked.call for asked in self._asked.values()} | self._handed_out.keys()
        return self._state == State.WAITING and bool(waiting) and self._unsettled <= waiting

    def was_brought(self, id: str) -> None:
        """The client has answered this question, or run this call: it is not what the turn waits for now."""
        self._asked.pop(id, None)
        self._handed_out.pop(id, None)

    # ── what has been said already ────────────────────────────────────────────────────────────────

    def replay(self, snapshot: Snapshot) -> Iterator[RunEvent]:
        """The turn so far. What is still being written stays open."""
        self._state = snapshot.state
        for message in snapshot.messages:
            if message.role == "assistant":
                yield from self._say(message)
                if message.finish is not None:
                    yield from self._close()
        for question in snapshot.questions:
            self._asked[question.id] = question

    def _say(self, message: Message) -> Iterator[RunEvent]:
        yield from self._close()
        self._message, self._parts = message.id, 0
        self._model = message.model or self._model
        for part in message.parts:
            yield from self._close()
            match part:
                case Text(text=text):
                    yield from self._write("text", text)
                case Reasoning(text=text):
                    yield from self._write("reasoning", text)
                case ToolCall() if part.arguments or message.finish is not None:
                    if (
                        part.state.settled
                        or part.state is CallState.RUNNING
                        or not self._is_theirs(part.tool)
                    ):
                        yield from self._show(part.id, part.tool, part.arguments)
                    if part.result is not None and part.state.settled:
                        yield from self._settle(part.id, part.tool, part.arguments, part.state, part.result)
                    else:
                        self._unsettled.add(part.id)
                        if part.state is CallState.RUNNING and part.tool in {
                            *self._client_tools,
                            UPDATE_STATE,
                        }:
                            self._hand_out(part.id, part.tool, part.arguments)

    # ── what happens ──────────────────────────────────────────────────────────────────────────────

    def events(self, event: e.Event) -> Iterator[RunEvent]:
        match event:
            case e.TurnState(state=state):
                self._state = state
            case e.StepStart():
                yield from self._start_step(event)
            case e.StepModel(model=model):
                self._model = model
            case e.StepEnd():
                yield from self._end_step()
            case e.TextStart() | e.ReasoningStart() | e.TextEnd() | e.ReasoningEnd() | e.MessageEnd():
                yield from self._close()
            case e.TextDelta(text=text):
                yield from self._write("text", text)
            case e.ReasoningDelta(text=text):
                yield from self._write("reasoning", text)
            case e.MessageAdded(message=message) if message.role == "assistant":
                yield from self._say(message)
                yield from self._close()
            case e.Notice(text=text, kind=kind):
                yield _custom("notice", {"kind": kind, "text": text})
            case e.ItemAdded(kind=kind, text=text):
                yield _custom("item", {"kind": kind, "text": text})
            case e.TurnEnd():
                yield from self._end(event)
            case _:
                yield from self._call_events(event)

    def _call_events(self, event: e.Event) -> Iterator[RunEvent]:
        match event:
            case e.CallInputStart(call=call, tool=tool):
                yield from self._close()
                if not self._is_theirs(tool):
                    yield self._start_call(call, tool)
            case e.CallInputDelta(call=call, text=text):
                yield from self._write_arguments(call, text)
            case e.CallInputEnd(call=call, tool=tool, arguments=arguments):
                self._unsettled.add(call)
                if not self._is_theirs(tool):
                    yield from self._show(call, tool, arguments or {})
            case e.CallAsked(call=call, tool=tool, question=question, arguments=arguments):
                if not self._is_theirs(tool):
                    yield from self._show(call, tool, arguments)
                self._asked[question] = event
            case e.CallAnswered(question=question):
                self._asked.pop(question, None)
            case e.CallStart(call=call, tool=tool, arguments=arguments, client=client):
                yield from self._show(call, tool, arguments)
                if client:
                    self._hand_out(call, tool, arguments)
            case e.CallProgress(call=call, value=value):
                yield _custom("progress", {"call": call, "value": value})
            case e.CallEnd(call=call, tool=tool, arguments=arguments, state=state, result=result):
                yield from self._show(call, tool, arguments)
                if event.original is not None:  # the protocol has no word for it
                    yield _custom("call.edited", {"call": call, "arguments": arguments})
                yield from self._settle(call, tool, arguments, state, result)
            case _:
                pass

    def ask_within(self, question: Question) -> Iterator[RunEvent]:
        """By the calls of a task, which stand in a conversation of their own: the run goes on. One that is
        asked already is a review, which its event tells only in part."""
        if question.id in self._asked:
            self._asked[question.id] = question
        elif question.open:
            yield _custom("question", _interrupt(question.id, question))

    def pause(self) -> Iterator[RunEvent]:
        """The run is over, and the turn is not."""
        yield from self._end_step()
        if self._asked:
            interrupts: JsonValue = [_interrupt(id, asked) for id, asked in self._asked.items()]
            outcome: JsonValue = {"type": "interrupt", "interrupts": interrupts}
        else:
            pending: RunEvent = {"pendingToolCallIds": [*self._handed_out]} if self._all_outcomes else {}
            outcome = {"type": "success", **pending}
        yield {"type": "RUN_FINISHED", **self._named, "outcome": outcome}

    def _end(self, end: e.TurnEnd) -> Iterator[RunEvent]:
        yield from self._end_step()
        used: JsonValue = [_usage(end.usage, self._model)]
        failure = end.error
        if failure is None and end.state == "completed" and end.finish in FAILED:
            failure = notice_of(end.finish, self._model or "the model")
        if failure is not None:
            yield {"type": "RUN_ERROR", "message": failure, "usage": used}
            return
        if end.state == "cancelled" and not self._all_outcomes:
            yield {"type": "RUN_ERROR", "message": "the run was cancelled", "code": "cancelled"}
            return
        kind = "cancelled" if end.state == "cancelled" else "success"
        yield {"type": "RUN_FINISHED", **self._named, "outcome": {"type": kind}, "usage": used}

    # ── pieces ────────────────────────────────────────────────────────────────────────────────────

    def _start_step(self, step: e.StepStart) -> Iterator[RunEvent]:
        yield from self._end_step()
        again = "" if step.attempt == 1 else f", attempt {step.attempt}"
        self._message = step.message if step.attempt == 1 else f"{step.message}-attempt-{step.attempt}"
        self._step = f"step {step.step}{again}"
        self._parts, self._model = 0, step.model
        yield {"type": "STEP_STARTED", "stepName": self._step}

    def _end_step(self) -> Iterator[RunEvent]:
        yield from self._close()
        for call in list(self._written):
            yield from self._end_arguments(call)
        if self._step is not None:
            yield {"type": "STEP_FINISHED", "stepName": self._step}
            self._step = None

    def _write(self, kind: str, text: str) -> Iterator[RunEvent]:
        if not text:
            return
        if self._open is None or self._open[0] != kind:
            yield from self._close()
            self._parts += 1
            id = self._message if kind == "text" and self._parts == 1 else f"{self._message}-{self._parts}"
            self._open = (kind, id)
            yield from _opening(kind, id)
        name = "TEXT_MESSAGE_CONTENT" if kind == "text" else "REASONING_MESSAGE_CONTENT"
        yield {"type": name, "messageId": self._open[1], "delta": text}

    def _close(self) -> Iterator[RunEvent]:
        if self._open is not None:
            kind, id = self._open
            self._open = None
            if kind == "text":
                yield {"type": "TEXT_MESSAGE_END", "messageId": id}
            else:
                yield {"type": "REASONING_MESSAGE_END", "messageId": id}
                yield {"type": "REASONING_END", "messageId": id}

    def _start_call(self, call: str, tool: str) -> RunEvent:
        self._written[call] = ""
        named: RunEvent = {"toolCallId": call, "toolCallName": tool, "parentMessageId": self._message}
        return {"type": "TOOL_CALL_START", **named}

    def _write_arguments(self, call: str, text: str) -> Iterator[RunEvent]:
        """As they come, where they come as JSON. Calls written as text are shown when they are whole."""
        if call in self._written and (self._written[call] or text.lstrip().startswith("{")):
            self._written[call] += text
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": text}

    def _show(self, call: str, tool: str, arguments: JsonValue) -> Iterator[RunEvent]:
        if call in self._shown:
            return
        yield from self._close()
        if call not in self._written:
            yield self._start_call(call, tool)
        if not self._written[call]:
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": canonical(arguments)}
        yield from self._end_arguments(call)

    def _end_arguments(self, call: str) -> Iterator[RunEvent]:
        del self._written[call]
        self._shown.add(call)
        yield {"type": "TOOL_CALL_END", "toolCallId": call}

    def _is_theirs(self, tool: str) -> bool:
        """Clients run what they are shown of their own tools at the end of a run: so a call of one is shown
        when it may run, or when it is over."""
        return tool in self._client_tools

    def _hand_out(self, call: str, tool: str, arguments: Arguments) -> None:
        """The client is to run it, or we for it, if it is about the state."""
        if tool == UPDATE_STATE and self._has_state_tool:
            self.updates[call] = arguments
        else:
            self._handed_out[call] = None

    def _settle(
        self, call: str, tool: str, arguments: Arguments, state: CallState, result: ToolResult
    ) -> Iterator[RunEvent]:
        self._handed_out.pop(call, None)
        self.updates.pop(call, None)
        self._unsettled.discard(call)
        told: RunEvent = {"messageId": f"{call}-result", "toolCallId": call, "content": result.text}
        yield {"type": "TOOL_CALL_RESULT", **told, "role": "tool"}
        if tool == UPDATE_STATE and self._has_state_tool and state is CallState.COMPLETED:
            before, self.state = self.state, merged(self.state, changes_in(arguments))
            if delta := [*difference(before, self.state)]:
                yield {"type": "STATE_DELTA", "delta": [*delta]}


def _opening(kind: str, id: str) -> Iterator[RunEvent]:
    if kind == "text":
        yield {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}
    else:
        yield {"type": "REASONING_START", "messageId": id}
        yield {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}


def _interrupt(id: str, asked: Question | e.CallAsked) -> JsonValue:
    schemas = {"tool": asked.schema or _words(asked), "review": _RELEASE}
    return {
        "id": id,
        "reason": asked.kind,
        "message": approval_text(asked),
        "toolCallId": asked.call,
        "responseSchema": schemas.get(asked.kind, _YES_OR_NO),
        "metadata": {
            "tool": asked.tool,
            "arguments": asked.arguments,
            "because": asked.because,
            "choices": [*asked.choices],
            "free": asked.free,
            "diff": asked.diff,
            "told": [*asked.told],
        },
    }


def _words(asked: Question | e.CallAsked) -> JsonValue:
    """A reply to a tool that has no schema for it."""
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
    """A stored message, with the results of its calls behind it."""
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
            }
