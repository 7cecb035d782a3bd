"""The questions a turn asks, in words: what is asked, about which arguments, and what "always" would add."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from dragoman.messages.events import CallAsked
from dragoman.messages.ids import derived_id
from dragoman.messages.parts import ToolCall, ToolResult
from dragoman.messages.questions import Kind, Question
from dragoman.tools.permissions import rules_in_words
from dragoman.tools.tool import Tool
from dragoman.turn.live.log import TurnLog

_WORDS: dict[Kind, str] = {
    "approve": "May {tool} run with these arguments?",
    "run": "{tool} is ready: run it?",
    "loop": "{tool} was already called with these arguments. Run it again?",
    "interrupted": "The program stopped while {tool} ran, so nobody knows how far it got. Run it again?",
    "review": "May the model see this result of {tool}?",
}


def asked(question: Question) -> CallAsked:
    """The event that tells of it."""
    return CallAsked(
        question.call, question.id, question.kind, question.tool, question.arguments, question.text
    )


def question_about(
    log: TurnLog,
    call: ToolCall,
    tool: Tool | None,
    kind: Kind,
    *,
    text: str | None = None,
    choices: Sequence[str] = (),
    schema: dict[str, JsonValue] | None = None,
    result: ToolResult | None = None,
    place: int = 0,
) -> Question:
    """A question about a call. The same one, asked again after a crash, has the same id."""
    asks_to_run = kind in ("approve", "run")
    rules = tool.always(call.arguments) if tool is not None and asks_to_run else ()
    words = text or _WORDS[kind].format(tool=call.tool)
    if tool is not None and tool.remark and asks_to_run:
        words += f" {tool.remark}"
    if rules:
        words += f" (always would mean: {rules_in_words(rules)})"
    return Question(
        id=derived_id("ask", log.id, call.id, kind, place, call.hash),
        conversation=log.conversation.id,
        turn=log.id,
        call=call.id,
        kind=kind,
        tool=call.tool,
        text=words,
        arguments=call.arguments,
        hash=call.hash,
        server=tool.server if tool is not None else None,
        rules=rules,
        choices=tuple(choices),
        schema=_schema(tool, kind, schema),
        result=result,
        fingerprint=tool.fingerprint if tool is not None else None,
        asked=log.now(),
    )


def _schema(tool: Tool | None, kind: Kind, asked: dict[str, JsonValue] | None) -> dict[str, JsonValue]:
    """What an answer's values have to fit: the arguments' schema, or that of the reply a tool wants."""
    if kind == "tool":
        return asked or {}
    return tool.parameters.schema if tool is not None else {}
