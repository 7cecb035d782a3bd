"""Read `<invoke name="NAME"><parameter name="KEY">value</parameter>…</invoke>`, with the tags of several
models.

Values are raw, without escapes: the text after a closing tag shows whether it ends the value. Some models
note the type of a value next to the key. Otherwise the tool's schema decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue

from dragoman.dialects.cursor import Cursor, Steps
from dragoman.dialects.grammar import Dialect, compact, tool_named
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.values import (
    allows_list,
    has_argument,
    kind_of,
    may_have,
    read_value,
    schema_in,
    value_in,
    value_of,
)
from dragoman.messages.message import Arguments
from dragoman.messages.request import ToolSpec

_SPACE, _LINE = "Ġ", "Ċ"  # as byte-level tokenizers write them
_CDATA, _CDATA_END = "<![CDATA[", "]]>"


@dataclass(slots=True, frozen=True)
class InvokeTags:
    """The tags of one model. `call` and `argument` include the quote before the name."""

    call: str
    call_end: str
    argument: str
    argument_end: str
    around: tuple[str, str] = ("", "")
    """The tags around all calls of a reply, as they are written."""
    head_end: str = ">"
    between: str = ""
    """White space between tags, for readability."""
    text: str = ""
    """The text next to the key of a string, unchanged."""
    other: str = ""
    """The text next to the key of any other value. `{kind}` is its type in JSON."""
    cdata: bool = False
    """Whether a string may be in a CDATA section."""
    also: tuple[tuple[str, str], ...] = ()
    """Other tags around calls."""
    leaks: bool = False
    """Whether servers leave the tokenizer's marks of spaces and line breaks in its calls."""
    header: tuple[str, str] = ("", "")
    """The start of a message: left out up to its end, or up to reasoning."""
    drops: tuple[str, ...] = ()
    thoughts: Mapping[str, str] = field(default_factory=dict)


class Invoke(Dialect):
    how = (
        "To call a tool, write its name and each argument between tags, as below; for several calls, "
        "several of these. Write strings as they are, without quotes; all other values as JSON."
    )

    def __init__(self, name: str, tags: InvokeTags) -> None:
        around = [pair for pair in (tags.around, *tags.also) if pair[0]]
        self.name = name
        self.thoughts = tags.thoughts
        self._leaky = (*(tags.call.replace(" ", mark) for mark in (_SPACE, "")),) if tags.leaks else ()
        self.opens = (
            tags.call,
            *self._leaky,
            *(opening for opening, _ in around),
            *tags.thoughts,
            *filter(None, tags.header[:1]),
        )
        self.drops = (
            *(closing for _, closing in around),
            tags.call_end,
            *tags.thoughts.values(),
            *tags.drops,
        )
        self._tags = tags
        self._around = dict(around)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        tags = self._tags
        if opener in self._leaky:
            return (yield from self._leaked(cursor, tools))
        if opener == tags.header[0]:
            yield from cursor.space()
            if not (yield from cursor.sees(*tags.thoughts)):
                yield from cursor.until(tags.header[1], "\n")
                yield from cursor.accept(tags.header[1])
            return []
        if opener in self._around:
            yield from cursor.space()
            if not (yield from cursor.accept(tags.call)):
                if (yield from cursor.accept(self._around[opener])):
                    return []
                return (yield from self.stray(cursor, opener, self._around[opener]))
        found: list[FoundCall] = []
        while True:
            start = cursor.taken
            calls = yield from self._one(cursor, tools)
            if calls is None:
                cursor.back(cursor.taken - start)
                return found or (yield from self.stray(cursor, tags.call, tags.call_end, start))
            found += calls
            space = yield from cursor.space()
            if opener in self._around and (yield from cursor.accept(tags.call)):
                continue
            if not self._around or not (yield from cursor.accept(*self._around.values())):
                cursor.back(len(space))
            return found

    def _one(self, cursor: Cursor, tools: Tools | None) -> Steps[Sequence[FoundCall] | None]:
        """Read the call whose tag was begun. None if it is not a call."""
        tags = self._tags
        head = yield from self._head(cursor)
        if head is None:
            return None
        name, _ = head
        yield from cursor.space()
        if (yield from cursor.sees("{")):
            return (yield from self.named(cursor, name, "", (tags.call_end,), (tags.call,)))
        if (yield from cursor.sees(tags.argument, tags.call_end)):
            return [(yield from self._arguments(cursor, name, tools))]
        return None

    def _leaked(self, cursor: Cursor, tools: Tools | None) -> Reading:
        """Read a call again with white space instead of the tokenizer's marks."""
        tags = self._tags
        text, mark = yield from cursor.until(tags.call_end, tags.call, *self._leaky)
        yield from cursor.accept(tags.call_end)
        text = text.replace(_SPACE, " ").replace(_LINE, "\n")
        text = text.replace(tags.argument.replace(" ", ""), tags.argument)
        return self.parse(f"{tags.call}{text}{mark if mark == tags.call_end else ''}", tools).found or None

    def _head(self, cursor: Cursor) -> Steps[tuple[str, str] | None]:
        """Read the name in a tag that was begun, and what follows it in the tag."""
        end = self._tags.head_end
        name, mark = yield from cursor.until('"', "\n")
        if mark != '"':
            return None
        cursor.at += 1
        beside, mark = yield from cursor.until(end, "\n")
        if mark != end:
            return None
        cursor.at += len(end)
        return name.strip(), beside

    def _arguments(self, cursor: Cursor, name: str, tools: Tools | None) -> Steps[FoundCall]:
        tags, tool = self._tags, tool_named(name, tools)
        arguments: Arguments = {}
        while (yield from cursor.accept(tags.argument)):
            head = yield from self._head(cursor)
            key, beside = head or ("", "")
            section = _CDATA if tags.cdata and (yield from cursor.accept(_CDATA)) else ""
            closer = f"{_CDATA_END}{tags.argument_end}" if section else tags.argument_end
            text: str | None = None
            if head:
                text = yield from read_value(
                    cursor,
                    tags.argument,
                    closer,
                    (tags.call_end,),
                    lambda key: key not in arguments and may_have(key, tool, tools),
                )
            if text is None or key in arguments:
                yield from cursor.until(tags.call_end, tags.call)
                yield from cursor.accept(tags.call_end)
                why = "occurs twice" if key in arguments else f"is not closed with {tags.argument_end}"
                return self.bad(f"its argument {key} {why}", name)
            is_text = bool(section) or (bool(tags.text) and tags.text in beside)
            arguments[key] = value_of(text, key, tool, is_text=is_text)
            yield from cursor.space()
        if not (yield from cursor.accept(tags.call_end)):
            yield from cursor.until(tags.call_end, tags.call)
            yield from cursor.accept(tags.call_end)
            return self.bad(f"it is not closed with {tags.call_end}", name)
        inner = arguments.get("arguments")
        if isinstance(inner, dict) and len(arguments) == 1 and tool and not has_argument("arguments", tool):
            arguments = inner  # Models that were trained on several formats wrap arguments like this.
        return TextCall(name, arguments) if name else self.bad("it has no name")

    def calls(self, calls: Sequence[TextCall]) -> str:
        before, behind = self._tags.around
        parts = [before, *map(self._written, calls), behind]
        return self._tags.between.join(part for part in parts if part)

    def _written(self, call: TextCall) -> str:
        tags = self._tags
        written = "".join(
            f'{tags.argument}{key}"{self._beside(value)}{tags.head_end}{self._value(value)}'
            f"{tags.argument_end}{tags.between}"
            for key, value in call.arguments.items()
        )
        head = f'{tags.call}{call.name}"{tags.head_end}{tags.between}'
        return f"{head}{written}{tags.call_end}"

    def _beside(self, value: JsonValue) -> str:
        tags = self._tags
        noted = tags.text if isinstance(value, str) else tags.other.format(kind=kind_of(value))
        return f" {noted}" if noted else ""

    def _value(self, value: JsonValue) -> str:
        if not isinstance(value, str):
            return compact(value)
        if self._tags.cdata and value.startswith(_CDATA):
            return f"{_CDATA}{value}{_CDATA_END}"
        return value


DEEPSEEK_DSML = InvokeTags(  # DeepSeek V3.2 and V4, which have another outer tag
    call='<｜DSML｜invoke name="',
    call_end="</｜DSML｜invoke>",
    argument='<｜DSML｜parameter name="',
    argument_end="</｜DSML｜parameter>",
    around=("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    also=(("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),),
    between="\n",
    text='string="true"',
    other='string="false"',
    drops=("<｜end▁of▁sentence｜>",),
)

MINIMAX = InvokeTags(  # MiniMax M2; dots and Claude, if they write it as text, have other outer tags
    call='<invoke name="',
    call_end="</invoke>",
    argument='<parameter name="',
    argument_end="</parameter>",
    around=("<minimax:tool_call>", "</minimax:tool_call>"),
    also=(
        ("<dots_function_call>", "</dots_function_call>"),
        ("<function_calls>", "</function_calls>"),
    ),
    between="\n",
)

KIMI_K3 = InvokeTags(
    call='<|open|>call tool="',
    call_end="<|close|>call<|sep|>",
    argument='<|open|>argument key="',
    argument_end="<|close|>argument<|sep|>",
    around=("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
    head_end="<|sep|>",
    text='type="string"',
    other='type="{kind}"',
    drops=("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
    thoughts={"<|open|>think<|sep|>": "<|close|>think<|sep|>"},
)

MINICPM = InvokeTags(  # MiniCPM 5
    call='<function name="',
    call_end="</function>",
    argument='<param name="',
    argument_end="</param>",
    between="\n",
    cdata=True,
    leaks=True,
)

STEP = InvokeTags(  # Step 3
    call='<steptml:invoke name="',
    call_end="</steptml:invoke>",
    argument='<steptml:parameter name="',
    argument_end="</steptml:parameter>",
    around=("<｜tool_call_begin｜>function<｜tool_sep｜>", "<｜tool_call_end｜>"),
    between="\n",
    drops=("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
)

MUSE = InvokeTags(  # Muse Glimmer
    call='<atem:invoke name="',
    call_end="</atem:invoke>",
    argument='<atem:parameter name="',
    argument_end="</atem:parameter>",
    around=("<atem:function_calls>", "</atem:function_calls>"),
    between="\n",
    header=("<|start|>assistant", "<|message|>"),
    drops=("<|eot|>",),
    thoughts={"to=self<|message|>": "<|eom|>"},
)

GROK = InvokeTags(  # Grok, if it writes them as text
    call='<xai:function_call name="',
    call_end="</xai:function_call>",
    argument='<parameter name="',
    argument_end="</parameter>",
    between="\n",
)

INVOKE_DIALECTS = (
    Invoke("deepseek_dsml", DEEPSEEK_DSML),
    Invoke("minimax", MINIMAX),
    Invoke("kimi_k3", KIMI_K3),
    Invoke("minicpm", MINICPM),
    Invoke("step", STEP),
    Invoke("muse", MUSE),
    Invoke("grok", GROK),
)


_M3_TOKEN = "]<]minimax[>["
_M3_OPEN, _M3_CLOSE = f"{_M3_TOKEN}<tool_call>", f"{_M3_TOKEN}</tool_call>"
_M3_CALL, _M3_CALL_END = f'{_M3_TOKEN}<invoke name="', f"{_M3_TOKEN}</invoke>"
_M3_THOUGHT, _M3_THOUGHT_END = "<mm:think>", "</mm:think>"

_DEEPEST = 200


class BrokenTags(ValueError):
    """A tag is not as required. The text tells the model why."""


class MinimaxM3(Dialect):
    name = "minimax_m3"
    how = (
        "To call a tool, write its name and each argument between tags, as below, with the token in front of "
        "every tag; for several calls, several of these. Write strings as they are; all other values as JSON."
    )
    opens = (_M3_OPEN, _M3_CALL, _M3_THOUGHT)
    drops = (_M3_CLOSE, _M3_CALL_END, _M3_THOUGHT_END)
    thoughts = MappingProxyType({_M3_THOUGHT: _M3_THOUGHT_END})

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener == _M3_OPEN:
            yield from cursor.space()
            if not (yield from cursor.accept(_M3_CALL)):
                if (yield from cursor.accept(_M3_CLOSE)):
                    return []
                return (yield from self.stray(cursor, _M3_OPEN, _M3_CLOSE))
        name, mark = yield from cursor.until('">', "\n", _M3_TOKEN)
        if mark != '">':
            return (yield from self.stray(cursor, _M3_CALL, _M3_CALL_END))
        cursor.at += len(mark)
        found: FoundCall
        try:
            tool = tool_named(name, tools)
            arguments = yield from self._children(
                cursor, "invoke", tool.parameters if tool else None, tool, 0
            )
            found = TextCall(name.strip(), arguments) if name.strip() else self.bad("it has no name")
        except BrokenTags as fault:
            yield from cursor.until(_M3_CALL_END, _M3_CALL, _M3_OPEN)
            yield from cursor.accept(_M3_CALL_END)
            found = self.bad(str(fault), name)
        space = yield from cursor.space()
        if not (yield from cursor.accept(_M3_CLOSE)):
            cursor.back(len(space))
        return [found]

    def _children(
        self, cursor: Cursor, tag: str, schema: JsonValue, tool: ToolSpec | None, depth: int
    ) -> Steps[dict[str, JsonValue]]:
        """Read the tags inside a tag, up to its closing tag. A repeated tag makes a list."""
        members: dict[str, JsonValue] = {}
        again: set[str] = set()
        yield from cursor.space()
        while not (yield from cursor.accept(f"{_M3_TOKEN}</{tag}>")):
            if not (yield from cursor.accept(f"{_M3_TOKEN}<")):
                raise BrokenTags(f"it is not closed with {_M3_TOKEN}</{tag}>")
            key, mark = yield from cursor.until(">", "\n", _M3_TOKEN)
            if mark != ">" or not key or key[0] == "/":
                raise BrokenTags(f"the tag <{key[:40]} does not belong there")
            cursor.at += 1
            if key in members and depth == 0:
                raise BrokenTags(f"its argument {key} occurs twice")
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
        text, mark = yield from cursor.until(_M3_TOKEN)
        if not mark:
            raise BrokenTags(f"its argument {key} is not closed with {_M3_TOKEN}</{key}>")
        if (yield from cursor.accept(f"{_M3_TOKEN}</{key}>")):
            return value_in(text, schema, tool)
        if text.strip() or depth == _DEEPEST:
            raise BrokenTags(f"its argument {key} is not closed, or nested too deep")
        children = yield from self._children(cursor, key, schema, tool, depth + 1)
        if list(children) == ["item"] and allows_list(schema, tool):
            items = children["item"]
            return items if isinstance(items, list) else [items]
        return children

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join([_M3_OPEN, *map(_m3_written, calls), _M3_CLOSE])


def _m3_written(call: TextCall) -> str:
    arguments = "".join(
        f"{_M3_TOKEN}<{key}>{value if isinstance(value, str) else compact(value)}{_M3_TOKEN}</{key}>"
        for key, value in call.arguments.items()
    )
    return f'{_M3_CALL}{call.name}">{arguments}{_M3_CALL_END}'
