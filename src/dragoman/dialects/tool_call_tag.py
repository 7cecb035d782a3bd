"""Reads whatever models write between `<tool_call>` and `</tool_call>`, or tags that are used like these.

JSON as Hermes has it, `<function=NAME>` as Qwen3-Coder has it (`function_tag.py`), or the name and each
argument between tags, as GLM has them: `NAME<arg_key>k</arg_key><arg_value>v</arg_value>`. A model that was
trained on one of them now and then writes another. A call without arguments in the middle of a sentence is an
example.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragoman.dialects.cursor import Cursor, Steps
from dragoman.dialects.elements import read_inside
from dragoman.dialects.function_tag import FUNCTION, read_function
from dragoman.dialects.grammar import Dialect, ends_line, tool_named
from dragoman.dialects.python_calls import CALL, read_python_calls
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.values import may_have, read_value, value_of
from dragoman.messages.parts import Arguments

_NAME = re.compile(r"[\w.:/-]*[\w-]")
_KIND = "function"


@dataclass(slots=True, frozen=True)
class GlmTags:
    """The tags of one model: in front of and behind each of a call, a key and a value.

    `closes` are all tags that may close a call, the one that is written first; `separator` may stand behind
    the name; `kind` is a tag with the type of a value, which may stand in front of it.
    """

    open: str
    closes: tuple[str, ...]
    key: tuple[str, str]
    value: tuple[str, str]
    separator: str = "<tool_sep>"
    kind: tuple[str, str] = ("<arg_type>", "</arg_type>")


PLAIN = GlmTags(
    "<tool_call>",
    ("</tool_call>", "<end_of_tool_call>"),
    ("<arg_key>", "</arg_key>"),
    ("<arg_value>", "</arg_value>"),
)

LONGCAT = GlmTags(
    "<longcat_tool_call>",
    ("</longcat_tool_call>",),
    ("<longcat_arg_key>", "</longcat_arg_key>"),
    ("<longcat_arg_value>", "</longcat_arg_value>"),
)


def read_tool_call(
    dialect: Dialect, cursor: Cursor, tags: GlmTags, tools: Tools | None, *, lone_name: bool = True
) -> Reading:
    """The opening tag was read. `lone_name` says that a name alone is a call, also of a tool nobody knows."""
    alone, start = cursor.fresh or "|" in tags.open, cursor.taken  # no text is about tokens
    yield from cursor.space()
    if (yield from cursor.sees("{", "[", "```")):
        return (yield from dialect.tagged(cursor, tags.open, tags.closes[0]))
    if (inside := (yield from read_inside(dialect, cursor, tags.open, tools))) is not None:
        return inside
    if (yield from cursor.sees(CALL)):
        calls = yield from read_python_calls(dialect, cursor, tools)
        yield from cursor.space()
        if calls and ((yield from cursor.accept(*tags.closes)) or cursor.at == len(cursor.text)):
            return calls
        cursor.back(cursor.taken - start)
        yield from cursor.space()
    name, mark = yield from cursor.until(
        tags.key[0], tags.separator, FUNCTION, *tags.closes, tags.open, "\n", "{"
    )
    if mark == FUNCTION:  # behind nothing, or behind some words
        cursor.at += len(FUNCTION)
        return (yield from read_function(dialect, cursor, tools, wrapped=not name.strip()))
    if not mark and _NAME.fullmatch(name.strip()):
        return [dialect.bad("the reply ends before it does", name)]
    separated = yield from cursor.accept(tags.separator)
    if separated and name.strip() == _KIND:  # Hunyuan: the kind of tool stands where the name does elsewhere
        name, mark = yield from cursor.until("\n", "{", *tags.closes, tags.open)
    yield from cursor.space()
    begins = yield from cursor.sees(tags.key[0], *tags.closes, "{", "```")
    counts = lone_name or begins == tags.key[0] or tool_named(name, tools) is not None
    if not _NAME.fullmatch(name.strip()) or not begins or not counts:
        return (yield from dialect.stray(cursor, tags.open, tags.closes[0], start))
    if begins in ("{", "```") and (separated or tool_named(name, tools)):
        return (yield from dialect.named(cursor, name, "", tags.closes, (tags.open,)))
    if begins in ("{", "```"):
        return (yield from dialect.stray(cursor, tags.open, tags.closes[0], start))
    found = yield from _arguments(dialect, cursor, tags, name, tools)
    is_example = isinstance(found, TextCall) and not found.arguments and not alone
    return None if is_example and not (yield from ends_line(cursor)) else [found]


def _arguments(
    dialect: Dialect, cursor: Cursor, tags: GlmTags, name: str, tools: Tools | None
) -> Steps[FoundCall]:
    texts: dict[str, str] = {}
    tool = tool_named(name, tools)
    while (yield from cursor.accept(tags.key[0])):
        key, _ = yield from cursor.until(tags.key[1], *tags.closes, tags.open)
        yield from cursor.accept(tags.key[1])
        yield from cursor.space()
        if (yield from cursor.accept(tags.kind[0])):
            yield from cursor.until(tags.kind[1], *tags.closes, tags.open)
            yield from cursor.accept(tags.kind[1])
            yield from cursor.space()
        value: str | None = None
        if (yield from cursor.accept(tags.value[0])):
            value = yield from read_value(
                cursor,
                tags.key[0],
                tags.value[1],
                tags.closes,
                lambda new: new not in texts and may_have(new, tool, tools),
            )
        if value is None or key.strip() in texts:
            yield from cursor.until(*tags.closes, tags.open)
            yield from cursor.accept(*tags.closes)
            why = "is there twice" if key.strip() in texts else f"has no {tags.value[0]} that is closed"
            return dialect.bad(f"its argument {key.strip()} {why}", name)
        texts[key.strip()] = value
        yield from cursor.space()
    if not (yield from cursor.accept(*tags.closes)):
        yield from cursor.until(*tags.closes, tags.open)
        yield from cursor.accept(*tags.closes)
        return dialect.bad(f"it is not closed with {tags.closes[0]}", name)
    arguments: Arguments = {key: value_of(text, key, tool) for key, text in texts.items()}
    return TextCall(name.strip(), arguments)
