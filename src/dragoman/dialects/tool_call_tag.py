"""Read calls between `<tool_call>` and `</tool_call>`, or tags used like these: Hermes, Qwen, GLM.

Between the tags are JSON (Hermes), `<function=NAME>` (Qwen3-Coder), or the name and each argument between
tags (GLM). A model that was trained on one of them occasionally writes another, so one function reads all
three. Values are raw, without escapes: the text after a closing tag shows whether it ends the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dragoman.dialects.cursor import Cursor, Steps
from dragoman.dialects.grammar import Dialect, compact, described, enclosed, tool_named
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.values import may_have, read_value, value_of, within_lines
from dragoman.messages.message import Arguments

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"

_BEHIND_NAME = " \t=,:("  # or nothing at all: what Llama occasionally writes instead of `>`
_ENDS = (FUNCTION_END, *(f"{one}{FUNCTION_END}" for one in (">", ")", ")>")))


def read_function(dialect: Dialect, cursor: Cursor, tools: Tools | None, *, tags: bool = True) -> Reading:
    """Read a function after `<function=`. `tags`: its arguments can be between tags, not only JSON."""
    start = cursor.taken
    name, mark = yield from cursor.until(">", "<", "\n", "{")
    name = (name.rstrip(_BEHIND_NAME) if mark == "{" else name).strip("\"'")
    if mark not in (">", "{") or (mark == "{" and tool_named(name, tools) is None):
        return (yield from dialect.stray(cursor, FUNCTION, FUNCTION_END, start))
    cursor.at += mark == ">"
    yield from cursor.space()
    tool = tool_named(name, tools)
    if (yield from cursor.sees("{")):
        return (yield from dialect.named(cursor, name, "", _ENDS, (FUNCTION, OPEN)))
    if not (yield from cursor.sees(*((PARAMETER,) if tags else ()), FUNCTION_END)):
        return (yield from dialect.stray(cursor, FUNCTION, FUNCTION_END, start))
    texts: dict[str, str] = {}
    while (yield from cursor.accept(PARAMETER)):
        key, _ = yield from cursor.until(">", "\n")
        key = key.strip("\"'")
        yield from cursor.accept(">")
        value = yield from read_value(
            cursor,
            PARAMETER,
            PARAMETER_END,
            (FUNCTION_END, CLOSE),
            lambda new: new not in texts and may_have(new, tool, tools),
        )
        if value is None or key in texts:
            yield from cursor.until(FUNCTION_END, CLOSE, OPEN)
            yield from cursor.accept(FUNCTION_END)
            why = "occurs twice" if key in texts else f"is not closed with {PARAMETER_END}"
            return [dialect.bad(f"its parameter {key} {why}", name)]
        texts[key] = within_lines(value)
        yield from cursor.space()
    if not (yield from cursor.accept(FUNCTION_END)) and not (yield from cursor.sees(CLOSE)):
        yield from cursor.until(FUNCTION_END, CLOSE, OPEN)
        yield from cursor.accept(FUNCTION_END)
        return [dialect.bad(f"it is not closed with {FUNCTION_END}", name)]
    space = yield from cursor.space()
    if not (yield from cursor.accept(CLOSE)):
        cursor.back(len(space))
    arguments: Arguments = {key: value_of(text, key, tool) for key, text in texts.items()}
    return [TextCall(name.strip(), arguments) if name.strip() else dialect.bad("it has no name")]


_NAME = re.compile(r"[\w.:/-]*[\w-]")
_KIND = "function"


@dataclass(slots=True, frozen=True)
class GlmTags:
    """The tags of one model, before and after a call, a key and a value.

    `closes` are all tags that can close a call, with the one to write first. `separator` may follow the name.
    `kind` is a tag with the type of a value, which may precede it.
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
    """Read a call after its opening tag. `lone_name`: a name alone is a call, even of an unknown tool."""
    start = cursor.taken
    yield from cursor.space()
    if (yield from cursor.sees("{", "[", "```")):
        return (yield from dialect.tagged(cursor, tags.open, tags.closes[0]))
    name, mark = yield from cursor.until(
        tags.key[0], tags.separator, FUNCTION, *tags.closes, tags.open, "\n", "{"
    )
    if mark == FUNCTION:  # after nothing, or after some words
        cursor.at += len(FUNCTION)
        return (yield from read_function(dialect, cursor, tools))
    if not mark and _NAME.fullmatch(name.strip()):
        return [dialect.bad("the reply ends before it does", name)]
    separated = yield from cursor.accept(tags.separator)
    if separated and name.strip() == _KIND:  # Hunyuan: the kind of tool is in the place of the name
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
    return [(yield from _arguments(dialect, cursor, tags, name, tools))]


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
            why = "occurs twice" if key.strip() in texts else f"has no {tags.value[0]} that is closed"
            return dialect.bad(f"its argument {key.strip()} {why}", name)
        texts[key.strip()] = value
        yield from cursor.space()
    if not (yield from cursor.accept(*tags.closes)):
        yield from cursor.until(*tags.closes, tags.open)
        yield from cursor.accept(*tags.closes)
        return dialect.bad(f"it is not closed with {tags.closes[0]}", name)
    arguments: Arguments = {key: value_of(text, key, tool) for key, text in texts.items()}
    return TextCall(name.strip(), arguments)


class Hermes(Dialect):
    name = "hermes"
    how = (
        f"To call a tool, write a JSON object with its name and its arguments between {OPEN} and {CLOSE}; "
        "for several calls, several of these."
    )
    opens = (OPEN,)
    drops = (CLOSE,)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        return (yield from read_tool_call(self, cursor, PLAIN, tools, lone_name=False))

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(f"{OPEN}\n{described(call, id=False)}\n{CLOSE}" for call in calls)

    def result(self, id: str, tool: str, text: str) -> str:
        return enclosed("tool_response", compact({"name": tool, "content": text}))


SEED = ("<seed:tool_call>", "</seed:tool_call>")  # Seed-OSS has these around a call
SEED_THOUGHT = ("<seed:think>", "</seed:think>")


class QwenCoder(Dialect):
    name = "qwen_coder"
    how = (
        "To call a tool, write its name and each argument between tags, as below; for several calls, "
        "several of these. Write values as they are, without quotes; lists and objects as JSON."
    )
    opens = (OPEN, FUNCTION, SEED_THOUGHT[0])
    drops = (CLOSE, FUNCTION_END, *SEED, SEED_THOUGHT[1])
    thoughts = MappingProxyType(dict([SEED_THOUGHT]))

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener == OPEN:
            return (yield from read_tool_call(self, cursor, PLAIN, tools, lone_name=False))
        return (yield from read_function(self, cursor, tools))

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(_qwen_written(call) for call in calls)

    def result(self, id: str, tool: str, text: str) -> str:
        return enclosed("tool_response", text)


def _qwen_written(call: TextCall) -> str:
    parameters = "".join(
        f"{PARAMETER}{key}>\n{value if isinstance(value, str) else compact(value)}\n{PARAMETER_END}\n"
        for key, value in call.arguments.items()
    )
    return f"{OPEN}\n{FUNCTION}{call.name}>\n{parameters}{FUNCTION_END}\n{CLOSE}"


_BOXES = ("<|begin_of_box|>", "<|end_of_box|>")  # around what it considers the answer
_NO_THOUGHTS: Mapping[str, str] = {}


class Glm(Dialect):
    how = (
        "To call a tool, write its name and each argument between tags, as below; for several calls, "
        "several of these. Write values as they are, without quotes; lists and objects as JSON."
    )

    def __init__(
        self,
        name: str,
        *spellings: GlmTags,
        around: tuple[tuple[str, str], ...] = (),
        thoughts: Mapping[str, str] = _NO_THOUGHTS,
    ) -> None:
        closes = (close for tags in spellings for close in tags.closes)
        self.name = name
        self.thoughts = thoughts
        self.opens = (*(tags.open for tags in spellings), *(opening for opening, _ in around), *thoughts)
        self.drops = (*closes, *(closing for _, closing in around), *thoughts.values(), *_BOXES)
        self._tags = {tags.open: tags for tags in spellings}
        self._around = dict(around)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        yield from cursor.space()
        if opener in self._around:
            inner = yield from cursor.accept(*self._tags)
            if not inner and (yield from cursor.accept(self._around[opener])):
                return []
            if not inner:
                return (yield from self.stray(cursor, opener, self._around[opener]))
            yield from cursor.space()
            opener = inner
        found = yield from read_tool_call(self, cursor, self._tags[opener], tools)
        if found is not None and self._around:
            space = yield from cursor.space()
            if not (yield from cursor.accept(*self._around.values())):
                cursor.back(len(space))
        return found

    def calls(self, calls: Sequence[TextCall]) -> str:
        tags = next(iter(self._tags.values()))
        before, behind = next(iter(self._around.items()), ("", ""))
        parts = [before, *(_glm_written(call, tags) for call in calls), behind]
        return "\n".join(part for part in parts if part)

    def result(self, id: str, tool: str, text: str) -> str:
        return enclosed("tool_response", text)


def _glm_written(call: TextCall, tags: GlmTags) -> str:
    arguments = "".join(
        f"\n{key.join(tags.key)}\n{(value if isinstance(value, str) else compact(value)).join(tags.value)}"
        for key, value in call.arguments.items()
    )
    return f"{tags.open}{call.name}{arguments}\n{tags.closes[0]}"


_OPEN_SOURCE = GlmTags(
    "<tool_call:opensource>",
    ("<end_of_tool_call:opensource>", "</tool_call:opensource>"),
    ("<arg_key:opensource>", "</arg_key:opensource>"),
    ("<arg_value:opensource>", "</arg_value:opensource>"),
    separator="<tool_sep:opensource>",
)
_HORIZON = GlmTags(
    "<ifm|tool_call>",
    ("</ifm|tool_call>",),
    ("<ifm|arg_key>", "</ifm|arg_key>"),
    ("<ifm|arg_value>", "</ifm|arg_value>"),
    kind=("<ifm|arg_type>", "</ifm|arg_type>"),
)

GLM_DIALECTS = (
    Glm("glm", PLAIN),
    Glm(
        "hunyuan",
        PLAIN,
        _OPEN_SOURCE,
        around=(
            ("<tool_calls>", "</tool_calls>"),
            ("<tool_calls:opensource>", "</tool_calls:opensource>"),
        ),
    ),
    Glm(
        "k2_horizon",
        _HORIZON,
        around=(("<ifm|tool_calls>", "</ifm|tool_calls>"),),
        thoughts={"<ifm|think>": "</ifm|think>", "<ifm|think_fast>": "</ifm|think_fast>"},
    ),
)
