"""Define the format in which the bundled model's adapter was trained: what it reads, and what it writes.

Tools go into the system message, one line each, then what changes from day to day:

    Tools:
    - NAME(p: TYPE, q?: TYPE) DESCRIPTION p: about p; q: about q
    Today is Sunday, 15 November 2026.

The model writes one line for each call, or one line of another kind, and ends its message:

    call: NAME {"p": "x"}
    say: TEXT           an answer, or a question back
    show: SENTENCE      the sentence, and after it the results, or the tools where there are no results
    talk:               free talk: the model without the adapter is to answer

The training of the adapter imports this file too, so both use the same format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from dragoman.messages.request import ToolSpec

CALL, SAY, SHOW, TALK = "call:", "say:", "show:", "talk:"
END = "<|im_end|>"
OPEN = "<|im_start|>assistant\n"
LONGEST_DESCRIPTION = 120  # characters of a tool's description
LONGEST_PARAMETER = 60  # and of a parameter's
MOST_CHOICES = 12  # words of an enumeration
DEEPEST_NAMED = 3  # levels of nested objects whose members are named

_WORDS = {  # for other words that some schemas use
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": "string",
    "int": "integer",
    "bool": "boolean",
    "str": "string",
    "list": "array",
}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def message(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}{END}\n"


def tools_text(lines: Iterable[str]) -> str:
    """Return how every prompt with these tools begins."""
    return "<|im_start|>system\n" + "\n".join(["Tools:", *lines])


def system_text(lines: Iterable[str], *, today: date | None = None, extra: str = "") -> str:
    """Return the whole system message: the tools, other instructions, and the day."""
    more = [extra] if extra else []
    if today is not None:
        more.append(f"Today is {day_text(today)}.")
    return "\n".join([tools_text(lines), *more]) + f"{END}\n"


def day_text(day: date) -> str:
    return f"{_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"


def call_line(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{CALL} {name} {json.dumps(arguments, ensure_ascii=False)}"


def tool_line(name: str, description: str, parameters: Mapping[str, Any]) -> str:
    """Return a tool on one line: its signature, its description, and those of its parameters."""
    members = parameters.get("properties") or {}
    about = [
        f"{member}: {shorten(text, LONGEST_PARAMETER)}"
        for member, schema in members.items()
        if (text := resolve(schema, parameters).get("description"))
    ]
    sentence = shorten(description, LONGEST_DESCRIPTION)
    if sentence and sentence[-1] not in ".!?。":
        sentence += "."
    signature = f"{name}({_members(parameters, parameters, 0)})"
    return " ".join(piece for piece in (f"- {signature}", sentence, "; ".join(about)) if piece)


def type_text(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """Return a schema as the model reads it: a word, `a|b|c`, `[T]` or `{k: T, l?: T}`."""
    found = resolve(schema, root)
    if choices := choices_of(found):
        return "|".join(str(choice) for choice in choices[:MOST_CHOICES])
    kind = kind_of(found)
    if kind == "array":
        return f"[{type_text(found.get('items') or {}, root, depth + 1)}]"
    if kind == "object" and found.get("properties") and depth < DEEPEST_NAMED:
        return f"{{{_members(found, root, depth + 1)}}}"
    return kind


def resolve(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the target of a reference, or the first of several schemas that is not `null`."""
    for _ in range(20):  # a reference may refer to itself
        if not isinstance(schema, dict):
            return {}
        if reference := schema.get("$ref"):
            target = (root.get("$defs") or root.get("definitions") or {}).get(
                str(reference).rpartition("/")[2]
            )
        elif ways := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            target = next((way for way in ways if isinstance(way, dict) and way.get("type") != "null"), {})
        else:
            return schema
        about = schema.get("description")
        schema = {**target, **({"description": about} if about else {})} if isinstance(target, dict) else {}
    return {}


def choices_of(schema: Mapping[str, Any]) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    return [choice for choice in schema.get("enum") or () if choice is not None]


def kind_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    return _WORDS.get(str(kind), str(kind))


def shorten(text: str, longest: int) -> str:
    """Return the text on one line, shortened at the end of a sentence or a word."""
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    head = text[:longest]
    for mark in (". ", "; ", ", ", " "):
        at = head.rfind(mark)
        if at >= longest // 2:
            return head[:at].rstrip(" .,;") + ("." if mark == ". " else "")
    return head


def _members(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    required = schema.get("required") or ()
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {type_text(member, root, depth)}"
        for name, member in (schema.get("properties") or {}).items()
    )


# Build grammars in llama.cpp's notation that restrict the bundled model to the lines it may write.
#
# Names are those of the tools, arguments match the tool's schema, and an expression that a user typed stays
# unchanged.


MOST_CALLS = 6  # in one reply
DEEPEST = 6  # levels of nested objects that must match their schema
EXPRESSION = "expression"  # the parameter that takes an expression

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
    """Return the grammar of a reply: calls of these tools, or one line of another kind.

    `typed` is an expression of the request, which is used unchanged wherever a tool takes one.
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
    """The rules made so far. `of` returns the rule for a schema."""

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
        """Return an object with its members in the order of the schema."""
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
        """Return the members in this order, some of them optional: the first one present has no comma before
        it."""
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
