"""Define the two dialects for prompts: any model can be told to write them.

`xml_tag` is `<tool_code>{"name": …, "arguments": {…}}</tool_code>` for each call, `json_strict` one object
`{"tool_calls": [{"name": …, "arguments": {…}}]}`. Any other object is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, described, name_in
from dragoman.dialects.literals import Members, read_json
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.messages.message import Part, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.calls import parse_arguments
from dragoman.wire.lowering import CallIds, asked_arguments, lower, result_files, result_text

OPEN, CLOSE = "<tool_code>", "</tool_code>"


class XmlTag(Dialect):
    name = "xml_tag"
    how = (
        f"To call a tool, write a JSON object with its name and its arguments between {OPEN} and {CLOSE}; "
        "for several calls, several of these."
    )
    opens = (OPEN,)
    drops = (CLOSE,)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        return (yield from self.tagged(cursor, OPEN, CLOSE))

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(f"{OPEN}{described(call)}{CLOSE}" for call in calls)


class JsonStrict(Dialect):
    name = "json_strict"
    how = (
        "To call tools, write one JSON object and nothing else. Its `tool_calls` is a list of calls, each "
        "with the name of a tool and its arguments."
    )
    bare = (r"\{", r"\s{0,64}", '"')

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        payload = yield from read_json(cursor, _lists_calls)
        if not payload.certain:
            cursor.back(payload.swallowed)
            return None
        whole = parse_arguments(payload.text) if not payload.flaw else None
        entries = whole.get("tool_calls") if whole else None
        if isinstance(entries, list):
            return [self.entry(entry) for entry in entries]
        if payload.flaw:
            yield from cursor.until("\n\n", "```")
        return [self.bad(payload.flaw or "its JSON cannot be read", name_in(payload.text))]

    def calls(self, calls: Sequence[TextCall]) -> str:
        return f'{{"tool_calls": [{", ".join(described(call) for call in calls)}]}}'


def _lists_calls(members: Members) -> bool:
    return members.get("tool_calls") == "["


# Rewrite a request with tools and calls as one that any model can read: only text, and no tools.
#
# The calls of a reply are written back into its text, and their results follow in the user's next message.


def disguise(request: Request, dialect: Dialect) -> Request:
    tools = () if request.tool_choice == "none" else request.tools
    return replace(
        request,
        system=dialect.system(request.system, tools) + (_demand(request) if tools else ""),
        messages=tuple(lower(_disguised(lower(request.messages), dialect))),
        tools=(),
        tool_choice=None,
    )


def _disguised(messages: Iterable[RequestMessage], dialect: Dialect) -> Iterator[RequestMessage]:
    ids = CallIds(dialect.ids)
    for message in messages:
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if not calls:
            yield message
            continue
        named = [(call, ids.next(call)) for call in calls]
        written = dialect.calls([TextCall(call.tool, asked_arguments(call), id) for call, id in named])
        yield RequestMessage("assistant", _with_calls(message.parts, written))
        results = "\n".join(dialect.result(id, call.tool, result_text(call)) for call, id in named)
        yield RequestMessage(
            "user", (Text(results), *(file for call in calls for file in result_files(call)))
        )


def _with_calls(parts: tuple[Part, ...], written: str) -> tuple[Part, ...]:
    """Return the parts of a reply, with its texts joined and the calls after them."""
    text = "\n\n".join(part.text for part in parts if isinstance(part, Text))
    others = tuple(part for part in parts if not isinstance(part, Text | ToolCall))
    return (*others, Text(f"{text}\n{written}" if text else written))


def _demand(request: Request) -> str:
    match request.tool_choice:
        case None | "auto" | "none":
            return ""
        case "required":
            return " Now you do need one: call at least one tool."
        case name:
            return f" Now you do need one: call {name}."
