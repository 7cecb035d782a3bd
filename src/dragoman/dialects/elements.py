"""Calls as XML with an element for each argument: `<add><a>1</a></add>`, as in the prompts of Cline and Roo.

The name may also stand in an element of its own (`<tool_name>add</tool_name>`: Claude 2, Cherry Studio) or in
an attribute (`<tool name="add">`); the arguments in an element around them, each in a `<parameter name="a">`,
as JSON, or as attributes of an empty element (`<add a="1"/>`). Any of them may stand in one such as
`<tool_calls>`.

Only what names a tool there is, and holds an argument that this tool has, is a call, in lines of its own: all
other XML and HTML is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape

from pydantic import JsonValue

from dragoman.dialects.cursor import Cursor, Form, Steps
from dragoman.dialects.grammar import ARGUMENT_KEYS, Dialect, tool_named
from dragoman.dialects.json_text import read_json
from dragoman.dialects.loose_json import plain_name
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.values import (
    allows_list,
    argument_names,
    has_argument,
    kinds_in,
    names_argument,
    only_argument,
    schema_in,
    value_in,
    value_of,
    within_lines,
)
from dragoman.messages.request import ToolSpec
from dragoman.wire.arguments import parse_arguments
from dragoman.wire.thinking import ANSWERS

_TAG: tuple[str, ...] = ("<", r"[A-Za-z_]", r"[\w.:-]{0,99}")
ELEMENTS: tuple[Form, ...] = (
    (*_TAG, r"\s?", r"/?", ">"),
    (*_TAG, r"\s{1,8}", r"[A-Za-z_]", r"[\w.:-]{0,39}", "=", "[\"']"),
)
"""How such an element begins, as far as it takes to look at its name."""

_ONE = ("tool_call", "function_call", "tool_use", "use_tool", "invoke", "tool", "function", "call", "action")
_SEVERAL = ("tool_calls", "function_calls", "tool_uses", "tools", "functions", "calls")
_NAMES = ("tool_name", "name", "function_name", "tool", "function")
_PAIRED = ("tool", "action", "function", "tool_name", "name")
_ARGUMENTS = ("parameter", "param", "argument", "arg")
_DEEPEST = 20

_WORD = re.compile(r"[\w.:-]*+")
_NAMING = ("name", "tool", "function")  # attributes
_BESIDE = (*_NAMING, "id", "type")
_ATTRIBUTE = re.compile(r"""([\w.:-]{1,40})\s?=\s?(?:"([^"]*+)"|'([^']*+)')""")
_ATTRIBUTES = re.compile(r"""(?:\s+[\w.:-]+\s?=\s?(?:"[^"]*+"|'[^']*+'))*+\s*/?""")
_CLOSING: Form = ("<", "/", r"[A-Za-z_]", r"[\w.:-]{0,99}", ">")
_CHILD = re.compile(r"\s*<([\w.-]{1,99})>(.*?)</\1>\s*", re.DOTALL)
_CDATA, _CDATA_END = "<![CDATA[", "]]>"


def read_elements(dialect: Dialect, cursor: Cursor, tools: Tools | None) -> Reading:
    """One of `ELEMENTS` stands next."""
    if not tools or not cursor.fresh:
        return None
    start = cursor.taken
    found = yield from _element(dialect, cursor, tools)
    if found is None or not (yield from _stands_alone(dialect, cursor)):
        cursor.back(cursor.taken - start)
        return None
    return found


def read_inside(dialect: Dialect, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
    """What stands in an element whose opening tag was read, and its closing tag. None, and nothing read, if
    that is something else."""
    start = cursor.taken
    yield from cursor.space()
    if tools and (yield from cursor.sees(*ELEMENTS)):
        found = yield from _inside(dialect, cursor, opener[1:-1], tools, 0)
        if found is not None:
            return found
    cursor.back(cursor.taken - start)
    return None


def _stands_alone(dialect: Dialect, cursor: Cursor) -> Steps[bool]:
    """Whether the line ends here, and no element around this, of which it would be a part. Reads nothing."""
    space = yield from cursor.space()
    closing = yield from cursor.sees(_CLOSING)
    around = closing and closing not in (*dialect.drops, *ANSWERS.values())
    ends = "\n" in space or cursor.at == len(cursor.text) or (yield from cursor.sees("<"))
    cursor.back(len(space))
    return bool(ends) and not around


def _element(
    dialect: Dialect, cursor: Cursor, tools: Tools, depth: int = 0
) -> Steps[Sequence[FoundCall] | None]:
    yield from cursor.accept("<")
    tag = yield from cursor.run(_WORD)
    head, mark = yield from cursor.until(">", "<", "\n")
    if mark != ">":
        return None
    cursor.at += 1
    empty = head.endswith("/")
    attributes = {key: unescape(one or other) for key, one, other in _ATTRIBUTE.findall(head)}
    tool, may_be_empty = tool_named(tag, tools), True
    if tool is None and attributes:
        naming = next((key for key in _NAMING if key in attributes), "")
        tool, may_be_empty = tool_named(plain_name(attributes.pop(naming, "")), tools), _local(tag) in _ONE
        beside = {key for key in _BESIDE if not (tool and empty and has_argument(key, tool))}
        attributes = {key: text for key, text in attributes.items() if key not in beside}
    elif tool is not None and not all(has_argument(key, tool) for key in attributes):
        return None  # HTML has elements with all kinds of names
    if tool is None and empty:
        return None
    if tool is None:
        found = None if attributes else (yield from _paired(dialect, cursor, tag, tools))
        return found or (yield from _inside(dialect, cursor, tag, tools, depth))
    if empty or (attributes and (yield from cursor.accept(f"</{tag}>"))):
        if not may_be_empty or not _ATTRIBUTES.fullmatch(head):
            return None
        return [TextCall(tool.name, {key: value_of(text, key, tool) for key, text in attributes.items()})]
    if attributes and tool_named(tag, tools):
        return None
    found = yield from _arguments(dialect, cursor, tag, tool, may_be_empty=may_be_empty)
    given = {key: value_of(text, key, tool) for key, text in attributes.items() if has_argument(key, tool)}
    return found and [
        replace(one, arguments={**given, **one.arguments}) if isinstance(one, TextCall) else one
        for one in found
    ]


def _paired(dialect: Dialect, cursor: Cursor, tag: str, tools: Tools) -> Steps[Sequence[FoundCall] | None]:
    """The name in one element, the arguments in the next: `<tool>add</tool><tool_input>{…}</tool_input>`."""
    start = cursor.taken
    if tag not in _PAIRED:
        return None
    name, _ = yield from cursor.until("<", "\n\n")
    tool = tool_named(plain_name(name), tools)
    if tool is not None and (yield from cursor.accept(f"</{tag}>")):
        yield from cursor.space()
        given = yield from cursor.accept(*(f"<{word}>" for word in ARGUMENT_KEYS))
        if given and (only := only_argument(tool)) and not (yield from cursor.sees("{", "<")):
            text, _ = yield from cursor.until(f"</{given[1:]}")
            if not (yield from cursor.accept(f"</{given[1:]}")):
                return [dialect.bad(f"it is not closed with </{given[1:]}", tool.name)]
            if names_argument(text, only):
                return [dialect.bad("its arguments are no JSON object", tool.name)]
            return [TextCall(tool.name, {only: value_of(text.strip(), only, tool)})]
        if given:
            found = yield from _arguments(dialect, cursor, given[1:-1], tool, may_be_empty=True)
            if found is not None:
                return found
    cursor.back(cursor.taken - start)
    return None


def _inside(
    dialect: Dialect, cursor: Cursor, tag: str, tools: Tools, depth: int
) -> Steps[Sequence[FoundCall] | None]:
    """The name in an element of its own and the arguments behind it, or calls in elements of their own."""
    yield from cursor.space()
    if named := (yield from cursor.accept(*(f"<{word}>" for word in _NAMES))):
        name, _ = yield from cursor.until("<", "\n\n")
        tool = tool_named(plain_name(name), tools)
        if tool is None or not (yield from cursor.accept(f"</{named[1:]}")):
            return None
        may_be_empty = _local(tag) in (*_ONE, *_SEVERAL)
        return (yield from _arguments(dialect, cursor, tag, tool, may_be_empty=may_be_empty))
    if _local(tag) not in (*_ONE, *_SEVERAL) or depth == 3:
        return None
    found: list[FoundCall] = []
    while (yield from cursor.sees(*ELEMENTS)):
        one = yield from _element(dialect, cursor, tools, depth + 1)
        if one is None:
            return None
        found += one
        space = yield from cursor.space()
    if found and not (yield from cursor.accept(f"</{tag}>")):
        cursor.back(len(space))
    return found or None


def _arguments(
    dialect: Dialect, cursor: Cursor, tag: str, tool: ToolSpec, *, may_be_empty: bool
) -> Steps[Sequence[FoundCall] | None]:
    """Up to what closes the call. None where nothing shows that it is one."""
    yield from cursor.space()
    around = yield from cursor.accept(
        *(f"<{word}>" for word in ARGUMENT_KEYS if not has_argument(word, tool))
    )
    ends = [f"</{around[1:]}"] if around else []
    ends.append(f"</{tag}>")
    yield from cursor.space()
    if (yield from cursor.sees("{")):
        payload = yield from read_json(cursor, lambda members: False)
        arguments = None if payload.flaw else parse_arguments(payload.text)
        if arguments is None or not all(has_argument(key, tool) for key in arguments):
            return None
    else:
        texts = yield from _texts(cursor, tag, tool, ends[0])
        if isinstance(texts, str):
            return (yield from _broken(dialect, cursor, tag, tool, texts))
        twice = [key for key, given in texts.items() if len(given) > 1 and not _is_list(key, tool)]
        if twice:
            why = f"its argument {twice[0]} is there twice"
            return (yield from _broken(dialect, cursor, tag, tool, why))
        arguments = {key: _value_of(given, key, tool) for key, given in texts.items()}
    for end in ends:
        yield from cursor.space()
        if not (yield from cursor.accept(end)):
            if not arguments:
                return None
            return (yield from _broken(dialect, cursor, tag, tool, f"it is not closed with {end}"))
    return [TextCall(tool.name, arguments)] if arguments or may_be_empty else None


def _broken(
    dialect: Dialect, cursor: Cursor, tag: str, tool: ToolSpec, why: str
) -> Steps[Sequence[FoundCall]]:
    """It is a call, and cannot be read: what closes it belongs to it all the same."""
    yield from cursor.until(f"</{tag}>")
    yield from cursor.accept(f"</{tag}>")
    return [dialect.bad(why, tool.name)]


def _texts(cursor: Cursor, tag: str, tool: ToolSpec, end: str) -> Steps[dict[str, list[str]] | str]:
    """Each argument as it is written. A text where one is broken: why."""
    space, colon, _ = tag.rpartition(":")
    own = {f"<{key}>": key for key in argument_names(tool)}
    named = [f"<{space}{colon}{word}{behind}" for word in _ARGUMENTS for behind in ("=", " ")]
    texts: dict[str, list[str]] = {}
    while mark := (yield from cursor.accept(*own, *named)):
        key, closer = own.get(mark, ""), f"</{mark[1:]}"
        if not key:
            head, behind = yield from cursor.until(">", "<", "\n")
            yield from cursor.accept(">")
            attributes = {word: one or other for word, one, other in _ATTRIBUTE.findall(head)}
            key = head.strip("\"' ") if mark[-1] == "=" else attributes.get("name") or ""
            closer = f"</{mark[1:-1]}>"
            if behind != ">" or not key:
                return f"{mark} names no argument"
        parts: list[str] = []
        while True:
            text, closed = yield from cursor.until(closer)
            parts.append(text)
            if not closed:
                return f"its argument {key} is not closed with {closer}"
            cursor.at += len(closer)
            blank = yield from cursor.space()
            if (yield from cursor.sees(*own, *named, end)) or cursor.at == len(cursor.text):
                break
            parts += (closer, blank)  # it is a part of the value
        texts.setdefault(key, []).append("".join(parts))
    return texts


def _is_list(key: str, tool: ToolSpec) -> bool:
    return allows_list(schema_in(tool.parameters, key, tool), tool)


def _value_of(given: Sequence[str], key: str, tool: ToolSpec) -> JsonValue:
    schema = schema_in(tool.parameters, key, tool)
    if len(given) == 1:
        return _value(given[0], schema, tool)
    return [_value(text, schema_in(schema, "item", tool), tool) for text in given]


def _value(text: str, schema: JsonValue, tool: ToolSpec, depth: int = 0) -> JsonValue:
    text = within_lines(text)
    if text.startswith(_CDATA) and text.endswith(_CDATA_END):
        return text[len(_CDATA) : -len(_CDATA_END)]
    kinds = kinds_in(schema, tool)
    if kinds & {"array", "object"} and "string" not in kinds and depth < _DEEPEST:
        members = _members(text)
        if members is not None and "array" in kinds:
            inner = schema_in(schema, "item", tool)
            return [_value(one, inner, tool, depth + 1) for _, one in members]
        if members is not None:
            return {key: _value(one, schema_in(schema, key, tool), tool, depth + 1) for key, one in members}
    return value_in(text, schema, tool)


def _members(text: str) -> list[tuple[str, str]] | None:
    """The elements of which a text consists; None if something else stands in it."""
    members: list[tuple[str, str]] = []
    at = 0
    while at < len(text) and (child := _CHILD.match(text, at)):
        members.append((child[1], child[2]))
        at = child.end()
    return members if members and at == len(text) else None


def _local(tag: str) -> str:
    """A tag without its namespace."""
    return tag.rpartition(":")[2]
