"""A name behind one mark and its arguments as JSON behind another: Solar Open, Qwen-Agent, MiroThinker."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.wording import compact

_NAME = re.compile(r"[\w.:/-]{1,99}")
_COLON = re.compile(r"[ \t:]*+")


@dataclass(slots=True, frozen=True)
class NameMarks:
    """How one model does it. What stands between `open` and `name` is passed over."""

    open: str
    name: str  # empty: right behind `open`
    ends_name: str
    arguments: str
    ends_arguments: str
    close: str  # the one that is written; `drops` are those that may stand there, too
    drops: tuple[str, ...] = ()
    thoughts: Mapping[str, str] = field(default_factory=dict)


class NamedJson(Dialect):
    how = "To call a tool, write its name and its arguments as a JSON object, between the marks below."

    def __init__(self, name: str, marks: NameMarks) -> None:
        self.name = name
        self.opens = (marks.open, *marks.thoughts)
        self.thoughts = marks.thoughts
        self.drops = (*dict.fromkeys(filter(None, (marks.close, *marks.drops, *marks.thoughts.values()))),)
        self._marks = marks

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        marks = self._marks
        closers = tuple(filter(None, (marks.ends_arguments, marks.close)))
        start = cursor.taken
        if marks.name:
            _, mark = yield from cursor.until(marks.name, *closers, marks.open, "\n\n")
            if mark != marks.name:
                return (yield from self.stray(cursor, marks.open, marks.close, start))
            yield from cursor.accept(marks.name)
        elif (yield from cursor.run(_COLON)):
            start = cursor.taken
        yield from cursor.run(_COLON)
        name, mark = yield from cursor.until(marks.ends_name, marks.arguments, *closers, marks.open)
        if not _NAME.fullmatch(name.strip()) or mark not in (marks.ends_name, marks.arguments):
            return (yield from self.stray(cursor, marks.open, marks.close, start))
        if mark != marks.arguments:
            yield from cursor.until(marks.arguments, *closers, marks.open)
        yield from cursor.accept(marks.arguments)
        yield from cursor.run(_COLON)
        found = yield from self.named(cursor, name, "", closers, (marks.open,))
        space = yield from cursor.space()
        if not (yield from cursor.accept(*filter(None, (marks.close, *marks.drops)))):
            cursor.back(len(space))
        if not marks.name:
            yield from cursor.run(_COLON)
        return found

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(map(self._written, calls))

    def _written(self, call: TextCall) -> str:
        marks = self._marks
        between = "" if marks.ends_name == marks.arguments else marks.ends_name
        colon = ": " if not marks.name else ""
        return (
            f"{marks.open}{marks.name}{colon}{call.name}{between}{marks.arguments}{colon}"
            f"{compact(call.arguments)}{marks.ends_arguments}{marks.close}"
        )


NAMED_JSON_DIALECTS = (
    NamedJson(
        "solar",
        NameMarks(
            "<|tool_call:begin|>",
            "<|tool_call:name|>",
            "<|tool_call:args|>",
            "<|tool_call:args|>",
            "",
            "<|tool_call:end|>",
            ("<|tool_calls|>", "<|tool_calls:end|>", "<|begin|>assistant", "<|content|>", "<|calls|>"),
            {"<|think|>": "<|end|>"},
        ),
    ),
    NamedJson(
        "qwen_agent",
        NameMarks("✿FUNCTION✿", "", "✿ARGS✿", "✿ARGS✿", "", "✿RESULT✿", ("✿RETURN✿",)),
    ),
    NamedJson(
        "mcp_tag",
        NameMarks(
            "<use_mcp_tool>", "<tool_name>", "</tool_name>", "<arguments>", "</arguments>", "</use_mcp_tool>"
        ),
    ),
)
