"""A turn's events as the updates an editor shows: text, thoughts, tool calls with their diffs, and plans.

What the protocol has no word for is left out: retries, usage of steps, citations, notices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import JsonValue

from dragoman.cli.acp.diffs import diff_contents
from dragoman.messages import events as e
from dragoman.messages.message import (
    Arguments,
    CallState,
    File,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.visible_text import visible

Update: TypeAlias = dict[str, Any]

_KINDS = (
    ("files.read", "read"),
    ("files.write", "edit"),
    ("shell", "execute"),
    ("fetch_url", "fetch"),
    ("web.", "fetch"),
    ("basics.todo", "think"),
)
_SEARCHES = ("grep", "glob", "list_directory")
_SHOWN = 50_000  # characters of a result
_TITLE = 200  # characters: the call itself is shown whole
_PROGRESS = 8_000  # characters of what a call reported last
_PLAN = {"open": "pending", "doing": "in_progress", "done": "completed"}


class TurnUpdates:
    """Follows one turn. `permission_of` names the permission of a tool, `announced` the calls that the
    editor knows already, and `folder` is what relative paths start from."""

    def __init__(
        self,
        folder: Path,
        permission_of: Callable[[str], str],
        announced: Collection[str] = (),
    ) -> None:
        self.folder = folder
        self._permission_of = permission_of
        self.announced = set(announced)
        self._settled: set[str] = set()
        self._progress: dict[str, str] = {}
        self._message = ""
        self._tools: dict[str, str] = {}

    def updates(self, event: e.Event) -> Iterator[Update]:
        """What there is to say about an event, in order; often nothing."""
        match event:
            case e.StepStart(message=message, attempt=attempt):
                self._message = message if attempt == 1 else f"{message}.{attempt}"
            case e.TextDelta(text=text) if text:
                yield self._chunk("agent_message_chunk", text)
            case e.ReasoningDelta(text=text) if text:
                yield self._chunk("agent_thought_chunk", text)
            case e.MessageAdded(message=message):
                yield from message_updates(message, self)
            case e.CallInputStart(call=call, tool=tool):
                yield self._call(call, tool)
            case e.CallInputEnd(call=call, tool=tool, arguments=arguments):
                yield self._call(call, tool, arguments)
            case e.CallAsked(call=call, tool=tool, arguments=arguments, diff=diff):
                contents = diff_contents(diff, self.folder)
                yield self._call(call, tool, arguments, **({"content": contents} if contents else {}))
            case e.CallStart(call=call, tool=tool, arguments=arguments):
                yield self._call(call, tool, arguments, status="in_progress")
            case e.CallProgress(call=call, value=value):
                yield from self._report(call, value)
            case e.CallEnd() if event.call not in self._settled:
                yield from self._end(event.call, event.tool, event.arguments, event.state, event.result)
            case _:
                pass

    def stored_call(self, call: ToolCall) -> Iterator[Update]:
        """A call of a message that was stored whole."""
        if call.result is not None and call.state.settled:
            yield from self._end(call.id, call.tool, call.arguments, call.state, call.result)
        else:
            yield self._call(call.id, call.tool, call.arguments)

    # ── a call ────────────────────────────────────────────────────────────────────────────────────

    def tool_call(self, call: str, tool: str, arguments: Arguments | None) -> Update:
        """What there is to know of a call before it ran."""
        found: Update = {
            "toolCallId": call,
            "title": title_of(tool, arguments),
            "kind": self._kind(tool),
        }
        if arguments is not None:
            found["rawInput"] = arguments
            if locations := self._locations(arguments):
                found["locations"] = locations
        return found

    def _call(self, call: str, tool: str, arguments: Arguments | None = None, **more: Any) -> Update:
        new = call not in self.announced
        self.announced.add(call)
        self._tools[call] = tool
        known = self.tool_call(call, tool, arguments)
        if new:
            return {"sessionUpdate": "tool_call", "status": "pending", **known, **more}
        return {"sessionUpdate": "tool_call_update", **known, **more}

    def _end(
        self, call: str, tool: str, arguments: Arguments, state: CallState, result: ToolResult
    ) -> Iterator[Update]:
        self._settled.add(call)
        self._progress.pop(call, None)
        completed = state is CallState.COMPLETED
        diff = result.metadata.get("diff")
        contents = diff_contents(diff, self.folder) if isinstance(diff, str) else []
        terminal = result.metadata.get("terminal")
        if isinstance(terminal, str):
            contents.append({"type": "terminal", "terminalId": terminal})
        if not contents or not completed:
            contents.append(_content(result.text[:_SHOWN]))
        yield self._call(
            call,
            tool,
            arguments,
            status="completed" if completed else "failed",
            content=contents,
            **({"rawOutput": result.value} if result.value is not None and completed else {}),
        )
        items = result.metadata.get("items")
        if completed and self._permission_of(tool) == "basics.todo" and isinstance(items, list):
            yield {"sessionUpdate": "plan", "entries": _entries(items)}

    def _report(self, call: str, value: JsonValue) -> Iterator[Update]:
        if call in self._settled or call not in self._tools:
            return
        match value:
            case {"terminal": str(terminal)}:
                yield self._content_of(call, {"type": "terminal", "terminalId": terminal})
            case {"asks": str()}:
                pass
            case str():
                text = f"{self._progress.get(call, '')}{value}"[-_PROGRESS:]
                self._progress[call] = text
                yield self._content_of(call, _content(text))
            case _:
                pass

    def _content_of(self, call: str, content: Update) -> Update:
        return {"sessionUpdate": "tool_call_update", "toolCallId": call, "content": [content]}

    def _kind(self, tool: str) -> str:
        if tool in _SEARCHES:
            return "search"
        permission = self._permission_of(tool)
        return next((kind for begin, kind in _KINDS if permission.startswith(begin)), "other")

    def _locations(self, arguments: Arguments) -> list[Update]:
        path = arguments.get("path")
        if not isinstance(path, str) or not path or "\0" in path:
            return []
        location: Update = {"path": str(self.folder / path)}
        start = arguments.get("start")
        if isinstance(start, int) and not isinstance(start, bool) and start >= 1:
            location["line"] = start
        return [location]

    def _chunk(self, kind: str, text: str) -> Update:
        chunk = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
        return {**chunk, "messageId": self._message} if self._message else chunk


def message_updates(message: Message, calls: TurnUpdates) -> Iterator[Update]:
    """A stored message, as if it were said now."""
    kind = "user_message_chunk" if message.role == "user" else "agent_message_chunk"
    for part in message.parts:
        match part:
            case Text(text=text) if text:
                yield _stored_chunk(kind, {"type": "text", "text": text}, message)
            case Reasoning(text=text) if text:
                yield _stored_chunk("agent_thought_chunk", {"type": "text", "text": text}, message)
            case File():
                yield _stored_chunk(kind, _file_block(part), message)
            case ToolCall():
                yield from calls.stored_call(part)
            case _:
                pass


def title_of(tool: str, arguments: Arguments | None) -> str:
    """In a line: the tool, and what it is used on."""
    for name in ("command", "path", "url", "pattern", "query", "agent"):
        value = (arguments or {}).get(name)
        if isinstance(value, str) and value.strip():
            line = " ".join(visible(value).split())
            return f"{tool}: {line if len(line) <= _TITLE else f'{line[:_TITLE]}…'}"
    return tool


def _stored_chunk(kind: str, content: Update, message: Message) -> Update:
    return {"sessionUpdate": kind, "content": content, "messageId": message.id}


def _file_block(file: File) -> Update:
    """The bytes stay where they are: they may be many."""
    name = file.name or file.media_type
    link: Update = {"type": "resource_link", "name": name, "uri": file.url or f"dragoman://blob/{file.blob}"}
    return {**link, "mimeType": file.media_type, **({"size": file.size} if file.size is not None else {})}


def _content(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _entries(items: Sequence[JsonValue]) -> list[Update]:
    found = [item for item in items if isinstance(item, dict)]
    return [
        {
            "content": str(item.get("text", "")),
            "priority": "medium",
            "status": _PLAN.get(str(item.get("state")), "pending"),
        }
        for item in found
    ]
