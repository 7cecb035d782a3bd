"""`ServedModel`: a model as turns use it, whatever its server lacks.

Tools go by its wire or as text, reasoning comes by its wire or as tags, and the price is added in the end.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic import JsonValue

from dragoman.dialects.dialect import ANY, NATIVE, Dialect, dialect
from dragoman.dialects.disguise import disguise
from dragoman.dialects.reader import DialectReader, explain
from dragoman.errors import ProviderError
from dragoman.messages.events import Event, MessageEnd
from dragoman.messages.parts import Part, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.messages.usage import Usage
from dragoman.providers.catalog import Traits
from dragoman.providers.tables import NONE
from dragoman.wire.options import merge_options, with_extra, with_tool_choice, without_removed
from dragoman.wire.thinking import Thinking
from dragoman.wire.wire import Model, begins_reply

LAST_RESORT = "xml_tag"  # the dialect of a model of which nothing is known but that it has no calls

# What servers say of a model without calls of its own: Ollama, vLLM, llama.cpp, OpenRouter, LM Studio.
_REFUSES_TOOLS = re.compile(
    r"does(?:n't| not) support (?:tools?|function)|tool choice requires|no endpoints found that support tool"
    r"|tool (?:use|calling)`? is not supported|tools param requires --jinja",
    re.IGNORECASE,
)


class Reader(Protocol):
    """Rewrites the events of a reply, between the wire and whoever listens."""

    lone_end: bool  # it turned out to have begun inside reasoning
    no_end: bool  # it was taken to, but did not

    def feed(self, event: Event) -> Iterable[Event]: ...


@dataclass(slots=True)
class Habits:
    """What is learned of a model from its replies, beside what the catalog says."""

    begins_inside: bool = False  # its replies begin inside reasoning
    unsure: bool = False  # some do, some do not
    tools: str = NATIVE
    spills: str = NONE  # the dialect in which calls slip into its text


class ServedModel:
    """A model as a turn knows it. Satisfies `wire.Model`.

    `fallback` is the dialect for a model whose server turns out to refuse tools; else that is an error.
    """

    def __init__(
        self,
        model: Model,
        traits: Traits,
        *,
        price: Callable[[Usage], Awaitable[float | None]],
        variant: Mapping[str, JsonValue] | None = None,
        fallback: str | None = LAST_RESORT,
    ) -> None:
        self.name = model.name
        self.context = traits.context
        self.traits = traits
        self.prompt = traits.prompt
        self.variant: Mapping[str, JsonValue] = variant or {}
        self._model = model
        self._price = price
        self._fallback = fallback
        self._habits = Habits(traits.reasoning == "inside", tools=traits.tools, spills=traits.spills)

    def __repr__(self) -> str:
        return f"ServedModel({self._model!r}, tools={self._habits.tools!r})"

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        self._model.check_options(self._options(options))

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        """The reply's events. A server that refuses tools before the first event is asked in a dialect."""
        while True:
            began = False
            try:
                async with aclosing(self._read_reply(request, reply)) as batches:
                    async for events in batches:
                        began = began or begins_reply(events)
                        yield events
                return
            except ProviderError as error:
                if began or not self._must_write_calls(request, error):
                    raise

    async def _read_reply(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        language = self._language(request)
        reader = self._reader(language, request, reply)
        async with aclosing(self._model.stream(self._complete(request, language), reply)) as batches:
            async for batch in batches:
                events = batch
                if reader is not None:
                    events = [seen for event in batch for seen in reader.feed(event)]
                if events:
                    yield await self._with_price(events) if isinstance(events[-1], MessageEnd) else events
        if reader is not None:
            self._learn(reader)

    def _complete(self, request: Request, language: Dialect | None) -> Request:
        asked = replace(
            request,
            options=self._options(request.options),
            extra=with_extra({**self.traits.extra}, request.extra),
        )
        asked = with_tool_choice(asked)
        if language is not None:
            asked.messages = tuple(
                RequestMessage(
                    message.role, tuple(_explained(part, language, request) for part in message.parts)
                )
                for message in request.messages
            )
        return asked if language is None or self._calls_as(request) == NATIVE else disguise(asked, language)

    def _options(self, options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """What is asked for, over what the catalog has for this model."""
        return without_removed(merge_options(self.traits.options, self.variant, options))

    async def _with_price(self, events: Sequence[Event]) -> Sequence[Event]:
        *others, end = events
        assert isinstance(end, MessageEnd)
        return [*others, replace(end, usage=replace(end.usage, cost=await self._price(end.usage)))]

    # ── calls as text ─────────────────────────────────────────────────────────────────────────────

    def _language(self, request: Request) -> Dialect | None:
        """What to look for calls in the text with. Where there never were any tools, text is text."""
        if (name := self._calls_as(request)) != NATIVE:
            return dialect(name)
        if self._habits.spills == NONE or not (request.tools or _has_calls(request)):
            return None
        return dialect(self._habits.spills)

    def _calls_as(self, request: Request) -> str:
        """`native`, or the dialect in which this reply is to have its calls."""
        return request.dialect or self._habits.tools

    def _must_write_calls(self, request: Request, error: ProviderError) -> bool:
        """Whether the server says that this model has no calls of its own. From now on it writes them."""
        refused = self._calls_as(request) == NATIVE and _REFUSES_TOOLS.search(error.message)
        if not refused or not request.tools or self._fallback is None or request.dialect is not None:
            return False
        self._habits.tools = self._fallback
        return True

    # ── reasoning as tags ─────────────────────────────────────────────────────────────────────────

    def _reader(self, language: Dialect | None, request: Request, reply: str) -> Reader | None:
        """What finds thoughts in the text, and calls where there may be some."""
        thinking, inside = self.traits.reasoning != "apart", self._habits.begins_inside
        if language is not None:
            return DialectReader(language, request.tools, reply, thinking=thinking, inside=inside)
        return Thinking(inside=inside) if thinking else None

    def _learn(self, reader: Reader) -> None:
        habits = self._habits
        habits.unsure = habits.unsure or reader.no_end
        habits.begins_inside = not habits.unsure and (habits.begins_inside or reader.lone_end)
        if habits.spills == ANY.name and isinstance(reader, DialectReader) and reader.openers:
            habits.spills = ANY.format_of(reader.openers[0])


def _has_calls(request: Request) -> bool:
    return any(isinstance(part, ToolCall) for message in request.messages for part in message.parts)


def _explained(part: Part, language: Dialect, request: Request) -> Part:
    """A call that could not be read, with what was wrong with it in the words of its dialect."""
    if not isinstance(part, ToolCall) or part.raw is None or part.result is None:
        return part
    text = explain(part.raw, language, request.tools)
    return replace(part, result=ToolResult(text)) if text else part
