"""`Action: add(a=1)` in a line of its own, as UI-TARS has it; and what else stands behind `Action:`.

ReAct has the name there and the arguments in the next line, behind `Action Input:`, or in brackets; Command R
a list of JSON in a fence. Models write other words for both, and like to have them bold. What stands behind
`Thought:` is a thought, up to the action.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor, Form, Steps
from dragoman.dialects.grammar import RESULTS, Dialect, ends_line, open_fence, tool_named
from dragoman.dialects.json_text import read_json
from dragoman.dialects.llama_pythonic import written_call
from dragoman.dialects.loose_json import is_schema, loose_calls, plain_name
from dragoman.dialects.python_calls import CALL, read_python_calls
from dragoman.dialects.python_text import plain_value
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.values import arguments_in_order, names_argument, only_argument, value_of
from dragoman.messages.request import ToolSpec
from dragoman.wire.arguments import parse_arguments
from dragoman.wire.thinking import END_TOKENS

THOUGHT, ACTION, OBSERVATION = "Thought:", "Action:", "Observation:"


def label(words: str) -> tuple[str, ...]:
    """These words in any case, with a colon behind them, and perhaps bold."""
    letters = (f"[{one.upper()}{one}]" if one.isalpha() else "[ _]" for one in words)
    return (_STARS, *letters, _STARS, ":")


_STARS = r"\*{0,2}"
BOLD_ACTION: Form = (_STARS, *"Action", _STARS, ":")
LABELS: tuple[Form, ...] = (
    *map(label, ("action", "tool", "function", "call", "tool call", "function call", "tool name")),
    *map(label, ("function name", "tool use", "use tool", "calling tool")),
)
"""What else stands in front of a name; the arguments have to follow."""
_PLAIN_INPUT: Form = label("action input")
_INPUTS: tuple[Form, ...] = (
    _PLAIN_INPUT,
    *map(label, ("tool input", "input", "arguments", "args", "parameters", "params")),
    *map(label, ("tool arguments", "tool args", "function arguments", "function args")),
)
_ENDS: tuple[Form, ...] = (
    *("\n\n", *END_TOKENS),
    *(("\n", *label(words)) for words in ("observation", "action", "thought", "final answer")),
    *(("\n", *(map(re.escape, one) if isinstance(one, str) else one)) for one in RESULTS),
)
"""What stands behind an input that is plain text."""
_NAME = re.compile(r"[\w.-]{1,99}")
_MORE_STARS = re.compile(r"\*{0,2}")
_AROUND_NAME = " \t\r`*\"'"
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


def read_action(
    dialect: Dialect,
    cursor: Cursor,
    tools: Tools | None,
    *,
    known: bool = False,
    certain: bool = True,
    alone: bool = True,
) -> Reading:
    """`Action:` was read. `known` says that only tools there are count; all else is text. So is, if it is not
    `certain` that a call begins here, what has no arguments that can be read; and, if not `alone`, a name
    with nothing behind it."""
    yield from cursor.run(_MORE_STARS)
    yield from cursor.space()
    if (yield from cursor.sees("```", "{", "[")):
        return (yield from _json_behind(dialect, cursor, tools))
    ticked = (yield from cursor.sees(("`", *CALL))) and (yield from cursor.accept("`"))
    if (yield from cursor.sees(CALL)):
        found = yield from read_python_calls(dialect, cursor, tools, certain=not known)
        if ticked:
            yield from cursor.accept("`")
        if known and not (yield from ends_line(cursor)):
            return None  # the text speaks of it
        return [_without_boxes(one) for one in found] or None
    name, mark = yield from cursor.until("\n", "{", "[", *_INPUTS)
    name = plain_name(name.strip(_AROUND_NAME))
    tool = tool_named(name, tools)
    if not _NAME.fullmatch(name) or (known and tool is None):
        return None
    if mark == "[":
        return (yield from _bracketed(dialect, cursor, name, tool)) if certain else None
    space = yield from cursor.space()
    plain = yield from cursor.accept(_PLAIN_INPUT)
    if not plain and not (yield from cursor.accept(*_INPUTS)) and mark != "{":
        cut = cursor.over and (cursor.broken_off or cursor.at < len(cursor.text))  # or ends in such a word
        cursor.back(len(space))
        if not (mark and tool and certain and alone):
            return None
        return [dialect.bad("the reply ends before it does", name) if cut else dialect.called(name, "")]
    if certain and plain:
        return (yield from _input(dialect, cursor, name, tool))
    called = yield from _json_input(cursor, name)
    return called if (yield from ends_line(cursor)) else None


def _input(dialect: Dialect, cursor: Cursor, name: str, tool: ToolSpec | None) -> Reading:
    """The arguments: JSON, or the text of the one that is meant."""
    yield from cursor.run(_MORE_STARS)
    yield from cursor.space()
    ticked = (yield from cursor.sees("`{")) and (yield from cursor.accept("`"))
    only, start = only_argument(tool), cursor.taken
    fenced = (yield from open_fence(cursor)) if only else ""
    if only and tool and not (yield from cursor.sees("{")):
        text, mark = yield from cursor.until(*((fenced,) if fenced else _ENDS))
        if fenced:
            yield from cursor.accept(fenced)
        if cursor.broken_off and not mark:
            return [dialect.bad("the reply ends before it does", name)]
        if not fenced and names_argument(text, only):
            return [dialect.bad("its arguments are no JSON object", name)]
        return [_with_value(text, only, tool)]
    cursor.back(cursor.taken - start)
    found = yield from dialect.named(cursor, name, "", (), (OBSERVATION, ACTION, THOUGHT, "\n\n"))
    if ticked:
        yield from cursor.accept("`")
    return found


def _json_input(cursor: Cursor, name: str) -> Reading:
    """The arguments as JSON; None if something else stands there."""
    yield from cursor.run(_MORE_STARS)
    yield from cursor.space()
    fenced = (yield from open_fence(cursor)) or (yield from cursor.accept("`"))
    if not (yield from cursor.sees("{")):
        return None
    payload = yield from read_json(cursor, lambda members: False)
    arguments = None if payload.flaw else parse_arguments(payload.text)
    yield from _close(cursor, fenced)
    return None if arguments is None or is_schema(arguments) else [TextCall(name, arguments)]


def _close(cursor: Cursor, fenced: str) -> Steps[None]:
    space = yield from cursor.space()
    if not fenced or not (yield from cursor.accept(fenced)):
        cursor.back(len(space))


def _bracketed(dialect: Dialect, cursor: Cursor, name: str, tool: ToolSpec | None) -> Reading:
    """What stands in brackets behind the name, and nothing behind them: `search[a few words]`."""
    line, mark = yield from cursor.until("\n")
    inner, bracket, behind = line.removeprefix("[").rpartition("]")
    if tool is None or not bracket or behind.strip():
        return None
    if cursor.broken_off and not mark:  # it may have been a bracket within them
        return [dialect.bad("the reply ends before it does", name)]
    inner = inner.strip()
    if inner.startswith("{"):
        return [dialect.called(name, inner)]
    only = only_argument(tool)
    if only and names_argument(inner, only):
        return [dialect.bad("its arguments are no JSON object", name)]
    if only:
        return [_with_value(inner, only, tool)]
    values = plain_value(f"[{inner}]")
    given = values if isinstance(values, list) else []
    names = arguments_in_order(len(given), tool)
    if names is None or not given:
        return [dialect.bad("its arguments have to be named", name)]
    return [TextCall(tool.name, dict(zip(names, given, strict=True)))]


def _with_value(text: str, key: str, tool: ToolSpec) -> TextCall:
    """A call with one value. Some put it in quotes."""
    text = text.strip()
    quoted = plain_value(text) if text[:1] in ("'", '"') else None
    return TextCall(tool.name, {key: quoted if isinstance(quoted, str) else value_of(text, key, tool)})


def _json_behind(dialect: Dialect, cursor: Cursor, tools: Tools | None) -> Reading:
    fenced = yield from open_fence(cursor)
    if not (yield from cursor.sees("{", "[")):
        return None
    payload = yield from read_json(cursor, lambda members: False)
    found = None if payload.flaw else loose_calls(payload.text, tools)
    if found is None:
        return None
    yield from _close(cursor, fenced)
    return found


def _without_boxes(one: FoundCall) -> FoundCall:
    """Places on a screen as they are, without the tokens around them."""
    if not isinstance(one, TextCall):
        return one
    plain = {
        key: _BOX.sub("", value) if isinstance(value, str) else value for key, value in one.arguments.items()
    }
    return TextCall(one.name, plain, one.id)
