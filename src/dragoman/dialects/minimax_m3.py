"""`<invoke name="NAME"><key>value</key>…</invoke>`, with a token in front of every tag: MiniMax M3.

An object stands as one tag for each key, a list as one tag `item` for each item, or as JSON. The schema of
the tool says which of them a value is, and of which type what stands in a tag as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from pydantic import JsonValue

from dragoman.dialects.cursor import Cursor, Steps
from dragoman.dialects.grammar import Dialect, tool_named
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.values import allows_list, schema_in, value_in
from dragoman.dialects.wording import compact
from dragoman.messages.request import ToolSpec

TOKEN = "]<]minimax[>["
OPEN, CLOSE = f"{TOKEN}<tool_call>", f"{TOKEN}</tool_call>"
CALL, CALL_END = f'{TOKEN}<invoke name="', f"{TOKEN}</invoke>"
THOUGHT, THOUGHT_END = "<mm:think>", "</mm:think>"

_DEEPEST = 200


class BrokenTags(ValueError):
    """A tag is not what it has to be. The text says why, for the model."""


class MinimaxM3(Dialect):
    name = "minimax_m3"
    how = (
        "To call a tool, write its name and each argument between tags, as below, with the token in front of "
        "every tag; for several calls, several of these. Write strings as they are; all other values as JSON."
    )
    opens = (OPEN, CALL, THOUGHT)
    drops = (CLOSE, CALL_END, THOUGHT_END)
    thoughts = MappingProxyType({THOUGHT: THOUGHT_END})

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener == OPEN:
            yield from cursor.space()
            if not (yield from cursor.accept(CALL)):
                if (yield from cursor.accept(CLOSE)):
                    return []
                return (yield from self.stray(cursor, OPEN, CLOSE))
        name, mark = yield from cursor.until('">', "\n", TOKEN)
        if mark != '">':
            return (yield from self.stray(cursor, CALL, CALL_END))
        cursor.at += len(mark)
        found: FoundCall
        try:
            tool = tool_named(name, tools)
            arguments = yield from self._children(
                cursor, "invoke", tool.parameters if tool else None, tool, 0
            )
            found = TextCall(name.strip(), arguments) if name.strip() else self.bad("it has no name")
        except BrokenTags as fault:
            yield from cursor.until(CALL_END, CALL, OPEN)
            yield from cursor.accept(CALL_END)
            found = self.bad(str(fault), name)
        space = yield from cursor.space()
        if not (yield from cursor.accept(CLOSE)):
            cursor.back(len(space))
        return [found]

    def _children(
        self, cursor: Cursor, tag: str, schema: JsonValue, tool: ToolSpec | None, depth: int
    ) -> Steps[dict[str, JsonValue]]:
        """The tags inside a tag, up to what closes that. A tag that comes again makes a list."""
        members: dict[str, JsonValue] = {}
        again: set[str] = set()
        yield from cursor.space()
        while not (yield from cursor.accept(f"{TOKEN}</{tag}>")):
            if not (yield from cursor.accept(f"{TOKEN}<")):
                raise BrokenTags(f"it is not closed with {TOKEN}</{tag}>")
            key, mark = yield from cursor.until(">", "\n", TOKEN)
            if mark != ">" or not key or key[0] == "/":
                raise BrokenTags(f"<{key[:40]} is no tag that belongs there")
            cursor.at += 1
            if key in members and depth == 0:
                raise BrokenTags(f"its argument {key} is there twice")
            value = yield from self._value(cursor, key, schema_in(schema, key, tool), tool, depth)
            earlier = members.get(key)
            if key not in members:
                members[key] = value
            elif key in again and isinstance(earlier, list):
                earlier.append(value)
            else:
                members[key] = [earlier, value]
                again.add(key)
            yield from cursor.space()
        return members

    def _value(
        self, cursor: Cursor, key: str, schema: JsonValue, tool: ToolSpec | None, depth: int
    ) -> Steps[JsonValue]:
        text, mark = yield from cursor.until(TOKEN)
        if not mark:
            raise BrokenTags(f"its argument {key} is not closed with {TOKEN}</{key}>")
        if (yield from cursor.accept(f"{TOKEN}</{key}>")):
            return value_in(text, schema, tool)
        if text.strip() or depth == _DEEPEST:
            raise BrokenTags(f"its argument {key} is not closed, or nested too deep")
        children = yield from self._children(cursor, key, schema, tool, depth + 1)
        if list(children) == ["item"] and allows_list(schema, tool):
            items = children["item"]
            return items if isinstance(items, list) else [items]
        return children

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join([OPEN, *map(_written, calls), CLOSE])


def _written(call: TextCall) -> str:
    arguments = "".join(
        f"{TOKEN}<{key}>{value if isinstance(value, str) else compact(value)}{TOKEN}</{key}>"
        for key, value in call.arguments.items()
    )
    return f'{CALL}{call.name}">{arguments}{CALL_END}'
