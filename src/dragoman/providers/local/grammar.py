"""Grammars for the arguments of a call, in the notation of llama.cpp.

So small a model writes what its examples say rather than what it was asked. Where the examples take a text
from their request, the grammar has nothing but what stands in this request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from pydantic import JsonValue

from dragoman.providers.local.examples import ToolExample

WORDS = 80  # of a request that can be copied from: its last ones
CONSTANTS = 3  # texts that examples may use beside those of their request, such as `.` for a path
OPENING, CLOSING = "\"'“”‘’`([{<", "\"'“”‘’`)]}>.,;:!?"  # marks around a word

_JSON = r"""
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" (string ": " value (", " string ": " value)*)? "}"
array ::= "[" (value (", " value)*)? "]"
string ::= "\"" char* "\""
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,16})?
"""


def arguments_grammar(schema: dict[str, JsonValue], examples: Sequence[ToolExample], request: str) -> str:
    """The grammar. Its root begins with a space: it is what follows a colon."""
    rules = _Rules(schema, request)
    given = [(one.request, one.arguments) for one in examples if one.arguments is not None]
    root = rules.of(schema, given)
    return "\n".join([f'root ::= " " {root}', *rules.lines, _JSON.strip()])


class _Rules:
    """The rules made so far. `of` gives what stands for a schema."""

    def __init__(self, schema: dict[str, JsonValue], request: str) -> None:
        self.lines: list[str] = []
        self._schema = schema
        self._request = request
        self._depth = 0

    def of(self, schema: Any, given: list[tuple[str, Any]], *, needed: bool = True) -> str:
        """`given` are the values of examples at this place, each with its request.

        Nothing comes back where the request has no such thing, and none is needed.
        """
        schema = self._resolved(schema)
        if "const" in schema or "enum" in schema:
            return _either(json.dumps(one) for one in schema.get("enum", [schema.get("const")]))
        match schema.get("type"):
            case "object" if schema.get("properties"):
                return self._object(schema, given)
            case "array" if isinstance(schema.get("items"), dict):
                inner = [
                    (request, one) for request, value in given if isinstance(value, list) for one in value
                ]
                item = self._named(self.of(schema["items"], inner))
                return f'"[" {item} (", " {item})* "]"'
            case "string":
                return self._text(given, needed)
            case "integer" | "number" | "object" | "array" as kind:
                return str(kind)
            case "boolean":
                return '("true" | "false")'
            case "null":
                return '"null"'
            case _:
                return "value"

    def _resolved(self, schema: Any) -> dict[str, Any]:
        """What a reference means; of several, the first that is not nothing."""
        self._depth += 1
        for _ in range(20):
            if not isinstance(schema, dict) or self._depth > 200:  # a schema that holds itself
                return {}
            if reference := schema.get("$ref"):
                name = str(reference).rpartition("/")[2]
                defined: Any = self._schema.get("$defs") or {}
                schema = defined.get(name, {})
            elif ways := schema.get("anyOf") or schema.get("oneOf"):
                schema = next((way for way in ways if way.get("type") != "null"), {})
            else:
                return schema
        return {}

    def _object(self, schema: dict[str, Any], given: list[tuple[str, Any]]) -> str:
        """Its members in the order of the schema: those that are required, and those that examples use."""
        values = [(request, value) for request, value in given if isinstance(value, dict)]
        required = schema.get("required") or ()
        members: list[tuple[str, bool]] = []
        for name, of in schema["properties"].items():
            used = [(request, value[name]) for request, value in values if name in value]
            if name not in required and not used:
                continue
            if value := self.of(of, used, needed=name in required):
                always = name in required or len(used) == len(values)
                members.append((f"{json.dumps(json.dumps(name) + ': ')} {value}", always))
        return f'"{{" {_members(members)} "}}"'

    def _text(self, given: list[tuple[str, Any]], needed: bool) -> str:
        texts = [(request, value) for request, value in given if isinstance(value, str)]
        copied = [value for request, value in texts if value in request]
        others = sorted({value for request, value in texts if value not in request})
        if len(copied) < 2 or len(others) > CONSTANTS:
            return "string"
        found = self._like(copied, needed)
        constants = [json.dumps(one, ensure_ascii=False) for one in others]
        return _either(constants, *([found] if found else [])) if constants or found else ""

    def _like(self, copied: list[str], needed: bool) -> str:
        """What of the request is like these: one word where they are, with the marks that all have."""
        if any(" " in one for one in copied):
            return self._spans()
        marks = set.intersection(*({mark for mark in one if not mark.isalnum()} for one in copied))
        words = _bare_words(self._request)
        fitting = [word for word in words if marks <= set(word)]
        if not fitting and not needed:
            return ""
        return _either(json.dumps(word, ensure_ascii=False) for word in dict.fromkeys(fitting or words))

    def _spans(self) -> str:
        """Every run of words of the request: from where one begins to where one ends, marks off or on."""
        begins, ends = _edges(self._request)
        if not begins:
            return "string"
        cuts = sorted({*begins, *ends})
        if not any(line.startswith("at") for line in self.lines):
            for at, following in pairwise(cuts):
                piece = json.dumps(self._request[at:following], ensure_ascii=False)[1:-1]
                after = f"at{following}?" if following in ends else f"at{following}"
                self.lines.append(f"at{at} ::= {json.dumps(piece, ensure_ascii=False)} {after}")
            self.lines.append(f'at{cuts[-1]} ::= ""')
        starts = " | ".join(f"at{at}" for at in sorted(begins))
        return f'"\\"" ({starts}) "\\""'

    def _named(self, rule: str) -> str:
        name = f"item{len(self.lines)}"
        self.lines.append(f"{name} ::= {rule}")
        return name


def _words(request: str) -> Iterator[tuple[int, str, str]]:
    """Where each word begins, the word, and what is left of it without the marks around it."""
    for word in list(re.finditer(r"\S+", request))[-WORDS:]:
        bare = word[0].lstrip(OPENING).rstrip(CLOSING)
        if bare:
            yield word.start(), word[0], bare


def _bare_words(request: str) -> list[str]:
    return [bare for _, _, bare in _words(request)] or [request]


def _edges(request: str) -> tuple[set[int], set[int]]:
    """Where words begin and where they end, with the marks around them and without."""
    begins: set[int] = set()
    ends: set[int] = set()
    for start, word, bare in _words(request):
        at = start + word.index(bare)
        begins |= {start, at}
        ends |= {at + len(bare)}
        if word[-1] in ")]}>.":  # else the mark is the sentence's, not the text's
            ends.add(start + len(word))
    return begins, ends


def _members(members: list[tuple[str, bool]]) -> str:
    """In this order, some of them left out: what comes first has no comma before it."""
    if not members:
        return '""'
    (first, always), rest = members[0], members[1:]
    tail = " ".join(f'(", " {one})' if must else f'(", " {one})?' for one, must in rest)
    if always:
        return f"{first} {tail}".rstrip()
    return f"({first} {tail} | {_members(rest)})" if rest else f"({first})?"


def _either(texts: Iterable[str], *rules: str) -> str:
    return f"({' | '.join([*(json.dumps(text, ensure_ascii=False) for text in texts), *rules])})"
