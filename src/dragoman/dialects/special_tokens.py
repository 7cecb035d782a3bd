"""Read calls between special tokens: DeepSeek, Kimi K2, PLaMo 3, Solar, Mistral, gpt-oss.

Each writes a name after one token and the arguments as JSON after another. Cohere, Apertus and Inkling write
both as JSON between two tokens, each with its own keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, compact, name_in, tool_named
from dragoman.dialects.literals import read_json
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools


def _token(words: str) -> tuple[str, ...]:
    return tuple(f"<｜{words.replace(' ', joint)}｜>" for joint in ("▁", "_", " ", "\\_"))


_DS_ALL, _DS_ALL_END = _token("tool calls begin"), _token("tool calls end")
_DS_ONE, _DS_ONE_END = _token("tool call begin"), _token("tool call end")
_DS_SEPARATOR = _token("tool sep")


class Deepseek(Dialect):
    name = "deepseek"
    how = (
        "To call tools, write each call between its markers and all of them between the outer ones, as "
        "below: the name of the tool, and its arguments as a JSON object. Write nothing behind them."
    )
    opens = (*_DS_ALL, *_DS_ONE)
    drops = (*_DS_ALL_END, *_DS_ONE_END, *_DS_SEPARATOR, *_token("end of sentence"))

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        yield from cursor.space()
        if opener in _DS_ALL:
            yield from cursor.accept(*_DS_ONE)
        head, mark = yield from cursor.until(*_DS_SEPARATOR, *_DS_ONE_END, *_DS_ALL_END, *_DS_ONE)
        if mark not in _DS_SEPARATOR:
            yield from cursor.accept(*_DS_ONE_END)
            return [] if mark in _DS_ALL_END and not head.strip() else [self.bad("no name stands in it")]
        cursor.at += len(mark)
        yield from cursor.space()
        name = head
        if not (yield from cursor.sees("{")) and head.strip() in ("function", ""):
            name, _ = yield from cursor.until("\n", "```", "{", *_DS_ONE_END, *_DS_ALL_END)
        return (yield from self.named(cursor, name, "", _DS_ONE_END, (*_DS_ONE, *_DS_ALL_END)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = "".join(
            f"{_DS_ONE[0]}{call.name}{_DS_SEPARATOR[0]}{compact(call.arguments)}{_DS_ONE_END[0]}"
            for call in calls
        )
        return f"{_DS_ALL[0]}{written}{_DS_ALL_END[0]}"


_KIMI_ALL, _KIMI_ALL_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_KIMI_ONE, _KIMI_ONE_END = "<|tool_call_begin|>", "<|tool_call_end|>"
_KIMI_ARGUMENTS = "<|tool_call_argument_begin|>"

_KIMI_ID = re.compile(r"(?:functions\.)?(?P<name>.*?)(?::\d+)?", re.DOTALL)


class Kimi(Dialect):
    name = "kimi"
    how = (
        "To call tools, write each call between its markers and all of them between the outer ones, as "
        "below: `functions.`, the name of the tool, a colon, how many calls there were before it, and its "
        "arguments as a JSON object. Write nothing behind them."
    )
    opens = (_KIMI_ONE,)
    drops = (_KIMI_ALL, _KIMI_ALL_END, _KIMI_ONE_END, _KIMI_ARGUMENTS)
    ids = "kimi"

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        id, mark = yield from cursor.until(_KIMI_ARGUMENTS, _KIMI_ONE_END, _KIMI_ALL_END, _KIMI_ONE)
        found = _KIMI_ID.fullmatch(id.strip())
        name = found["name"] if found else ""
        if mark != _KIMI_ARGUMENTS:
            yield from cursor.accept(_KIMI_ONE_END)
            return [self.bad(f"{_KIMI_ARGUMENTS} is missing", name)]
        cursor.at += len(_KIMI_ARGUMENTS)
        return (yield from self.named(cursor, name, id.strip(), (_KIMI_ONE_END,), (_KIMI_ONE, _KIMI_ALL_END)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = "".join(
            f"{_KIMI_ONE}{_id(call, place)}{_KIMI_ARGUMENTS}{compact(call.arguments)}{_KIMI_ONE_END}"
            for place, call in enumerate(calls)
        )
        return f"{_KIMI_ALL}{written}{_KIMI_ALL_END}"

    def result(self, id: str, tool: str, text: str) -> str:
        return f"## Return of {id}\n{text}"


def _id(call: TextCall, place: int) -> str:
    return call.id if call.id.startswith("functions.") else f"functions.{call.name}:{place}"


def _tokens(word: str) -> tuple[str, str]:
    return f"<|plamo:begin_{word}:plamo|>", f"<|plamo:end_{word}:plamo|>"


_PL_ALL, _PL_ALL_END = _tokens("tool_requests")
_PL_ONE, _PL_ONE_END = _tokens("tool_request")
_PL_NAME, _PL_NAME_END = _tokens("tool_name")
_PL_ARGUMENTS, _PL_ARGUMENTS_END = _tokens("tool_arguments")
_PL_THOUGHT, _PL_THOUGHT_END = _tokens("think")
_PL_FORMAT = "<|plamo:constrain|>json<|plamo:msg|>"


class Plamo(Dialect):
    name = "plamo"
    how = (
        "To call tools, write each call between its markers and all of them between the outer ones, as "
        "below: the name of the tool, and its arguments as a JSON object. Write nothing behind them."
    )
    opens = (_PL_NAME, _PL_THOUGHT)
    drops = (
        _PL_ALL,
        _PL_ALL_END,
        _PL_ONE,
        _PL_ONE_END,
        _PL_NAME_END,
        _PL_ARGUMENTS,
        _PL_ARGUMENTS_END,
        _PL_THOUGHT_END,
        "<|plamo:tag|>",
    )
    thoughts = MappingProxyType({_PL_THOUGHT: _PL_THOUGHT_END})

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        name, mark = yield from cursor.until(_PL_NAME_END, _PL_ARGUMENTS, _PL_NAME, _PL_ONE_END, _PL_ALL_END)
        yield from cursor.accept(_PL_NAME_END)
        yield from cursor.space()
        if mark not in (_PL_NAME_END, _PL_ARGUMENTS) or not (yield from cursor.accept(_PL_ARGUMENTS)):
            return [self.bad(f"{_PL_ARGUMENTS} is missing", name)]
        yield from cursor.accept(_PL_FORMAT)
        return (
            yield from self.named(
                cursor, name, "", (_PL_ARGUMENTS_END,), (_PL_NAME, _PL_ONE_END, _PL_ALL_END)
            )
        )

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = "".join(
            f"{_PL_ONE}{_PL_NAME}{call.name}{_PL_NAME_END}{_PL_ARGUMENTS}{_PL_FORMAT}{compact(call.arguments)}{_PL_ARGUMENTS_END}{_PL_ONE_END}"
            for call in calls
        )
        return f"{_PL_ALL}{written}{_PL_ALL_END}"


_OPEN, _ID, _ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_THOUGHT, _THOUGHT_END = "[THINK]", "[/THINK]"

_NAME = re.compile(r"[\w.:/-]{1,99}")


class Mistral(Dialect):
    name = "mistral"
    how = (
        f"To call tools, write {_OPEN} and a JSON list of calls, each with the name of a tool and its "
        "arguments. Write nothing behind it."
    )
    opens = (_OPEN, _THOUGHT)
    drops = (_ID, _ARGUMENTS, _THOUGHT_END)
    thoughts = MappingProxyType({_THOUGHT: _THOUGHT_END})
    ids = "mistral"

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        yield from cursor.space()
        if (yield from cursor.sees(_OPEN)):
            return []
        if (yield from cursor.sees("[{", "{", ("\\[", "\\s{1,64}", "[{\\]]"), "[]")):
            payload = yield from read_json(cursor)
            if payload.flaw:
                yield from cursor.until(_OPEN)
                return [self.bad(payload.flaw, name_in(payload.text))]
            return self.entries(payload)
        name, mark = yield from cursor.until(_ARGUMENTS, _ID, "{", _OPEN, "\n")
        id = ""
        if (yield from cursor.accept(_ID)):
            id, mark = yield from cursor.until(_ARGUMENTS, "{", _OPEN, "\n")
        if mark not in (_ARGUMENTS, "{"):
            whole = bool(mark) or not cursor.broken_off
            if whole and _NAME.fullmatch(name.strip()) and (not tools or tool_named(name, tools)):
                return [self.called(name, "", id.strip())]  # without arguments
            return [self.bad("no name and no arguments stand behind the marker")]
        yield from cursor.accept(_ARGUMENTS)
        return (yield from self.named(cursor, name, id.strip(), (), (_OPEN,)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = (
            compact({"name": call.name, "arguments": call.arguments, **({"id": call.id} if call.id else {})})
            for call in calls
        )
        return f"{_OPEN} [{', '.join(written)}]"


_SOLAR_BEGIN, _SOLAR_END = "<|tool_call:begin|>", "<|tool_call:end|>"
_SOLAR_NAME, _SOLAR_ARGUMENTS = "<|tool_call:name|>", "<|tool_call:args|>"


class Solar(Dialect):
    name = "solar"
    how = "To call a tool, write its name and its arguments as a JSON object, between the marks below."
    opens = (_SOLAR_BEGIN, "<|think|>")
    drops = (
        *(_SOLAR_END, "<|tool_calls|>", "<|tool_calls:end|>"),
        *("<|begin|>assistant", "<|content|>", "<|calls|>", "<|end|>"),
    )
    thoughts = MappingProxyType({"<|think|>": "<|end|>"})

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        _, mark = yield from cursor.until(_SOLAR_NAME, _SOLAR_END, _SOLAR_BEGIN)
        yield from cursor.accept(_SOLAR_NAME, _SOLAR_END)
        if mark != _SOLAR_NAME:
            return [self.bad(f"{_SOLAR_NAME} is missing")]
        name, mark = yield from cursor.until(_SOLAR_ARGUMENTS, _SOLAR_END, _SOLAR_BEGIN)
        if mark != _SOLAR_ARGUMENTS:
            yield from cursor.accept(_SOLAR_END)
            return [self.bad(f"{_SOLAR_ARGUMENTS} is missing", name)]
        cursor.at += len(mark)
        return (yield from self.named(cursor, name, "", (_SOLAR_END,), (_SOLAR_BEGIN,)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(
            f"{_SOLAR_BEGIN}{_SOLAR_NAME}{call.name}{_SOLAR_ARGUMENTS}{compact(call.arguments)}{_SOLAR_END}"
            for call in calls
        )


_START, _CHANNEL, _MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
_ENDS = ("<|call|>", "<|end|>", "<|return|>")

_CHANNEL_WORD = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([^\s<]+)")


class Harmony(Dialect):
    name = "harmony"
    how = (
        "Think in the channel `analysis`, answer in the channel `final`. To call a tool, write a message to "
        "`functions.` and the name of the tool in the channel `commentary`: its arguments as a JSON object."
    )
    begins = (("t", "o", "=", r"[\w.-]{1,99}", r"[^<\n]{0,40}", "<", r"\|"),)
    opens = turns = (_START, _CHANNEL, _MESSAGE, *_ENDS)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener in _ENDS or opener == _MESSAGE:
            return "text"
        header, mark = yield from cursor.until(_MESSAGE, _START, *_ENDS)
        header = opener + header
        yield from cursor.accept(_MESSAGE, *_ENDS)
        channel, to = _CHANNEL_WORD.search(header), _RECIPIENT.search(header)
        thinks = channel is not None and channel[1] == "analysis"
        if to is None or to[1] == "assistant" or (channel and channel[1] == "final"):
            return "reasoning" if thinks and mark == _MESSAGE else "text"
        if mark != _MESSAGE:
            return [self.bad(f"{_MESSAGE} is missing", to[1])]
        space = yield from cursor.space()
        if thinks and not (yield from cursor.sees("{")):
            cursor.back(len(space))
            return "reasoning"
        return (yield from self.named(cursor, to[1], "", _ENDS, (_START, _CHANNEL)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        return f"{_START}assistant".join(
            f"{_CHANNEL}commentary to=functions.{call.name} <|constrain|>json"
            f"{_MESSAGE}{compact(call.arguments)}{_ENDS[0]}"
            for call in calls
        )


@dataclass(slots=True, frozen=True)
class JsonMarks:
    """The tokens and keys of one model. Without a key for the name, the name is the key of the arguments."""

    open: str
    close: str
    name: str
    arguments: str
    listed: bool
    """Whether all calls are in one list, or each between separate tokens."""
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
