"""Read `<|tool_call>call:NAME{key:<|"|>text<|"|>,other:1}<tool_call|>`: Gemma 4; FunctionGemma has other
tokens.

Strings are between two tokens, without escapes; keys need none. Lists and objects are as in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from dragoman.dialects.cursor import Cursor, Steps
from dragoman.dialects.grammar import Dialect, compact, tool_named
from dragoman.dialects.literals import literal_in
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.values import value_of
from dragoman.messages.message import Arguments
from dragoman.messages.request import ToolSpec

_CALL = "call:"
_PLAIN_KEY = re.compile(r"\w+")
_DEEPEST = 50


@dataclass(slots=True, frozen=True)
class GemmaTokens:
    """The tokens of one model: around a call, around a string, and those without meaning here."""

    open: str
    close: str
    quote: str
    drops: tuple[str, ...] = ()
    thoughts: Mapping[str, str] = field(default_factory=dict)


class NotAValue(ValueError):
    """An argument is unreadable. The text tells the model why."""


class Gemma(Dialect):
    def __init__(self, name: str, tokens: GemmaTokens) -> None:
        self.name = name
        self.how = (
            f"To call a tool, write `{_CALL}`, its name and its arguments between markers, as below; for "
            f"several calls, several of these. Strings stand between two {tokens.quote}, as they are."
        )
        self.opens = (tokens.open, *tokens.thoughts)
        self.drops = (tokens.close, *tokens.drops, *tokens.thoughts.values())
        self.thoughts = tokens.thoughts
        self._tokens = tokens

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        tokens = self._tokens
        yield from cursor.space()
        if tokens.drops:
            yield from cursor.accept(*tokens.drops)
        if not (yield from cursor.accept(_CALL)):
            return (yield from self.stray(cursor, tokens.open, tokens.close))
        name, mark = yield from cursor.until("{", tokens.close, tokens.open, "\n")
        if mark != "{" or not name.strip():
            yield from cursor.until(tokens.close, tokens.open)
            yield from cursor.accept(tokens.close)
            return [self.bad("no name and no arguments stand in it", name)]
        cursor.at += 1
        try:
            arguments = yield from self._members(cursor, tool_named(name, tools), 0)
        except NotAValue as fault:
            yield from cursor.until(tokens.close, tokens.open)
            yield from cursor.accept(tokens.close)
            return [self.bad(str(fault), name)]
        space = yield from cursor.space()
        if not (yield from self.closed(cursor, space, (tokens.close,), (tokens.open,))):
            return [self.bad("something else stands behind its arguments", name)]
        return [TextCall(name.strip(), arguments)]

    def _members(self, cursor: Cursor, tool: ToolSpec | None, depth: int) -> Steps[Arguments]:
        """Read the keys and values after an opening brace, up to the closing one."""
        quote = self._tokens.quote
        members: Arguments = {}
        yield from cursor.space()
        while not (yield from cursor.accept("}")):
            if (yield from cursor.accept(quote)):
                key = yield from self._string(cursor)
            else:
                text, _ = yield from cursor.until(":", ",", "{", "}", "\n")
                key = text.strip().strip('"')
            yield from cursor.space()
            if not (yield from cursor.accept(":")):
                raise NotAValue(f"no value follows {key[:40]!r}")
            if key in members:
                raise NotAValue(f"its argument {key} occurs twice")
            members[key] = yield from self._value(cursor, key, tool, depth)
            yield from self._comma(cursor, "}")
        return members

    def _items(self, cursor: Cursor, depth: int) -> Steps[list[JsonValue]]:
        items: list[JsonValue] = []
        yield from cursor.space()
        while not (yield from cursor.accept("]")):
            quoted = yield from cursor.accept("'")
            items.append(
                (yield from self._quoted(cursor) if quoted else self._value(cursor, "", None, depth))
            )
            yield from self._comma(cursor, "]")
        return items

    def _value(self, cursor: Cursor, key: str, tool: ToolSpec | None, depth: int) -> Steps[JsonValue]:
        yield from cursor.space()
        if (yield from cursor.accept(self._tokens.quote)):
            return value_of((yield from self._string(cursor)), key, tool, is_text=True)
        if depth == _DEEPEST:
            raise NotAValue("its arguments are nested too deep")
        if (yield from cursor.accept("{")):
            return (yield from self._members(cursor, None, depth + 1))
        if (yield from cursor.accept("[")):
            return (yield from self._items(cursor, depth + 1))
        text, _ = yield from cursor.until(",", "}", "]", "\n", self._tokens.close, self._tokens.open)
        if not text.strip() or '"' in text:
            raise NotAValue(f"a string must be between two {self._tokens.quote}")
        return value_of(text.strip(), key, tool)

    def _quoted(self, cursor: Cursor) -> Steps[JsonValue]:
        """Read a string of a Python list after its quote, which replaces the token."""
        text = "'"
        while text == "'" or (len(text) - len(text[:-1].rstrip("\\"))) % 2 == 0:
            piece, mark = yield from cursor.until("'", self._tokens.close, self._tokens.open)
            if mark != "'":
                raise NotAValue(f"a string must be between two {self._tokens.quote}")
            cursor.at += 1
            text += f"{piece}'"
        try:
            return literal_in(text)
        except ValueError:
            raise NotAValue(f"a string must be between two {self._tokens.quote}") from None

    def _string(self, cursor: Cursor) -> Steps[str]:
        quote = self._tokens.quote
        text, mark = yield from cursor.until(quote)
        if not mark:
            raise NotAValue("the reply ends before it does")
        cursor.at += len(quote)
        return text

    def _comma(self, cursor: Cursor, closer: str) -> Steps[None]:
        yield from cursor.space()
        if not (yield from cursor.accept(",")) and not (yield from cursor.sees(closer)):
            over = cursor.over and cursor.at == len(cursor.text)
            raise NotAValue("the reply ends before it does" if over else "a comma or a bracket is missing")
        yield from cursor.space()

    def calls(self, calls: Sequence[TextCall]) -> str:
        tokens = self._tokens
        return "".join(
            f"{tokens.open}{_CALL}{call.name}{self._written(call.arguments)}{tokens.close}" for call in calls
        )

    def _written(self, value: JsonValue) -> str:
        quote = self._tokens.quote
        match value:
            case str():
                return f"{quote}{value}{quote}"
            case list():
                return f"[{','.join(map(self._written, value))}]"
            case dict():
                keys = (key if _PLAIN_KEY.fullmatch(key) else f"{quote}{key}{quote}" for key in value)
                members = (
                    f"{key}:{self._written(one)}" for key, one in zip(keys, value.values(), strict=True)
                )
                return f"{{{','.join(members)}}}"
            case _:
                return compact(value)


GEMMA_DIALECTS = (
    Gemma(
        "gemma",
        GemmaTokens(
            "<|tool_call>",
            "<tool_call|>",
            '<|"|>',
            drops=("<bos>", "<eos>", "<turn|>", "<|tool_response>"),
            thoughts={"<|channel>thought\n": "<channel|>"},
        ),
    ),
    Gemma(
        "functiongemma",
        GemmaTokens(
            "<start_function_call>",
            "<end_function_call>",
            "<escape>",
            drops=("<start_function_response>", "<end_of_turn>"),
        ),
    ),
)
