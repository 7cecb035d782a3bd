"""Calls, prose and replies at random, for the properties that every dialect has."""

from __future__ import annotations

from collections.abc import Sequence
from keyword import iskeyword

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import JsonValue

from dragoman.dialects.dialect import Dialect, Parsed, TextCall, dialect
from dragoman.dialects.scanner import Scanner, Tools
from dragoman.dialects.visible import Piece, joined
from dragoman.messages.message import Arguments
from dragoman.messages.request import ToolSpec

NASTY = [
    '"',
    "'",
    "\\",
    "\n",
    "{",
    "}",
    "[",
    "]",
    "(",
    "```",
    "`",
    "<tool_call>",
    "</tool_call>",
    "</tool_code>",
    "</function>",
    "<think>",
    "</think>",
    "<|call|>",
    "[TOOL_CALLS]",
    "<｜tool▁call▁end｜>",
    "<|tool_call_end|>",
    '{"tool_calls": [{"name": "x"}]}',
    "\u2028",
    "é😀",
    "null",
]
PROSE = [
    "Let me see.",
    "{x}",
    "a < b > c",
    "[1]",
    "it's",
    '"so"',
    "f(x)",
    "{}",
    "x = {'a': 1};",
    '{"a": {"b": [1]}}',
    "<b>bold</b>",
    "| ｜ ▁",
    "Größe 你好 😀",
    "\\n",
    "# Title",
    "\n",
    "\n\n",
    "\t",
    "[link](http://x.y)",
    "[x for x in y]",
]

identifiers = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: not iskeyword(name))
texts = st.lists(st.sampled_from(NASTY) | st.text(max_size=5), max_size=6).map("".join)
numbers = st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
scalars: SearchStrategy[JsonValue] = st.none() | st.booleans() | numbers | texts
values: SearchStrategy[JsonValue] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
arguments: SearchStrategy[Arguments] = st.dictionaries(identifiers, values, max_size=3)
calls = st.lists(  # no name twice: each call brings its own schema
    st.builds(TextCall, identifiers, arguments), min_size=1, max_size=3, unique_by=lambda call: call.name
)
prose = st.lists(st.sampled_from(PROSE) | st.just(" "), max_size=8).map(
    lambda words: "".join(words).strip(" \t\r\n")
)


def is_whole_reply(name: str) -> bool:
    """Whether its calls have no marker, and so count only as a whole reply."""
    language = dialect(name)
    return not language.bare and not any(
        language.call("f", {}).startswith(mark) for mark in (*language.opens, *language.drops)
    )


def tools_of(calls: list[TextCall]) -> list[ToolSpec]:
    """The tools that these calls fit."""
    return [ToolSpec(call.name, "", {"properties": _properties(call.arguments)}) for call in calls]


def replies(name: str) -> SearchStrategy[str]:
    """Replies in a dialect: its markers, calls and pieces of calls, code and prose, in any order."""
    language = dialect(name)
    call = language.call("read_file", {"path": 'a {b} "c"\n```\n', "lines": 3})
    words = [
        *language.opens,
        *language.drops,
        *PROSE,
        *NASTY,
        "```json\n",
        "\n```\n",
        " ",
        call,
        call[: len(call) // 2],
    ]
    words += [
        call[len(call) // 2 :],
        language.call("get_time", {}),
        '{"name": "get_time", "arguments": {',
        "</parameter>",
        "<arg_key>",
    ]
    return st.lists(st.sampled_from(words), max_size=10).map("".join)


_TYPES: dict[type, JsonValue] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _properties(arguments: Arguments) -> dict[str, JsonValue]:
    return {key: {"type": _TYPES[type(value)]} for key, value in arguments.items()}


def in_pieces(name: str, pieces: Sequence[str], tools: Tools | None) -> Parsed:
    """Return the result of reading a reply in these chunks."""
    scanner = Scanner(dialect(name), tools)
    seen = [one for piece in pieces for one in scanner.feed(piece)] + scanner.end()
    text, reasoning = joined(seen)
    return Parsed(text, tuple(scanner.found), reasoning)


class ShownText:
    """The text that a user sees while a reply streams."""

    def __init__(self, dialect: Dialect, tools: Tools | None = None) -> None:
        self._scanner = Scanner(dialect, tools)
        self._pieces: list[Piece] = []

    @property
    def text(self) -> str:
        """Return the visible text, without text that turned out to be reasoning."""
        return joined(self._pieces)[0]

    def feed(self, piece: str) -> str:
        return self._shown(self._scanner.feed(piece))

    def end(self) -> str:
        return self._shown(self._scanner.end())

    def _shown(self, pieces: Sequence[Piece]) -> str:
        self._pieces += pieces
        return "".join(text for voice, text in pieces if voice == "text")
