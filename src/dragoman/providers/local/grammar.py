"""Grammars in llama.cpp's notation that hold the model in the box to the lines it may write.

Names are those of the tools, arguments have the shape of the tool's schema, and an expression that a person
typed stays as it was typed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.messages.request import ToolSpec
from dragoman.providers.local.prompt import CALL, SAY, SHOW, TALK, choices_of, kind_of, resolve

MOST_CALLS = 6  # in one reply
DEEPEST = 6  # objects inside objects that are held to their schema
EXPRESSION = "expression"  # the parameter that takes one

_JSON = r"""
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" (string ": " value (", " string ": " value)*)? "}"
array ::= "[" (value (", " value)*)? "]"
string ::= "\"" char* "\""
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,16})?
boolean ::= "true" | "false"
line ::= [^\n\x00]+
"""


def reply_grammar(
    tools: Sequence[ToolSpec],
    *,
    calls: bool = True,
    words: Sequence[str] = (SAY, SHOW, TALK),
    typed: str = "",
) -> str:
    """What a reply may be: calls of these tools, or one line of another kind.

    `typed` is an expression of the request, which is taken as it stands wherever a tool wants one.
    """
    rules = _Rules(typed)
    ways = []
    if calls and tools:
        each = [rules.named(f"{_quoted(tool.name + ' ')} {rules.of_tool(tool)}") for tool in tools]
        call = rules.named(f"{_quoted(CALL + ' ')} ({' | '.join(each)})")
        ways.append(f'{call} ("\\n" {call}){{0,{MOST_CALLS - 1}}}')
    ways += [_quoted(word) if word == TALK else f"{_quoted(word + ' ')} line" for word in words]
    return "\n".join([f"root ::= {' | '.join(ways)}", *rules.lines, _JSON.strip()])


class _Rules:
    """The rules made so far. `of` gives what stands for a schema."""

    def __init__(self, typed: str) -> None:
        self.lines: list[str] = []
        self._typed = typed

    def named(self, body: str) -> str:
        name = f"r{len(self.lines)}"
        self.lines.append(f"{name} ::= {body}")
        return name

    def of_tool(self, tool: ToolSpec) -> str:
        return self._object(tool.parameters, tool.parameters, 0)

    def of(self, schema: Any, root: Mapping[str, Any], depth: int) -> str:
        found = resolve(schema, root)
        if choices := choices_of(found):
            written = [_quoted(json.dumps(choice, ensure_ascii=False)) for choice in choices]
            return f"({' | '.join(written)})"
        if "type" not in found and "properties" not in found:
            return "value"
        match kind_of(found):
            case "object" if found.get("properties") and depth < DEEPEST:
                return self._object(found, root, depth)
            case "array" if depth < DEEPEST:
                item = self.named(self.of(found.get("items") or {}, root, depth + 1))
                return f'"[" ({item} (", " {item})*)? "]"'
            case "string" | "integer" | "number" | "boolean" | "object" | "array" as kind:
                return kind
            case _:
                return "value"

    def _object(self, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
        """Its members in the order of the schema."""
        required = schema.get("required") or ()
        members = []
        for name, member in (schema.get("properties") or {}).items():
            value = self.of(member, root, depth + 1)
            if self._typed and name == EXPRESSION and value == "string":
                value = _quoted(json.dumps(self._typed, ensure_ascii=False))
            key = _quoted(json.dumps(name, ensure_ascii=False) + ": ")
            members.append((self.named(f"{key} {value}"), name in required))
        return f'"{{" {self._members(members)} "}}"'

    def _members(self, members: list[tuple[str, bool]]) -> str:
        """In this order, some of them left out: what comes first has no comma before it."""
        if not members:
            return '""'
        (first, always), rest = members[0], members[1:]
        tail = " ".join(f'(", " {one})' if must else f'(", " {one})?' for one, must in rest)
        if always:
            return f"{first} {tail}".rstrip()
        if not rest:
            return f"({first})?"
        return self.named(f"{first} {tail} | {self._members(rest)}")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
