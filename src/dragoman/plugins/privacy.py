"""Keeps what is private from the model: masked in every request, real again when a tool runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from pydantic import JsonValue

from dragoman.errors import ConfigError
from dragoman.messages.parts import File, Part, Reasoning, Summary, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.turn.plugin import PlannedCall, Plugin
from dragoman.turn.view import TurnView

J = TypeVar("J", bound=JsonValue)


class Privacy(Plugin):
    """`Privacy({"phone": "+43 660 1234"})`: the model sees `[[phone]]`, tools get the number.

    Masks the whole request: what people said, what the model said, calls and results, the system prompt.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        if not all(name.strip() and value for name, value in fields.items()):
            raise ConfigError("privacy: each field needs a name and a value")
        self._values = {f"[[{name}]]": value for name, value in fields.items()}
        self._masks = {spelled: mask for mask, value in self._values.items() for spelled in _spellings(value)}
        self._private, self._masked_ones = _any_of(self._masks), _any_of(self._values)

    async def system_prompt(self, text: str, turn: TurnView) -> str:
        if not self._values:
            return text
        names = ", ".join(self._values)
        rule = f"Some private values are replaced by {names}. Use these words as if they were the values."
        return f"{text}\n\n{rule}" if text else rule

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        request.system = self.mask(request.system)
        request.messages = tuple(
            RequestMessage(said.role, tuple(self._masked(part) for part in said.parts))
            for said in request.messages
        )

    async def on_side_request(self, request: Request, turn: TurnView) -> None:
        await self.on_before_request(request, turn)

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        call.arguments = _deep(call.arguments, self.unmask)

    def mask(self, text: str) -> str:
        return self._private.sub(lambda found: self._masks[found[0]], text)

    def unmask(self, text: str) -> str:
        return self._masked_ones.sub(lambda found: self._values[found[0]], text)

    def _masked(self, part: Part) -> Part:
        match part:
            case Text() | Summary():
                return replace(part, text=self.mask(part.text))
            case Reasoning():
                # signed reasoning goes back byte for byte: it was written from masked text anyway
                return part if part.signature or part.opaque else replace(part, text=self.mask(part.text))
            case ToolCall():
                return self._masked_call(part)
            case File():
                return replace(part, name=self.mask(part.name)) if part.name else part
            case _:
                return part

    def _masked_call(self, call: ToolCall) -> ToolCall:
        result = call.result
        if result is not None:
            note = self.mask(result.note) if result.note else None
            result = replace(
                result, text=self.mask(result.text), value=_deep(result.value, self.mask), note=note
            )
        raw = self.mask(call.raw) if call.raw else call.raw
        return replace(
            call, arguments=_deep(call.arguments, self.mask), raw=raw, original=None, result=result
        )


def _deep(value: J, change: Callable[[str], str]) -> J:
    """The same JSON with every text in it changed."""
    if isinstance(value, str):
        return change(value)  # type: ignore[return-value]  # a text for a text
    if isinstance(value, dict):
        return {change(key): _deep(item, change) for key, item in value.items()}  # type: ignore[return-value]
    if isinstance(value, list):
        return [_deep(item, change) for item in value]  # type: ignore[return-value]
    return value


def _spellings(value: str) -> set[str]:
    """The value as it is, and as it stands in JSON, and in JSON inside of JSON: results are often that."""
    spelled = {value}
    for _ in range(2):
        spelled |= {json.dumps(one, ensure_ascii=ascii)[1:-1] for one in spelled for ascii in (True, False)}
    return spelled


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """The longest first, so that a value which contains another is found whole."""
    ordered = sorted(words, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
