"""`<tool_call>NAME<arg_key>k</arg_key><arg_value>v</arg_value>…</tool_call>`: GLM 4.5 and later, and others.

Values stand as they are, with nothing escaped: a closing tag inside one is distinguished from its end by what
follows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman.dialects.cursor import Cursor, Steps
from dragoman.dialects.grammar import Dialect, tool_named
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.values import read_value, value_of
from dragoman.dialects.wording import compact, enclosed
from dragoman.messages.parts import Arguments

_NAME = re.compile(r"[\w.:/-]+")
_NO_THOUGHTS: Mapping[str, str] = {}


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
        self.drops = (*closes, *(closing for _, closing in around), *thoughts.values())
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
        found = yield from self._call(cursor, self._tags[opener], tools)
        if found is not None and self._around:
            space = yield from cursor.space()
            if not (yield from cursor.accept(*self._around.values())):
                cursor.back(len(space))
        return found

    def _call(self, cursor: Cursor, tags: GlmTags, tools: Tools | None) -> Reading:
        if (yield from cursor.sees("{")):
            return (yield from self.tagged(cursor, tags.open, tags.closes[0]))
        name, _ = yield from cursor.until(tags.key[0], tags.separator, *tags.closes, tags.open, "\n")
        separated = yield from cursor.accept(tags.separator)
        yield from cursor.space()
        if not _NAME.fullmatch(name.strip()) or not (yield from cursor.sees(tags.key[0], *tags.closes, "{")):
            return (yield from self.stray(cursor, tags.open, tags.closes[0]))
        if separated and (yield from cursor.sees("{")):
            return (yield from self.named(cursor, name, "", tags.closes, (tags.open,)))
        return [(yield from self._arguments(cursor, tags, name, tools))]

    def _arguments(self, cursor: Cursor, tags: GlmTags, name: str, tools: Tools | None) -> Steps[FoundCall]:
        texts: dict[str, str] = {}
        while (yield from cursor.accept(tags.key[0])):
            key, _ = yield from cursor.until(tags.key[1], *tags.closes, tags.open)
            yield from cursor.accept(tags.key[1])
            yield from cursor.space()
            if (yield from cursor.accept(tags.kind[0])):
                yield from cursor.until(tags.kind[1], *tags.closes, tags.open)
                yield from cursor.accept(tags.kind[1])
                yield from cursor.space()
            begun = yield from cursor.accept(tags.value[0])
            ends = (tags.key[0], tags.value[1], tags.closes)
            value = (yield from read_value(cursor, *ends)) if begun else None
            if value is None or key.strip() in texts:
                yield from cursor.until(*tags.closes, tags.open)
                yield from cursor.accept(*tags.closes)
                why = "is there twice" if key.strip() in texts else f"has no {tags.value[0]} that is closed"
                return self.bad(f"its argument {key.strip()} {why}", name)
            texts[key.strip()] = value
            yield from cursor.space()
        if not (yield from cursor.accept(*tags.closes)):
            yield from cursor.until(*tags.closes, tags.open)
            yield from cursor.accept(*tags.closes)
            return self.bad(f"it is not closed with {tags.closes[0]}", name)
        tool = tool_named(name, tools)
        arguments: Arguments = {key: value_of(text, key, tool) for key, text in texts.items()}
        return TextCall(name.strip(), arguments)

    def calls(self, calls: Sequence[TextCall]) -> str:
        tags = next(iter(self._tags.values()))
        before, behind = next(iter(self._around.items()), ("", ""))
        parts = [before, *(_written(call, tags) for call in calls), behind]
        return "\n".join(part for part in parts if part)

    def result(self, id: str, tool: str, text: str) -> str:
        return enclosed("tool_response", text)


def _written(call: TextCall, tags: GlmTags) -> str:
    arguments = "".join(
        f"\n{key.join(tags.key)}\n{(value if isinstance(value, str) else compact(value)).join(tags.value)}"
        for key, value in call.arguments.items()
    )
    return f"{tags.open}{call.name}{arguments}\n{tags.closes[0]}"


_PLAIN = GlmTags(
    "<tool_call>", ("</tool_call>",), ("<arg_key>", "</arg_key>"), ("<arg_value>", "</arg_value>")
)
_HUNYUAN = GlmTags(_PLAIN.open, ("</tool_call>", "<end_of_tool_call>"), key=_PLAIN.key, value=_PLAIN.value)
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
    Glm("glm", _PLAIN),
    Glm(
        "hunyuan",
        _HUNYUAN,
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
