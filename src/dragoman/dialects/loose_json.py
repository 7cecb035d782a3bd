"""Calls in JSON whose keys have other names than usual: they count only if they name a tool there is.

`{"tool": "add", "args": {…}}`, `{"action": "add", "action_input": {…}}`, `{"tool_calls": [{…}]}` and so on:
models that were trained on several formats fall back to these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import JsonValue

from dragoman.dialects.grammar import ARGUMENT_KEYS, KEYS_BESIDE, tool_named
from dragoman.dialects.scanner import TextCall, Tools
from dragoman.messages.parts import Arguments
from dragoman.wire.arguments import parse_arguments

NAMES = (
    *("name", "tool_name", "tool", "function_name", "function", "action", "recipient_name"),
    *("toolName", "functionName"),
)
AROUND = (
    *("tool_calls", "tool_call", "function_call", "function_calls", "tool_uses", "calls", "function"),
    *("toolCalls", "toolCall", "functionCalls", "functionCall", "toolUse", "tool_use", "tool", "call"),
)

_COUNT = re.compile(r":\d{1,3}$")  # Kimi
_PARALLEL = "multi_tool_use.parallel"  # what GPT-4 calls several calls
_SPACES = ("functions.", "tools.", "default_api.", "multi_tool_use.")


def plain_name(name: str) -> str:
    """Without the namespace that some models put in front of it, and the number behind it."""
    name = _COUNT.sub("", name.strip())
    return next((name.removeprefix(space) for space in _SPACES if name.startswith(space)), name)


def loose_calls(text: str, tools: Tools | None) -> list[TextCall] | None:
    """The calls in this JSON. None if it is anything else than calls of tools there are."""
    wrapped = parse_arguments(f'{{"calls": {text}}}')
    value = wrapped.get("calls") if wrapped else None
    found = [*_calls(value, tools)]
    return [one for one in found if one is not None] if found and all(found) else None


def is_schema(arguments: Arguments) -> bool:
    """Whether this is what a tool says of its arguments: whoever lists the tools there are calls none."""
    return arguments.get("type") == "object" and isinstance(arguments.get("properties"), dict)


def _calls(value: JsonValue, tools: Tools | None, depth: int = 0) -> Iterator[TextCall | None]:
    """Each call in it; None for what is none."""
    if isinstance(value, list) and depth < 3:
        for one in value:
            yield from _calls(one, tools, depth + 1)
        return
    if not isinstance(value, dict):
        yield None
        return
    around = next((key for key in AROUND if isinstance(value.get(key), dict | list)), None)
    given = {key for key, one in value.items() if one not in (None, "", [])}
    if around is not None and depth < 3 and given <= KEYS_BESIDE | {around, "role"}:
        yield from _calls(value[around], tools, depth + 1)
        return
    if value.get("name") == _PARALLEL and depth < 3:
        for key in ARGUMENT_KEYS:
            if isinstance(value.get(key), dict):
                yield from _calls(value[key], tools, depth + 1)
        return
    yield _call(value, tools)


def _call(entry: dict[str, JsonValue], tools: Tools | None) -> TextCall | None:
    if len(entry) == 1:  # the name is the key
        ((key, value),) = entry.items()
        if isinstance(value, dict) and (tool := tool_named(key, tools)) is not None:
            return TextCall(tool.name, value)
    named = [key for key in NAMES if isinstance(entry.get(key), str)]
    given = [key for key in ARGUMENT_KEYS if key in entry]
    if len(named) != 1 or len(given) > 1 or not entry.keys() <= KEYS_BESIDE | {*named, *given}:
        return None
    if not given and named[0] != "name":  # `{"action": "search"}` may be anything
        return None
    name = plain_name(str(entry[named[0]]))
    arguments = _arguments(entry[given[0]] if given else None)
    if arguments is None or tool_named(name, tools) is None or is_schema(arguments):
        return None
    id = entry.get("id") or entry.get("tool_call_id")
    return TextCall(name, arguments, id if isinstance(id, str) else "")


def _arguments(given: JsonValue) -> Arguments | None:
    if isinstance(given, dict):
        return given
    return parse_arguments(given or "") if given is None or isinstance(given, str) else None
