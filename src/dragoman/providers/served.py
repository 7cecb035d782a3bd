"""Define `ServedModel`: a model as turns use it, which compensates for what its server lacks.

Tools go over its wire or as text, reasoning comes over its wire or as tags, and the price is added at the
end.
"""

from __future__ import annotations

import json
from asyncio import CancelledError
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic import JsonValue

from dragoman.dialects.dialect import ANY, NAMES, NATIVE, Dialect, formats
from dragoman.dialects.reader import DialectReader, Guesser, explain, quotes_of
from dragoman.dialects.told import disguise
from dragoman.errors import BadRequest, ProviderError
from dragoman.messages.events import CallInputStart, Event, MessageEnd, Notice
from dragoman.messages.media import CHAT, IN_WORDS, Modality, is_text, modality
from dragoman.messages.message import File, Part, ToolCall, ToolResult
from dragoman.messages.request import LostReply, OutputSpec, Request, RequestMessage, ToolSpec
from dragoman.messages.usage import Usage
from dragoman.providers.catalog import Traits
from dragoman.providers.catalog_tables import ASK, NONE
from dragoman.providers.media_checks import Others, check_media_message, measured
from dragoman.sentences import sentence
from dragoman.wire.files.file_parts import files_of, without_files
from dragoman.wire.learned import MOST_LESSONS, Learned, in_words, is_broken_file
from dragoman.wire.media.selection import last_said
from dragoman.wire.options import merge_options, with_extra, with_tool_choice, without_removed
from dragoman.wire.thinking import Thinking
from dragoman.wire.wire import Model, begins_reply

UNREADABLE = "which is unreadable"
LAST_RESORT = "xml_tag"  # the dialect of a model of which it is only known that it has no calls


class EventFilter(Protocol):
    """Rewrites the events of a reply, between the wire and the consumer."""

    lone_end: bool  # it turned out to have begun inside reasoning
    no_end: bool  # it was assumed to, but did not

    def feed(self, event: Event) -> Iterable[Event]: ...

    def break_off(self) -> Iterable[Event]:
        """Return what was held back of a reply that broke off."""


@dataclass(slots=True)
class Habits:
    """Lessons from a model's replies, in addition to the catalog."""

    begins_inside: bool = False  # its replies begin inside reasoning
    unsure: bool = False  # some do, some do not
    calls: bool = False  # it has made native calls: its text is text (D6)


class ServedModel:
    """A model as a turn uses it. Satisfies `wire.Model`.

    `fallback` is the dialect for a model whose server turns out to refuse tools. Without it, that is an
    error. `remembered` are earlier lessons, in words, and `remember` stores new ones.
    """

    def __init__(
        self,
        model: Model,
        traits: Traits,
        *,
        price: Callable[[Usage], Awaitable[float | None]],
        variant: Mapping[str, JsonValue] | None = None,
        switches: Mapping[str, bool] | None = None,
        fallback: str | None = LAST_RESORT,
        wire: str = "",
        learned: Learned | None = None,
        remembered: Sequence[str] = (),
        remember: Callable[[Iterable[str]], None] = lambda words: None,
        others: Others = lambda wanted: (),
    ) -> None:
        self.name = model.name
        self.type = traits.type
        self.context = traits.context
        self.traits = traits
        self.prompt = traits.prompt
        self.default_options = traits.options  # of every request, overridden by those that are set
        self.variant: Mapping[str, JsonValue] = variant or {}
        self.switches: Mapping[str, bool] = switches or {}  # of tools, overridden by those of a conversation
        self._model = model
        self._price = price
        self._fallback = fallback
        self._wire = wire
        self._others = others
        self._learned = learned or Learned()
        self._remembered = [*remembered]
        self._remember = remember
        self._habits = Habits(traits.reasoning == "inside")

    def __repr__(self) -> str:
        return f"ServedModel({self._model!r}, tools={self._tools!r})"

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        self._model.check_options(self._options(options))

    async def prepare(self, tools: Sequence[ToolSpec]) -> None:
        """Prepare a locally served model before the first turn."""
        if (prepare := getattr(self._model, "prepare", None)) is not None:  # not all models have one
            await prepare(tools)

    def check_message(self, parts: Sequence[Part], earlier: Sequence[Sequence[Part]] = ()) -> None:
        """Raise BadRequest if the model could not answer this message (M2). `earlier`: the messages before,
        newest first."""
        if self.type == CHAT:
            self.check_files([part for part in parts if isinstance(part, File)])
        else:
            check_media_message(
                self.name,
                self.type,
                takes=self.traits.modalities,
                parts=parts,
                earlier=earlier,
                others=self._others,
            )
            self._check_own([part for part in parts if isinstance(part, File)])

    def check_files(self, files: Sequence[File]) -> None:
        for file in files:
            if not self._takes(kind := modality(file)):
                hearing = self._others("audio-stt")[:1] if kind == "audio" else ()
                instead = (
                    f"have {hearing[0]} write it down first" if hearing else "say in words what is in it"
                )
                raise BadRequest(
                    sentence(
                        "model.not_shown",
                        name=self.name,
                        file=file.name or "this file",
                        media_type=file.media_type,
                        takes=IN_WORDS[kind],
                        instead=instead,
                        kind=kind,
                    )
                )
        self._check_own(files)

    def _check_own(self, files: Sequence[File]) -> None:
        if (check := getattr(self._model, "check_files", None)) is not None:  # not all models have one
            check(files)

    def _takes(self, kind: Modality) -> bool:
        known = self.traits.modalities if self.traits.listed else (kind,)
        return kind == "text" or (kind in known and kind not in self._learned.lacks)

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the reply's events. If a server refuses something before the first event, leave it out and
        ask again."""
        before = self._learned.words
        remembered, self._remembered = self._remembered, []
        if remembered:
            yield [
                Notice(sentence("model.learned_before", name=self.name, lesson=lesson), "learned")
                for lesson in remembered
            ]
        elif lost := self._left_out(request):
            known = in_words(f"drop {', '.join(lost)}")
            yield [Notice(sentence("model.learned", name=self.name, lesson=known), "learned")]
        for _ in range(MOST_LESSONS):
            began, lessons = False, self._learned.lessons
            try:
                async with aclosing(self._read_reply(request, reply)) as batches:
                    async for events in batches:
                        if not began and begins_reply(events):
                            began = True
                            self._remember(self._learned.words - before)
                        yield events
                return
            except ProviderError as error:
                if began:
                    raise
                if (lesson := self._learn_from(error, request)) is not None:
                    yield [Notice(sentence("model.learned", name=self.name, lesson=lesson), "learned")]
                elif self._could_do_without_files(error, request):
                    request = without_files(request, lambda file: not is_text(file), UNREADABLE)
                    yield [
                        Notice(
                            sentence("model.unread_file", name=self.name, error=error.message),
                            "unreadable_file",
                        )
                    ]
                # otherwise it was learned while this request was in progress
                elif self._learned.lessons == lessons:
                    raise
        async with aclosing(self._read_reply(request, reply)) as batches:
            async for events in batches:
                yield events

    def _left_out(self, request: Request) -> Sequence[str]:
        """Return what was set for this turn although its server has refused it before, to report with the
        first request (R9)."""
        left_out = getattr(self._model, "left_out", None)  # not all models have one
        if left_out is None or not request.options or not last_said(request.messages):
            return ()
        asked = replace(request, options=self._options(request.options))
        found: Sequence[str] = left_out(asked, request.options)
        return found

    def _could_do_without_files(self, error: ProviderError, request: Request) -> bool:
        if self.type != CHAT or not is_broken_file(error.message):
            return False
        return not all(map(is_text, files_of(request)))

    async def _read_reply(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        language = self._language(request)
        reader = self._reader(language, request, reply)
        guesser = Guesser(ANY, request.tools, reply, quotes_of(request)) if self._guesses(request) else None
        native = self._calls_as(request) == NATIVE
        asked = self._complete(request, language)
        asked.lost = []
        try:
            async with aclosing(self._model.stream(asked, reply)) as batches:
                async for batch in batches:
                    events = batch
                    if asked.lost:
                        await self._price_lost(asked, request)
                    if native and not self._habits.calls:
                        self._habits.calls = any(isinstance(event, CallInputStart) for event in batch)
                    if reader is not None:
                        events = [seen for event in events for seen in reader.feed(event)]
                    if guesser is not None:
                        events = [seen for event in events for seen in guesser.feed(event)]
                    if events:
                        ends = isinstance(events[-1], MessageEnd)
                        yield await self._with_price(events, request) if ends else events
        # A caller that cancels keeps what came, including text held back.
        except (ProviderError, CancelledError):
            if reader is not None and (held := [*reader.break_off()]):
                yield held
            raise
        finally:
            await self._price_lost(asked, request)
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
        as_text = language is not None and self._calls_as(request) != NATIVE
        if request.output is not None:
            asked = self._with_output(asked, request.output, as_text=as_text)
        if language is not None and as_text:
            asked = disguise(asked, language)
        return self._learned.fit(asked, self._takes) if self.type == CHAT else asked

    def _with_output(self, request: Request, wanted: OutputSpec, *, as_text: bool) -> Request:
        """Add the form of the answer: in words, since not every server that accepts a schema follows it, and
        by the wire's own mode if that allows calls."""
        system = f"{request.system}\n\n{output_prompt(wanted)}".strip()
        if self._learned.no_schema or (as_text and (request.tools or _has_calls(request))):
            return replace(request, system=system)
        options = {**request.options, "response_schema": wanted.schema}
        return replace(request, system=system, options=options)

    def _options(self, options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the requested options, over the catalog's options for this model."""
        return without_removed(merge_options(self.traits.options, self.variant, options))

    async def cost_of(self, usage: Usage) -> float | None:
        """Return what these tokens would cost. None if the price is unknown."""
        return await self._price(usage)

    async def _with_price(self, events: Sequence[Event], request: Request) -> Sequence[Event]:
        *others, end = events
        assert isinstance(end, MessageEnd)
        usage = measured(end.usage, self.type, request)
        return [*others, replace(end, usage=replace(usage, cost=await self.cost_of(usage)))]

    async def _price_lost(self, asked: Request, request: Request) -> None:
        """Pass on, with its price, the usage of lost replies."""
        while asked.lost:
            usage = asked.lost[0].usage
            priced = replace(
                usage, cost=await self.cost_of(usage)
            )  # If this is cancelled, another attempt follows.
            request.lost.append(LostReply(self.name, priced))
            asked.lost.pop(0)

    # ── calls as text ─────────────────────────────────────────────────────────────────────────────

    def _language(self, request: Request) -> Dialect | None:
        """Return the dialect that reads calls from the text. None to read none.

        That is the format the model was told to write. While its server makes no native calls, it is also the
        one its family is known for, and those a user granted (D6).
        """
        told = self._calls_as(request)
        names = [told] if told != NATIVE else []
        was_chosen = told != NATIVE and (request.dialect is not None or self._fallback is None)
        known = self.traits.spills
        if not was_chosen and known != NONE and self._may_write_calls(request):
            names += [known] if known != ASK else []
            names += [name for name in NAMES if request.may_write and request.may_write(name, self.name)]
        return formats(*names) if names else None

    @property
    def reads_text(self) -> bool:
        """Whether its text may contain calls."""
        return self.type == CHAT and self.traits.spills != NONE and not self._habits.calls

    def _may_write_calls(self, request: Request) -> bool:
        """Return whether its text is searched for calls: not without tools, nor after a native call."""
        if self._habits.calls or not (request.tools or _has_calls(request)):
            return False
        return not request.has_called(self.name)

    def _guesses(self, request: Request) -> bool:
        """Return whether text that looks like a call in another format needs approval (D7)."""
        spills = self.traits.spills
        return bool(request.tools) and spills not in (NONE, ANY.name) and self._may_write_calls(request)

    def _calls_as(self, request: Request) -> str:
        """Return `native`, or the dialect in which this reply must write its calls."""
        return request.dialect or self._tools

    @property
    def _tools(self) -> str:
        refused = self._learned.no_tools and self.traits.tools == NATIVE
        return self._fallback if refused and self._fallback is not None else self.traits.tools

    def _learn_from(self, error: ProviderError, request: Request) -> str | None:
        if self.type != CHAT:  # Nothing of its input can be left out.
            request = replace(request, messages=())
        may_write_calls = request.dialect is None and self._tools == NATIVE and self._fallback is not None
        return self._learned.learn(error, request, wire=self._wire, may_write_calls=may_write_calls)

    # ── reasoning as tags ─────────────────────────────────────────────────────────────────────────

    def _reader(self, language: Dialect | None, request: Request, reply: str) -> EventFilter | None:
        """Return what finds reasoning in the text, and calls if there may be some."""
        thinking, inside = self.traits.reasoning != "apart", self._habits.begins_inside
        if language is not None:
            quotes = quotes_of(request)
            return DialectReader(
                language, request.tools, reply, thinking=thinking, inside=inside, quotes=quotes
            )
        return Thinking(inside=inside) if thinking else None

    def _learn(self, reader: EventFilter) -> None:
        habits = self._habits
        habits.unsure = habits.unsure or reader.no_end
        habits.begins_inside = not habits.unsure and (habits.begins_inside or reader.lone_end)


def output_prompt(wanted: OutputSpec) -> str:
    schema = json.dumps(wanted.schema, ensure_ascii=False, separators=(",", ":"))
    return (
        "Your final answer, once no more tools are needed, is one JSON object and nothing else: no words "
        f"before or after it, no code fence. It fits this JSON schema:\n{schema}"
    )


def _has_calls(request: Request) -> bool:
    return any(isinstance(part, ToolCall) for message in request.messages for part in message.parts)


def _explained(part: Part, language: Dialect, request: Request) -> Part:
    """Add to an unreadable call what was wrong with it, in the words of its dialect."""
    if not isinstance(part, ToolCall) or part.raw is None or part.result is None:
        return part
    text = explain(part.raw, language, request.tools)
    return replace(part, result=ToolResult(text)) if text else part
