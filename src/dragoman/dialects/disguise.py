"""Rewrites a request with tools and calls as one that any model can read: text alone, and no tools.

The calls of a reply are written back into its text, their results follow in the user's next message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import TextCall
from dragoman.messages.message import Part, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.lowering import CallIds, asked_arguments, lower, result_files, result_text


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
    """The parts of a reply, its texts made one with the calls behind it."""
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
