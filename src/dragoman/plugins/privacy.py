"""Keep private values from the model: mask them in requests, and restore them for users and tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from pydantic import JsonValue

from dragoman.errors import ConfigError
from dragoman.messages.events import CallInputDelta, CallInputEnd, Event, ItemAdded, TextDelta
from dragoman.messages.media import is_text, text_inside, text_of
from dragoman.messages.message import File, Part, Reasoning, Summary, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.redaction import spellings
from dragoman.turn.plugin import PlannedCall, Plugin
from dragoman.turn.view import TurnView

J = TypeVar("J", bound=JsonValue)


class Privacy(Plugin):
    """`Privacy({"phone": "+43 660 1234"})`: the model sees `[[phone]]`, and users and tools get the number.

    Masks the whole request as the other plugins left it: messages with text attachments, calls and results,
    tools, the system prompt, the answer's schema, and options. A conversation's setting `private` adds
    fields.

    In a reply, values replace masks before any of it is shown or stored. Reasoning stays unchanged, because
    it can be signed.
    """

    comes_last = True

    def __init__(self, fields: Mapping[str, str] | None = None) -> None:
        self.fields = dict(fields or {})
        mask_of(self.fields)  # raises ConfigError for an invalid field

    async def system_prompt(self, text: str, turn: TurnView) -> str:
        mask = self._mask(turn)
        if not mask.names:
            return text
        names = ", ".join(mask.names)
        rule = f"Some private values are replaced by {names}. Use these words as if they were the values."
        return f"{text}\n\n{rule}" if text else rule

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        mask = self._mask(turn)
        if not mask.names:
            return
        request.system = mask.hide(request.system)
        request.tools = tuple(_masked_tool(mask, spec) for spec in request.tools)
        if request.output is not None:
            request.output = replace(request.output, schema=_deep(request.output.schema, mask.hide))
        request.options = _deep(request.options, mask.hide)
        request.extra = _deep(request.extra, mask.hide)
        request.filter_reply(Unmasked(mask, as_json=request.output is not None))
        messages = []
        for message in request.messages:
            parts = [_masked(mask, await _with_texts(mask, part, turn)) for part in message.parts]
            messages.append(RequestMessage(message.role, tuple(parts)))
        request.messages = tuple(messages)

    async def on_side_request(self, request: Request, turn: TurnView) -> None:
        await self.on_before_request(request, turn)

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        mask = self._mask(turn)
        if mask.names:
            call.arguments = _deep(call.arguments, mask.show)

    def _mask(self, turn: TurnView) -> Mask:
        own = turn.settings.get("private")
        if not isinstance(own, dict):
            return mask_of(self.fields)
        return mask_of({**self.fields, **{name: str(value) for name, value in own.items()}})


class Mask:
    """Private values and their masks."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        texts: list[object] = [*fields, *fields.values()]
        if not all(isinstance(one, str) and one.strip() for one in texts):
            raise ConfigError("privacy: each field needs a name and a value.")
        self._values = {f"[[{name}]]": value for name, value in fields.items()}
        self._words = {spelled: word for word, value in self._values.items() for spelled in spellings(value)}
        self._hidden, self._shown = _any_of(self._words), _any_of(self._values)

    @property
    def names(self) -> list[str]:
        return list(self._values)

    @property
    def longest(self) -> int:
        return max(map(len, self._values), default=0)

    def begins_in(self, text: str) -> int:
        """Return the index where an incomplete mask begins at the end of a text. Without one, return the
        text's length."""
        for place in range(max(0, len(text) - self.longest), len(text)):
            rest = text[place:]
            if any(word.startswith(rest) and word != rest for word in self._values):
                return place
        return len(text)

    def hide(self, text: str) -> str:
        return self._hidden.sub(lambda found: self._words[found[0]], text)

    def show(self, text: str) -> str:
        return self._shown.sub(lambda found: self._values[found[0]], text)

    def show_in_json(self, text: str) -> str:
        """Restore values in JSON text, where a value is inside a string."""
        return self._shown.sub(
            lambda found: json.dumps(self._values[found[0]], ensure_ascii=False)[1:-1], text
        )


class Unmasked:
    """Replaces masks in the events of one reply by their values, even if a mask is split between chunks. A
    possible beginning of a mask is held back until the rest arrives."""

    def __init__(self, mask: Mask, *, as_json: bool) -> None:
        self._mask = mask
        self._as_json = as_json  # whether the reply's text is a typed JSON value
        self._held: TextDelta | CallInputDelta | None = None

    def __call__(self, event: Event | None) -> list[Event]:
        if isinstance(event, TextDelta | CallInputDelta):
            return self._pieces(event)
        rest: list[Event] = [] if self._held is None else [self._held]
        self._held = None
        match event:
            case None:
                return rest
            case CallInputEnd():
                raw = self._mask.show_in_json(event.raw) if event.raw else event.raw
                arguments = _deep(event.arguments, self._mask.show)
                return [*rest, replace(event, arguments=arguments, raw=raw)]
            case ItemAdded():
                return [*rest, replace(event, text=self._mask.show(event.text))]
            case _:
                return [*rest, event]

    def _pieces(self, event: TextDelta | CallInputDelta) -> list[Event]:
        held, self._held, before = self._held, None, list[Event]()
        if held is not None and _of(held) == _of(event):
            event = replace(event, text=held.text + event.text)
        elif held is not None:
            before.append(held)  # The held text was not a mask.
        cut = self._mask.begins_in(event.text)
        if cut < len(event.text):
            self._held = replace(event, text=event.text[cut:])
        in_json = self._as_json or isinstance(event, CallInputDelta)
        show = self._mask.show_in_json if in_json else self._mask.show
        shown = show(event.text[:cut])
        return [*before, replace(event, text=shown)] if shown else before


def _of(piece: TextDelta | CallInputDelta) -> str | None:
    """Return the call that a chunk belongs to, or None for text."""
    return piece.call if isinstance(piece, CallInputDelta) else None


def mask_of(fields: Mapping[str, str]) -> Mask:
    return _cached(tuple(fields.items()))


@lru_cache(64)
def _cached(fields: tuple[tuple[str, str], ...]) -> Mask:
    return Mask(dict(fields))


async def _with_texts(mask: Mask, part: Part, turn: TurnView) -> Part:
    """Replace a text file that contains a private value by its text, which is then masked. Other files
    stay."""
    if isinstance(part, File):
        text = await _private_text(mask, part, turn)
        return part if text is None else Text(text)
    if not isinstance(part, ToolCall) or part.result is None or not part.result.attachments:
        return part
    result = part.result
    found = [(file, await _private_text(mask, file, turn)) for file in result.attachments]
    files = tuple(file for file, text in found if text is None)
    told = "\n\n".join([result.text, *(text for _, text in found if text is not None)])
    return replace(part, result=replace(result, text=told, attachments=files))


async def _private_text(mask: Mask, file: File, turn: TurnView) -> str | None:
    """Return the content of a text file, or None if it contains nothing private."""
    if not is_text(file):
        return None
    if file.blob is not None:
        text = text_of(await turn.read_file(file.blob))
    else:
        text = text_inside(file.url or "") or ""
    return None if mask.hide(text) == text else f"{file.name or 'A file'}:\n{text}"


def _masked(mask: Mask, part: Part) -> Part:
    match part:
        case Text():
            hidden = mask.hide(part.text)  # Citations refer to positions in the unmasked text.
            return part if hidden == part.text else replace(part, text=hidden, citations=())
        case Summary():
            return replace(part, text=mask.hide(part.text))
        case Reasoning():
            # Signed reasoning must be returned byte for byte. The model wrote it from masked text anyway.
            return part if part.signature or part.opaque else replace(part, text=mask.hide(part.text))
        case ToolCall():
            return _masked_call(mask, part)
        case File():
            return _masked_file(mask, part)
        case _:
            return part


def _masked_file(mask: Mask, file: File) -> File:
    """Mask the file's name, and its address unless that is a data URL."""
    url = file.url if file.url is None or file.url.startswith("data:") else mask.hide(file.url)
    return replace(file, name=mask.hide(file.name) if file.name else None, url=url)


def _masked_call(mask: Mask, call: ToolCall) -> ToolCall:
    result = call.result
    if result is not None:
        note = mask.hide(result.note) if result.note else None
        named = tuple(_masked_file(mask, file) for file in result.attachments)
        result = replace(
            result,
            text=mask.hide(result.text),
            value=_deep(result.value, mask.hide),
            note=note,
            attachments=named,
        )
    raw = mask.hide(call.raw) if call.raw else call.raw
    return replace(call, arguments=_deep(call.arguments, mask.hide), raw=raw, original=None, result=result)


def _masked_tool(mask: Mask, spec: ToolSpec) -> ToolSpec:
    examples = tuple(_deep(example, mask.hide) for example in spec.examples)
    parameters = _deep(spec.parameters, mask.hide)
    return replace(spec, description=mask.hide(spec.description), parameters=parameters, examples=examples)


def _deep(value: J, change: Callable[[str], str]) -> J:
    """Return a JSON value with `change` applied to every string in it."""
    if isinstance(value, str):
        return change(value)  # type: ignore[return-value]  # a text for a text
    if isinstance(value, dict):
        return {change(key): _deep(item, change) for key, item in value.items()}  # type: ignore[return-value]
    if isinstance(value, list):
        return [_deep(item, change) for item in value]  # type: ignore[return-value]
    return value


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Match longer words first, so that a value that contains another is found whole."""
    ordered = sorted(words, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
