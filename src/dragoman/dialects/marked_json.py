"""Calls as JSON between two special tokens, each model with its own words: Cohere, Apertus, Inkling."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.wording import compact


@dataclass(slots=True, frozen=True)
class JsonMarks:
    """How one model does it. Without a word for the name, the name is the key of the arguments."""

    open: str
    close: str
    name: str
    arguments: str
    listed: bool
    """Whether all calls stand in one list, or each between its own tokens."""
    drops: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    thoughts: Mapping[str, str] = field(default_factory=dict)


class MarkedJson(Dialect):
    def __init__(self, name: str, marks: JsonMarks) -> None:
        what = "a JSON list of calls" if marks.listed else "each call as a JSON object"
        self.name = name
        self.how = f"To call tools, write {what} between {marks.open} and {marks.close}, as below."
        self.opens = (marks.open, *marks.thoughts)
        self.drops = (*dict.fromkeys((marks.close, *marks.drops, *marks.thoughts.values())),)
        self.sections = marks.sections
        self.thoughts = marks.thoughts
        self._marks = marks
        word = re.escape(marks.name) if marks.name else ""
        self._named = re.compile(
            rf'"{word}"\s{{0,9}}:\s{{0,9}}"([^"\\\n]{{1,99}})"' if word else r'\{\s{0,9}"([^"\\\n]{1,99})"'
        )

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        return (yield from self.tagged(cursor, self._marks.open, self._marks.close))

    def entry(self, entry: JsonValue) -> FoundCall:
        marks = self._marks
        if isinstance(entry, dict) and not marks.name and len(entry) == 1:
            [(name, arguments)] = entry.items()
            return super().entry({"name": name, "arguments": arguments})
        if isinstance(entry, dict) and marks.name in entry:
            others = {key: value for key, value in entry.items() if key != marks.name}
            return super().entry({**others, "name": entry[marks.name], "id": entry.get("tool_call_id")})
        return super().entry(entry)

    def name_in(self, text: str) -> str:
        found: list[str] = self._named.findall(text)
        return found[-1 if self._marks.name else 0] if found else ""

    def calls(self, calls: Sequence[TextCall]) -> str:
        marks = self._marks
        written: list[JsonValue] = [
            {marks.name: call.name, marks.arguments: call.arguments}
            if marks.name
            else {call.name: call.arguments}
            for call in calls
        ]
        if marks.listed:
            return f"{marks.open}[{', '.join(map(compact, written))}]{marks.close}"
        return "".join(f"{marks.open}{compact(one)}{marks.close}" for one in written)


MARKED_JSON_DIALECTS = (
    MarkedJson(
        "cohere",
        JsonMarks(
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            "tool_name",
            "parameters",
            listed=True,
            drops=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
            sections=("<|START_RESPONSE|>", "<|START_TEXT|>"),
            thoughts={"<|START_THINKING|>": "<|END_THINKING|>"},
        ),
    ),
    MarkedJson(
        "apertus",
        JsonMarks(
            "<|tools_prefix|>",
            "<|tools_suffix|>",
            "",
            "",
            listed=True,
            thoughts={"<|inner_prefix|>": "<|inner_suffix|>"},
        ),
    ),
    MarkedJson(
        "inkling",
        JsonMarks(
            "<|content_invoke_tool_json|>",
            "<|end_message|>",
            "name",
            "args",
            listed=False,
            drops=("<|message_model|>", "<|content_text|>"),
            sections=("<|content_text|>",),
            thoughts={"<|content_thinking|>": "<|end_message|>"},
        ),
    ),
)
