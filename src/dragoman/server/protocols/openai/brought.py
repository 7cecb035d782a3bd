"""What a request of either API brings: prompts, a history, results of calls, and what is said now."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from dragoman.messages.ids import new_id
from dragoman.messages.message import (
    Arguments,
    CallState,
    File,
    Message,
    Part,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.server.context import Context
from dragoman.server.protocols.openai.attachments import Attached
from dragoman.server.protocols.openai.errors import ApiRefusal
from dragoman.wire.calls import parse_arguments

Content: TypeAlias = tuple[str | Attached, ...]


@dataclass(slots=True, frozen=True)
class UserEntry:
    content: Content


@dataclass(slots=True, frozen=True)
class BroughtCall:
    id: str
    tool: str
    arguments: str


@dataclass(slots=True, frozen=True)
class AssistantEntry:
    texts: tuple[str, ...] = ()
    calls: tuple[BroughtCall, ...] = ()


@dataclass(slots=True, frozen=True)
class CallOutput:
    """What came of a call, by the id that the call had."""

    call: str
    content: Content


Entry: TypeAlias = UserEntry | AssistantEntry | CallOutput


@dataclass(slots=True)
class Brought:
    """In the order in which it came, with neighbours of one speaker as one."""

    system: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        match (self.entries[-1] if self.entries else None, entry):
            case (UserEntry(content=before), UserEntry(content=now)):
                self.entries[-1] = UserEntry((*before, *now))
            case (AssistantEntry(texts=texts, calls=calls), AssistantEntry()):
                self.entries[-1] = AssistantEntry((*texts, *entry.texts), (*calls, *entry.calls))
            case _:
                self.entries.append(entry)

    @property
    def prompt(self) -> str | None:
        return "\n\n".join(text for text in self.system if text.strip()) or None

    @property
    def earlier(self) -> list[Entry]:
        """Up to the last thing that an assistant said."""
        return self.entries[: len(self.entries) - len(self._now())]

    @property
    def outputs(self) -> list[CallOutput]:
        return [entry for entry in self._now() if isinstance(entry, CallOutput)]

    @property
    def sent(self) -> Content:
        """What the person says now."""
        contents = (entry.content for entry in self._now() if isinstance(entry, UserEntry))
        return tuple(piece for content in contents for piece in content)

    def _now(self) -> list[Entry]:
        last = max(
            (at for at, entry in enumerate(self.entries) if isinstance(entry, AssistantEntry)), default=-1
        )
        return self.entries[last + 1 :]


def calls_with_outputs(entries: Iterable[Entry]) -> list[tuple[BroughtCall, CallOutput]]:
    """Each call, in order, with what came of it. Programs that count their calls anew have an id more than
    once: an output is of the first call before it that has none. ApiRefusal where a call has none at all."""
    made: list[BroughtCall] = []
    waiting: dict[str, deque[int]] = {}
    outputs: dict[int, CallOutput] = {}
    for entry in entries:
        match entry:
            case AssistantEntry(calls=calls):
                for call in calls:
                    waiting.setdefault(call.id, deque()).append(len(made))
                    made.append(call)
            case CallOutput(call=id) if waiting.get(id):
                outputs[waiting[id].popleft()] = entry
            case _:
                pass
    for at, call in enumerate(made):
        if at not in outputs:
            raise missing_output(call.id)
    return [(call, outputs[at]) for at, call in enumerate(made)]


def missing_output(call: str) -> ApiRefusal:
    return ApiRefusal(f"no tool output found for function call {call}", code="missing_tool_output")


async def parts_of(content: Content, context: Context, person: str) -> list[Text | File]:
    """As messages hold it; its files are stored."""
    return [
        Text(piece) if isinstance(piece, str) else await piece.stored(context, person) for piece in content
    ]


async def result_of(output: CallOutput, context: Context, person: str) -> ToolResult:
    parts = await parts_of(output.content, context, person)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return ToolResult(text, attachments=tuple(part for part in parts if isinstance(part, File)))


async def messages_of(
    entries: Sequence[Entry], conversation: str, context: Context, person: str
) -> list[Message]:
    """A history as it is stored, below one another."""
    now = context.runtime.services.clock()
    made = iter(calls_with_outputs(entries))
    messages: list[Message] = []
    turn = new_id("turn")
    for entry in entries:
        parts: Iterable[Part]
        role: Role
        match entry:
            case UserEntry(content=content):
                parts, role, turn = await parts_of(content, context, person), "user", new_id("turn")
            case AssistantEntry(texts=texts, calls=calls):
                settled = [await _settled(*next(made), context, person) for _ in calls]
                parts, role = [*map(Text, filter(None, texts)), *settled], "assistant"
            case _:
                continue
        parent = messages[-1].id if messages else None
        message = Message(new_id("msg"), conversation, parent, role, tuple(parts), turn=turn, created=now)
        if message.parts:
            messages.append(message if role == "user" else replace(message, finish="stop"))
    return messages


def arguments_of(call: BroughtCall) -> Arguments | None:
    """None where they cannot be read."""
    return parse_arguments(call.arguments or "{}")


async def _settled(call: BroughtCall, output: CallOutput, context: Context, person: str) -> ToolCall:
    arguments = arguments_of(call)
    return ToolCall(
        new_id("call"),
        call.tool,
        arguments or {},
        raw=call.arguments if arguments is None else None,
        state=CallState.COMPLETED,
        result=await result_of(output, context, person),
        provider_id=call.id,
    )
