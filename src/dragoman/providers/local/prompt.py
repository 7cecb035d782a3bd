"""The format that the adapter of the model in the box was trained in: what it reads, and what it writes.

Tools go into the system message, one line each, then what does not stay the same from day to day:

    Tools:
    - NAME(p: TYPE, q?: TYPE) DESCRIPTION p: about p; q: about q
    Today is Sunday, 15 November 2026.

The model writes one line for each call, or one line of another kind, and ends its message:

    call: NAME {"p": "x"}
    say: TEXT           an answer, or a question back
    show: SENTENCE      the sentence, and after it the results, or the tools where there are no results
    talk:               free talk: the model without the adapter is to answer

Nothing but the standard library is used here: whoever trains the adapter reads this file too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

CALL, SAY, SHOW, TALK = "call:", "say:", "show:", "talk:"
END = "<|im_end|>"
OPEN = "<|im_start|>assistant\n"
LONGEST_DESCRIPTION = 120  # characters of what is said of a tool
LONGEST_PARAMETER = 60  # and of a parameter
MOST_CHOICES = 12  # words of an enumeration
DEEPEST = 3  # objects inside objects whose members are named

_WORDS = {  # for what some write in the place of JSON Schema's words
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
    """How every prompt with these tools begins."""
    return "<|im_start|>system\n" + "\n".join(["Tools:", *lines])


def system_text(lines: Iterable[str], *, today: date | None = None, extra: str = "") -> str:
    """The whole system message: the tools, what else is asked of the model, and the day."""
    more = [extra] if extra else []
    if today is not None:
        more.append(f"Today is {day_text(today)}.")
    return "\n".join([tools_text(lines), *more]) + f"{END}\n"


def day_text(day: date) -> str:
    return f"{_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"


def call_line(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{CALL} {name} {json.dumps(arguments, ensure_ascii=False)}"


def tool_line(name: str, description: str, parameters: Mapping[str, Any]) -> str:
    """A tool on one line: its signature, what it does, and what is said of its parameters."""
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
    """A schema as the model reads it: a word, `a|b|c`, `[T]` or `{k: T, l?: T}`."""
    found = resolve(schema, root)
    if choices := choices_of(found):
        return "|".join(str(choice) for choice in choices[:MOST_CHOICES])
    kind = kind_of(found)
    if kind == "array":
        return f"[{type_text(found.get('items') or {}, root, depth + 1)}]"
    if kind == "object" and found.get("properties") and depth < DEEPEST:
        return f"{{{_members(found, root, depth + 1)}}}"
    return kind


def resolve(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """What a reference means; of several schemas, the first that is not `null`."""
    for _ in range(20):  # a reference may lead to itself
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
    """On one line and not too long, cut where a sentence or a word ends."""
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
