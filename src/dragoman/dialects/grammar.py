"""Define `Dialect`, the interface of all dialects, and the ways of reading calls that most of them share."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.dialects.cursor import WORD, Cursor, Form, Steps
from dragoman.dialects.literals import JsonText, read_json
from dragoman.dialects.scanner import BadCall, FoundCall, Reading, Scanner, TextCall, Tools
from dragoman.dialects.visible import joined
from dragoman.messages.message import Arguments
from dragoman.messages.request import ToolSpec, name_key
from dragoman.wire.calls import parse_arguments
from dragoman.wire.endpoint import IdShape
from dragoman.wire.lowering import description

ARGUMENT_KEYS = (
    *("arguments", "parameters", "args", "params", "input", "kwargs"),
    *("tool_input", "tool_args", "tool_arguments", "action_input", "function_args"),
)
"""The keys under which models put the arguments of a call, in order of preference."""
KEYS_BESIDE = frozenset(
    {
        *("id", "type", "tool_call_id", "toolCallId", "call_id", "index", "toolUseId", "tool_use_id"),
        *("thought", "reasoning", "reason"),
    }
)
"""Keys of a call that are not its arguments."""
_GAP = r"\s{0,8}"
_RESULT_TAGS = (
    *("tool_response", "tool_result", "tool_results", "tool_output", "observation"),
    *("function_result", "function_results", "function_response"),
)
_ENDS = ("", "<|im_end|>", "<|eot_id|>", "<|eom_id|>")
_TURNS = (
    *("<|im_start|>tool", "<|im_start|>user", "<|start_header_id|>ipython", "<|start_header_id|>tool"),
    "<|start_header_id|>user",
)
RESULTS: tuple[Form, ...] = (
    "Observation:",
    *((*f"<{tag}", r"(?:\s[^<>]{0,99})?", ">") for tag in _RESULT_TAGS),
    *("[TOOL_RESULTS]", "```tool_output", "<｜tool▁outputs▁begin｜>", "<|tool_response>"),
    (*map(re.escape, "<|observation|>"), _GAP, r"(?=\S)"),
    *((*map(re.escape, end), _GAP, *map(re.escape, turn)) for end in _ENDS for turn in _TURNS),
)
"""The text before results. A model that writes it after a call invents a result."""


@dataclass(slots=True, frozen=True)
class Parsed:
    """A complete reply: its text, and its calls in order, including unreadable ones."""

    text: str
    found: tuple[FoundCall, ...] = ()
    reasoning: str = ""

    @property
    def calls(self) -> tuple[TextCall, ...]:
        return tuple(one for one in self.found if isinstance(one, TextCall))

    @property
    def errors(self) -> tuple[str, ...]:
        """The messages to the model about its unreadable calls."""
        return tuple(one.error for one in self.found if isinstance(one, BadCall))


class Dialect(ABC):
    """A way to write calls as text. A new one is a file with `read`, `calls` and a few markers.

    `scanner.Grammar` explains the markers that begin a call (`opens` to `thoughts`).
    """

    name: str
    how: str
    """The instruction to a model, before an example."""
    opens: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    begins: tuple[Form, ...] = ()
    thoughts: Mapping[str, str] = MappingProxyType({})
    turns: tuple[str, ...] = ()
    results: tuple[Form, ...] = RESULTS
    ids: IdShape = "ours"

    @abstractmethod
    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        """Read the calls that begin here. None if it was only text."""

    @abstractmethod
    def calls(self, calls: Sequence[TextCall]) -> str:
        """Return the calls of one reply, as the model would have written them."""

    # ── prompts ───────────────────────────────────────────────────────────────────────────────────

    def system(self, prompt: str, tools: Tools) -> str:
        """Return the system prompt with the tools in it, the same bytes for the same tools."""
        if not tools:
            return prompt
        section = tool_section(tools, self.how, self.call("tool_name", {"argument": "value"}))
        return f"{prompt}\n\n{section}" if prompt else section

    def call(self, name: str, arguments: Arguments, id: str = "") -> str:
        return self.calls([TextCall(name, arguments, id)])

    def result(self, id: str, tool: str, text: str) -> str:
        """Return the result of a call, as the user's next message."""
        return compact({"tool_call_result": {"toolCallId": id, "result": text}})

    # ── replies ───────────────────────────────────────────────────────────────────────────────────

    def parse(
        self, reply: str, tools: Tools | None = None, quotes: Callable[[str], bool] = lambda raw: False
    ) -> Parsed:
        """Parse a complete reply. Without the tools, untyped values are converted by their form."""
        scanner = Scanner(self, tools, quotes=quotes)
        text, reasoning = joined([*scanner.feed(reply), *scanner.end()])
        return Parsed(text, tuple(scanner.found), reasoning)

    # ── readings that dialects share ──────────────────────────────────────────────────────────────

    def tagged(self, cursor: Cursor, opener: str, closer: str) -> Reading:
        """Read JSON objects with name and arguments between two tags. The last closing tag may be missing."""
        found: list[FoundCall] = []
        yield from cursor.space()
        fenced = yield from open_fence(cursor)
        if not (yield from cursor.sees("{", "[")):
            return (yield from self.stray(cursor, opener, closer))
        while (yield from cursor.sees("{", "[")):
            payload = yield from read_json(cursor)
            if payload.flaw:
                yield from cursor.until(closer, opener)
                yield from cursor.accept(closer)
                return [*found, self.bad(payload.flaw, self.name_in(payload.text))]
            found += self.entries(payload)
            space = yield from cursor.space()
        if fenced and (yield from cursor.accept(fenced)):
            space = yield from cursor.space()
        if (yield from self.closed(cursor, space, (closer,), (opener,))):
            return found
        return [self.bad("something else stands behind its JSON", self.name_in(payload.text))]

    def named(
        self, cursor: Cursor, name: str, id: str, closers: Sequence[str], stops: Sequence[str]
    ) -> Steps[Sequence[FoundCall]]:
        """Read the rest of a call after its name: its arguments as JSON, and its closing tag, which may be
        missing.

        It ends at one of `stops` at the latest.
        """
        yield from cursor.space()
        fenced = yield from open_fence(cursor)
        if not (yield from cursor.sees("{")):
            text, mark = yield from cursor.until(*closers, *stops)
            yield from cursor.accept(*closers)
            # no arguments, or encoded ones
            if mark in closers and (not text.strip() or text.startswith('"')):
                return [self.called(name, text, id)]
            return [self.bad("its arguments are no JSON object", name)]
        payload = yield from read_json(cursor)
        if payload.flaw:
            yield from cursor.until(*closers, *stops)
            yield from cursor.accept(*closers)
            return [self.bad(payload.flaw, name)]
        space = yield from cursor.space()
        if fenced and (yield from cursor.accept(fenced)):
            space = yield from cursor.space()
        if not (yield from self.closed(cursor, space, closers, stops)):
            return [self.bad("something else stands behind its arguments", name)]
        return [self.called(name, payload.text, id)]

    def stray(self, cursor: Cursor, opener: str, closer: str, start: int | None = None) -> Reading:
        """Read a tag without a call. `start` is where the tag ended.

        It is malformed if it is closed in the same paragraph, or if the reply ends as a call may break off.
        Otherwise it is text about the tag.
        """
        cursor.back(cursor.taken - start if start is not None else 0)
        junk, mark = yield from cursor.until(closer, opener, "\n\n")
        if (yield from cursor.accept(closer)):
            return [self.bad(f"what stands between {opener} and {closer} is not what belongs there")]
        # Normal text does not mention tokens.
        if not mark and ("|" in opener or _BEGINS_CALL.fullmatch(junk.strip())):
            return [self.bad("the reply ends where it begins")]
        return None

    def closed(self, cursor: Cursor, space: str, closers: Sequence[str], stops: Sequence[str]) -> Steps[bool]:
        """Read what closes a call. `space` was read before this.

        The call is valid without a closer, but not with other text before the closer, nor if its JSON seems
        to continue.
        """
        if closers and (yield from cursor.accept(*closers)):
            return True
        goes_on = yield from cursor.sees("}", "]", ",")
        if closers or goes_on:
            junk, mark = yield from cursor.until(*closers, *stops, "\n\n")
            if mark in closers or goes_on:
                yield from cursor.accept(*closers)
                return False
            if junk and any(one.startswith(junk) for one in closers):  # the reply ends within the closer
                return True
            cursor.back(len(junk))
        cursor.back(len(space))
        return True

    # ── parsed values ─────────────────────────────────────────────────────────────────────────────

    def entries(self, payload: JsonText) -> list[FoundCall]:
        """Return the calls in JSON that names them: an object, or a list of objects."""
        if payload.text.startswith("["):
            wrapped = parse_arguments(f'{{"calls": {payload.text}}}')
            entries = wrapped["calls"] if wrapped else None
        else:
            entries = parse_arguments(payload.text)
        if entries is None:
            return [self.bad("its JSON cannot be read", self.name_in(payload.text))]
        return [self.entry(entry) for entry in (entries if isinstance(entries, list) else [entries])]

    def entry(self, entry: JsonValue) -> FoundCall:
        """Return the call that one JSON object describes, also in the form in which wires send calls."""
        if not isinstance(entry, dict):
            return self.bad("it is no object with a name and arguments")
        inner = entry.get("function")
        if isinstance(inner, dict):
            entry = {"id": entry.get("id"), **inner}
        name, id = entry.get("name"), entry.get("id")
        if not isinstance(name, str) or not name.strip():
            return self.bad('its "name" is missing')
        given = [key for key in ARGUMENT_KEYS if key in entry]
        if len(given) > 1:
            return self.bad(f'it has both "{given[0]}" and "{given[1]}"', name)
        others = [key for key in entry if key not in KEYS_BESIDE and key not in ("name", "function")]
        if not given and others:  # They would be lost.
            return self.bad(f'"{others[0][:99]}" is next to its name, not in its "arguments"', name)
        arguments = entry[given[0]] if given else None
        if isinstance(arguments, dict):
            return TextCall(name.strip(), arguments, id if isinstance(id, str) else "")
        if arguments is None or isinstance(arguments, str):
            return self.called(name, arguments or "", id if isinstance(id, str) else "")
        return self.bad("its arguments are no object", name)

    def name_in(self, text: str) -> str:
        """Return the name in a call's broken JSON, if it has one."""
        return name_in(text)

    def called(self, name: str, arguments: str, id: str = "") -> FoundCall:
        """Return the call of a tool with the text of its arguments."""
        parsed = parse_arguments(arguments)
        if not name.strip():
            return self.bad("it has no name")
        if parsed is None:
            return self.bad("its arguments are not one complete JSON object", name)
        return TextCall(name.strip(), parsed, id)

    def bad(self, why: str, name: str | None = None) -> BadCall:
        name = (name or "").strip() if len(name or "") < _LONGEST_NAME else ""
        subject = f"The call of {name}" if name else "A call"
        example = self.call(name or "tool_name", {"argument": "value"})
        return BadCall(f"{subject} did not run: {why}. Write it like this:\n{example}", name)


_BEGINS_CALL = re.compile(  # a name, a tag or nothing, or it ends within a tag: no sentence ends like this
    r"(?:(?![^\W\x00-\x7f])\S)*(?<![.,;!?)*'。，；！？）])|.*<(?:[^\s<>]+(?: [^<>]{0,40})?)?", re.DOTALL
)
_LONGEST_NAME = 200  # anything longer is not a name


def open_fence(cursor: Cursor) -> Steps[str]:
    """Read the start of a fence around a payload. Return what will close it."""
    fence = yield from cursor.accept("```")
    if fence:
        yield from cursor.run(WORD)
        yield from cursor.space()
    return fence


def tool_named(name: str, tools: Tools | None) -> ToolSpec | None:
    return next((tool for tool in tools or () if name_key(tool.name) == name_key(name)), None)


def name_in(text: str) -> str:
    """Return the name in a call's broken JSON, if it has one."""
    try:
        value = from_json(text, allow_partial=True)
    except ValueError:
        found = re.search(r'"name"\s{0,9}:\s{0,9}"([^"\\\n]{1,99})"', text)
        return found[1] if found else ""
    listed = value.get("tool_calls", value) if isinstance(value, dict) else value
    entry = listed[-1] if isinstance(listed, list) and listed else listed
    inner = entry.get("function", entry) if isinstance(entry, dict) else {}
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else ""


# ── the words of prompts ──────────────────────────────────────────────────────────────────────────

_TOOLS = """# Tools

You can call tools. Each line below describes one, with a JSON schema of its arguments:
<tools>
{tools}
</tools>

{how}

{example}

Call only tools from the list, with arguments that fit their schema. After your calls, stop: what they gave \
is in the next message. When you need no tool, just answer."""


def tool_section(tools: Tools, how: str, example: str) -> str:
    """Return the part of a system prompt about tools: the same bytes for the same tools."""
    return _TOOLS.format(
        tools="\n".join(compact(_declared(tool)) for tool in tools), how=how, example=example
    )


def compact(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def described(call: TextCall, *, id: bool = True) -> str:
    """Return a call as a JSON object that names it."""
    return compact(
        {**({"id": call.id} if id and call.id else {}), "name": call.name, "arguments": call.arguments}
    )


def enclosed(tag: str, text: str) -> str:
    """Return the text between two tags. Nothing in it can end them, whatever a tool returned."""
    harmless = text.replace(f"</{tag}", f"<\\/{tag}")
    return f"<{tag}>\n{harmless}\n</{tag}>"


def _declared(tool: ToolSpec) -> JsonValue:
    function: JsonValue = {
        "name": tool.name,
        "description": description(tool),
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}
