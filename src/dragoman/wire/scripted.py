"""Play a script as a model: for tests, demonstrations, and for trying Dragoman without a key."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.errors import ConfigError, ProviderError
from dragoman.messages import events as e
from dragoman.messages.events import StepRetry
from dragoman.messages.fold import Draft
from dragoman.messages.ids import new_id
from dragoman.messages.media import CHAT, ModelType
from dragoman.messages.message import File, Message
from dragoman.messages.request import Request
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence
from dragoman.wire.wire import Model, Prose, call_id


@dataclass(slots=True, frozen=True)
class ScriptedCall:
    tool: str
    arguments: dict[str, JsonValue] | str  # A string is sent unchanged, even if it is not JSON.


@dataclass(slots=True, frozen=True)
class Line:
    """One reply: its reasoning, its text and its calls, in this order."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    thinks: str = ""
    finish: str | None = None
    usage: Usage = Usage(input=10, output=5)
    error: Exception | None = None  # raised after everything else was sent
    waits: float = 0.0  # seconds before each chunk
    files: tuple[File, ...] = ()  # files that it makes, after its text
    partials: tuple[File, ...] = ()  # previews of the first of them

    def __add__(self, other: Line) -> Line:
        """Join two lines into one reply."""
        return Line(
            self.text + other.text,
            self.calls + other.calls,
            self.thinks + other.thinks,
            other.finish or self.finish,
            self.usage,
            other.error or self.error,
            max(self.waits, other.waits),
            self.files + other.files,
            self.partials + other.partials,
        )


Script: TypeAlias = Sequence[Line] | Callable[[Request], Line]


def says(text: str, *, finish: str | None = None, waits: float = 0.0, usage: Usage | None = None) -> Line:
    return Line(text, finish=finish, waits=waits, usage=usage or Usage(input=10, output=5))


def thinks(text: str) -> Line:
    return Line(thinks=text)


def calls(tool: str, **arguments: JsonValue) -> Line:
    return Line(calls=(ScriptedCall(tool, arguments),))


def calls_with(tool: str, arguments: str) -> Line:
    """Return a call whose argument text is exactly this."""
    return Line(calls=(ScriptedCall(tool, arguments),))


def makes(
    data: bytes, media_type: str = "image/png", *, name: str | None = None, partials: Sequence[bytes] = ()
) -> Line:
    """Return a line that makes an image or audio. `partials` are its previews."""
    file = _file(data, media_type, name or f"made.{media_type.rpartition('/')[2]}")
    return Line(files=(file,), partials=tuple(_file(one, media_type, "partial") for one in partials))


def fails(error: Exception | str, *, after: str = "") -> Line:
    """Return a line that breaks off, after some text if given."""
    return Line(after, error=error if isinstance(error, Exception) else ProviderError(error))


def _file(data: bytes, media_type: str, name: str) -> File:
    return File(media_type, url=f"data:{media_type};base64,{b64encode(data).decode('ascii')}", name=name)


class ScriptedModel:
    """Answers with the next line of its script. If the script is a function, it receives the request."""

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted/model",
        piece: int = 8,
        context: int | None = None,
        type: ModelType = CHAT,
    ) -> None:
        self.name = name
        self.type = type
        self.context = context
        self.variant: dict[str, JsonValue] = {}
        self.requests: list[Request] = []
        self._script = script
        self._piece = piece

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        """Accept every option and ignore it."""

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[e.Event], None]:
        self.requests.append(request)
        line: object = self._line(request)
        if not isinstance(line, Line):
            raise ConfigError(sentence("script.no_reply", line=line))
        for event in self._events(line, reply):
            if line.waits:
                await asyncio.sleep(line.waits)
            yield (event,)
        if line.error is not None:
            raise line.error
        yield (e.MessageEnd(line.finish or ("tool_calls" if line.calls else "stop"), line.usage),)

    def _line(self, request: Request) -> Line:
        if callable(self._script):
            return self._script(request)
        if len(self.requests) > len(self._script):
            raise ProviderError(
                f"The script has {len(self._script)} lines, and this is request {len(self.requests)}."
            )
        return self._script[len(self.requests) - 1]

    def _events(self, line: Line, reply: str) -> Iterator[e.Event]:
        prose = Prose("scripted")
        for piece in self._pieces(line.thinks):
            yield from prose.reasoning(piece)
        for piece in self._pieces(line.text):
            yield from prose.text(piece)
        yield from prose.close()
        yield from (e.FilePartial(file) for file in line.partials)
        yield from (e.FileAdded(file) for file in line.files)
        for place, call in enumerate(line.calls):
            id = call_id(reply, place)
            raw = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            yield e.CallInputStart(id, call.tool, provider_id=f"scripted_{place}")
            for piece in self._pieces(raw):
                yield e.CallInputDelta(id, piece)
            given = None if isinstance(call.arguments, str) else call.arguments
            yield e.CallInputEnd(id, call.tool, given, raw if given is None else None)

    def _pieces(self, text: str) -> Iterator[str]:
        return (text[at : at + self._piece] for at in range(0, len(text), self._piece))


# Collect a whole reply: for requests outside a conversation, such as titles and summaries.


async def collect_reply(
    model: Model,
    request: Request,
    conversation: str = "",
    *,
    on_retry: Callable[[StepRetry], None] | None = None,
) -> Message:
    """Return the reply as a message. Nothing of it is stored or shown. `on_retry` is called for retries."""
    draft = Draft(Message(new_id("msg"), conversation, None, "assistant", (), model=model.name))
    async with aclosing(model.stream(request, draft.id)) as replies:
        async for events in replies:
            for event in events:
                if on_retry is not None and isinstance(event, StepRetry):
                    on_retry(event)
                for one in request.read_reply(event) if request.filters else (event,):
                    draft.apply(one)
    return draft.message
