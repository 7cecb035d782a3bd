"""Write a turn's events as updates for an editor: text, reasoning, plans, and tool calls with diffs.

Events that the protocol does not define are left out: retries, usage of steps, citations and notices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import JsonValue

from dragoman.messages import events as e
from dragoman.messages.message import (
    Arguments,
    CallState,
    File,
    Message,
    Text,
    ToolResult,
)
from dragoman.server.protocols.event_reader import (
    Asked,
    CallOpened,
    CallShown,
    EventReader,
    MessageTold,
    PartDelta,
    Value,
)
from dragoman.visible_text import visible
from dragoman.workspace.diff import unquoted

_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
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
_SHOWN = 50_000  # maximum characters of a result
_TITLE = 200  # maximum characters of a title; the call itself is shown whole
_PROGRESS = 8_000  # maximum characters of a call's latest progress
_PLAN = {"open": "pending", "doing": "in_progress", "done": "completed"}


def diff_contents(text: str, folder: Path) -> list[dict[str, Any]]:
    """Return the hunks of a unified diff with invisible characters made visible. Truncated and binary parts
    are left out."""
    return [
        {
            "type": "diff",
            "path": str(folder / path),
            "oldText": visible(old) if not (made and not old) else None,
            "newText": visible(new),
        }
        for path, old, new, made in _hunks(text)
    ]


def whole_contents(text: str, folder: Path) -> list[dict[str, Any]]:
    """Return the same if it contains everything in the diff for each file, and otherwise nothing."""
    contents = diff_contents(text, folder)
    files = sum(line.startswith("diff --git ") for line in text.split("\n"))
    return contents if len({one["path"] for one in contents}) == files else []


def _hunks(text: str) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the path, the old and the new lines of each hunk, and whether the file is new."""
    lines = [f"{line}\n" for line in text.removesuffix("\n").split("\n")]
    path, made, at = "", False, 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("--- "):
            made = line[4:].strip() == "/dev/null"
            path = _path(line[4:]) if not made else ""
        elif line.startswith("+++ ") and line[4:].strip() != "/dev/null":
            path = _path(line[4:])
        elif (head := _HUNK.match(line)) is not None:
            old, new = int(head[1] or 1), int(head[3] or 1)
            before: list[str] = []
            after: list[str] = []
            last = ""
            while at < len(lines) and (len(before) < old or len(after) < new or lines[at][0] == "\\"):
                sign, rest = lines[at][0], lines[at][1:]
                at += 1
                if sign == "\\":  # The file has no newline at its end.
                    for side in (before, after):
                        if side and side[-1] is last:
                            side[-1] = last.removesuffix("\n")
                    continue
                last = rest
                if sign in " -\n":
                    before.append(last)
                if sign in " +\n":
                    after.append(last)
            if len(before) == old and len(after) == new:
                yield path, "".join(before), "".join(after), made


def _path(field: str) -> str:
    """Return the path without `a/` or `b/`, and without git's quotes around special names."""
    name = unquoted(field.rstrip("\n").split("\t")[0])
    return name[2:] if name[:2] in ("a/", "b/") else name


class TurnUpdates:
    """Follows one turn. `permission_of` returns the permission of a tool. `announced` are calls that the
    editor has already received. Relative paths start at `folder`."""

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
        self._reader = EventReader()
        self._tools: dict[str, str] = {}

    def updates(self, event: e.Event) -> Iterator[Update]:
        """Yield the updates for an event in order, often none."""
        return (update for value in self._reader.read(event) for update in self._write(value))

    def stored(self, message: Message) -> Iterator[Update]:
        """Yield the updates for a stored message, as if it were new."""
        if message.role == "assistant":
            yield from (update for value in self._reader.tell([message]) for update in self._write(value))
            return
        for part in message.parts:
            if isinstance(part, Text) and part.text:
                yield _chunk("user_message_chunk", _text(part.text), message.id)
            elif isinstance(part, File):
                yield _chunk("user_message_chunk", _file_block(part), message.id)

    def _write(self, value: Value) -> Iterator[Update]:
        match value:
            case e.StepStart(message=message, attempt=attempt):
                self._message = message if attempt == 1 else f"{message}.{attempt}"
            case MessageTold(message=message):
                self._message = message.id
            case PartDelta(kind=kind, text=text):
                says = "agent_message_chunk" if kind == "text" else "agent_thought_chunk"
                yield _chunk(says, _text(text), self._message)
            case e.FileAdded(file=file):
                yield _chunk("agent_message_chunk", _file_block(file), self._message)
            case e.MessageAdded(message=message):
                yield from self.stored(message)
            case CallOpened(call=call, tool=tool):
                yield self._call(call, tool)
            case CallShown(call=call, tool=tool, arguments=arguments, runs=runs):
                yield self._call(call, tool, arguments, **({"status": "in_progress"} if runs else {}))
            case Asked(about=asked, call=call) if value.inner:
                yield from self._report(call, asked.text)
            case Asked(about=asked):
                contents = diff_contents(asked.diff, self.folder)
                more = {"content": contents} if contents else {}
                yield self._call(asked.call, asked.tool, asked.arguments, **more)
            case e.CallProgress(call=call, value=reported):
                yield from self._report(call, reported)
            case e.CallEnd() if value.call not in self._settled:
                yield from self._end(value.call, value.tool, value.arguments, value.state, value.result)
            case _:
                pass

    # ── a call ────────────────────────────────────────────────────────────────────────────────────

    def tool_call(self, call: str, tool: str, arguments: Arguments | None) -> Update:
        """Return what is known of a call before it runs."""
        found: Update = {
            "toolCallId": self._reader.program_of(call),
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


def title_of(tool: str, arguments: Arguments | None) -> str:
    """Return a line with the tool and the object that it is used on."""
    for name in ("command", "path", "url", "pattern", "query", "agent"):
        value = (arguments or {}).get(name)
        if isinstance(value, str) and value.strip():
            line = " ".join(visible(value).split())
            return f"{tool}: {line if len(line) <= _TITLE else f'{line[:_TITLE]}…'}"
    return tool


def _chunk(kind: str, content: Update, message: str) -> Update:
    chunk: Update = {"sessionUpdate": kind, "content": content}
    return {**chunk, "messageId": message} if message else chunk


def _text(text: str) -> Update:
    return {"type": "text", "text": text}


def _file_block(file: File) -> Update:
    """Return a link to the file instead of its bytes, which can be large."""
    name = file.name or file.media_type
    link: Update = {"type": "resource_link", "name": name, "uri": file.url or f"dragoman://blob/{file.blob}"}
    return {**link, "mimeType": file.media_type, **({"size": file.size} if file.size is not None else {})}


def _content(text: str) -> Update:
    return {"type": "content", "content": _text(text)}


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
