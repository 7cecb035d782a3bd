"""`<tool_call>NAME<arg_key>k</arg_key><arg_value>v</arg_value>…</tool_call>`: GLM 4.5 and later, and others.

Values stand as they are, with nothing escaped: a closing tag inside one is distinguished from its end by what
follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.tool_call_tag import PLAIN, GlmTags, read_tool_call
from dragoman.dialects.wording import compact, enclosed

_BOXES = ("<|begin_of_box|>", "<|end_of_box|>")  # around what it thinks is the answer
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
