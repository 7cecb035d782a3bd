"""`Action: add(a=1)` in a line of its own, as UI-TARS has it; and what else stands behind `Action:`.

ReAct has the name there and the arguments in the next line, behind `Action Input:`; Command R a list of JSON
in a fence. What stands behind `Thought:` is a thought, up to the action.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, open_fence, tool_named
from dragoman.dialects.json_text import read_json
from dragoman.dialects.llama_pythonic import written_call
from dragoman.dialects.loose_json import loose_calls, plain_name
from dragoman.dialects.python_calls import CALL, read_python_calls
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools

THOUGHT, ACTION, INPUT, OBSERVATION = "Thought:", "Action:", "Action Input:", "Observation:"

_NAME = re.compile(r"[\w.-]{1,99}")
_BOX = re.compile(r"<\|box_(?:start|end)\|>|</?point>")  # around the places on a screen


class Action(Dialect):
    name = "action"
    how = (
        f"To call a tool, write {ACTION} in a line of its own and the call behind it, as in Python. Name "
        "every argument; values are strings, numbers, True, False, None, lists and dicts."
    )
    opens = turns = (THOUGHT, ACTION)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if not cursor.fresh:
            return None
        if opener == THOUGHT:
            yield from cursor.space()
            return "reasoning"
        return (yield from read_action(self, cursor, tools)) or "text"

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(f"{ACTION} {written_call(call)}" for call in calls)


def read_action(dialect: Dialect, cursor: Cursor, tools: Tools | None, *, known: bool = False) -> Reading:
    """`Action:` was read. `known` says that only tools there are count; all else is text."""
    yield from cursor.space()
    if (yield from cursor.sees("```", "{", "[")):
        return (yield from _json_behind(dialect, cursor, tools))
    if (yield from cursor.sees(CALL)):
        found = yield from read_python_calls(dialect, cursor, tools, certain=not known)
        return [_without_boxes(one) for one in found] or None
    name, mark = yield from cursor.until("\n", INPUT)
    name, tool = plain_name(name), tool_named(plain_name(name), tools)
    if not _NAME.fullmatch(name) or (known and tool is None):
        return None
    yield from cursor.space()
    if not (yield from cursor.accept(INPUT)):
        return [dialect.called(name, "")] if mark and tool else None
    called = yield from dialect.named(cursor, name, "", (), (OBSERVATION, ACTION, THOUGHT, "\n\n"))
    space = yield from cursor.space()
    if not (yield from cursor.accept(OBSERVATION)):
        cursor.back(len(space))
    return called


def _json_behind(dialect: Dialect, cursor: Cursor, tools: Tools | None) -> Reading:
    fenced = yield from open_fence(cursor)
    if not (yield from cursor.sees("{", "[")):
        return None
    payload = yield from read_json(cursor, lambda members: False)
    found = None if payload.flaw else loose_calls(payload.text, tools)
    if found is None:
        return None
    space = yield from cursor.space()
    if not fenced or not (yield from cursor.accept(fenced)):
        cursor.back(len(space))
    return found


def _without_boxes(one: FoundCall) -> FoundCall:
    """Places on a screen as they are, without the tokens around them."""
    if not isinstance(one, TextCall):
        return one
    plain = {
        key: _BOX.sub("", value) if isinstance(value, str) else value for key, value in one.arguments.items()
    }
    return TextCall(one.name, plain, one.id)
