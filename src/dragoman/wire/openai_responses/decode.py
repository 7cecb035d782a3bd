"""Decodes the event stream of the Responses API. No network, no clock."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import NoReturn, TypeAlias, cast

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.messages.events import Event, MessageEnd
from dragoman.messages.usage import Usage
from dragoman.wire.calls import Calls
from dragoman.wire.openai_responses.shapes import (
    DONE,
    FINISH,
    NAME,
    WHY_INCOMPLETE,
    Response,
    ResponsesContent,
    ResponsesEvent,
    ResponsesItem,
    ResponsesTokens,
)
from dragoman.wire.provider_errors import provider_error
from dragoman.wire.transport_errors import unfinished
from dragoman.wire.wire import Prose

BROKEN_OFF = ("length", "filter", "unknown")


class ResponsesDecoder:
    """One reply. `finish_word` is the provider's own word for how it ended."""

    def __init__(self, reply: str) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        self._seen: set[Hashable] = set()  # the items of which something has come
        self._calls = Calls(reply)
        self._finish = "unknown"
        self._usage: ResponsesTokens = {}
        self._ended = False

    def feed(self, frame: bytes) -> Iterator[Event]:
        if frame.startswith(DONE):
            return
        event: ResponsesEvent = from_json(frame)
        kind = event.get("type") or ("error" if event.get("error") else "")
        if read := _READ.get(kind):
            yield from read(self, event)

    def end(self) -> Iterator[Event]:
        yield from self._prose.close()
        yield from self._calls.close(cut=self._finish in BROKEN_OFF)
        if not self._ended:
            raise unfinished()
        if len(self._calls) and self._finish in ("stop", "unknown"):
            self._finish = "tool_calls"
        yield MessageEnd(self._finish, _usage(self._usage))

    # ── prose ─────────────────────────────────────────────────────────────────────────────────────

    def _text(self, event: ResponsesEvent) -> Iterator[Event]:
        self._seen.add(_place_of(event))
        yield from self._prose.text(event.get("delta") or "")

    def _reasoning(self, event: ResponsesEvent) -> Iterator[Event]:
        self._seen.add(_place_of(event))
        yield from self._prose.reasoning(event.get("delta") or "")

    def _summary_part(self, event: ResponsesEvent) -> Iterator[Event]:
        if event.get("summary_index"):  # each part of a summary is a thought of its own
            yield from self._prose.close()

    def _message_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        if place not in self._seen:
            yield from self._prose.text(_text_of(item.get("content")))
        yield from self._prose.close()

    def _reasoning_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        if place not in self._seen:
            yield from self._prose.reasoning(_text_of(item.get("summary")) or _text_of(item.get("content")))
        # Without its encrypted form or its words the item is only a name, and we ask them to keep nothing.
        whole = item.get("encrypted_content") or item.get("content")
        yield from self._prose.close(opaque=cast("JsonValue", item) if whole else None)

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def _call_added(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        yield from self._prose.close()
        if name := item.get("name"):
            self._seen.add(place)
            yield from self._calls.start(place, name, id=_call_id(item))

    def _arguments(self, event: ResponsesEvent) -> Iterator[Event]:
        yield from self._calls.piece(index=_place_of(event), arguments=event.get("delta"))

    def _arguments_done(self, event: ResponsesEvent) -> Iterator[Event]:
        place = _place_of(event)
        if place in self._seen and (arguments := event.get("arguments")):
            yield from self._calls.end(place, arguments)

    def _call_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        if place not in self._seen:
            yield from self._prose.close()
            yield from self._calls.piece(index=place, id=_call_id(item), name=item.get("name"))
        if item.get("status") != "incomplete":
            yield from self._calls.end(place, item.get("arguments"))

    # ── items ─────────────────────────────────────────────────────────────────────────────────────

    def _added(self, event: ResponsesEvent) -> Iterator[Event]:
        if event["item"].get("type") == "function_call":
            yield from self._call_added(_place_of(event), event["item"])

    def _done(self, event: ResponsesEvent) -> Iterator[Event]:
        yield from self._item_done(_place_of(event), event["item"])

    def _item_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        """Some proxies send items only here, whole; what they did on their side is of no interest."""
        if done := _DONE.get(item.get("type", "")):
            yield from done(self, place, item)
            self._seen.add(place)

    # ── how it ended ──────────────────────────────────────────────────────────────────────────────

    def _over(self, event: ResponsesEvent) -> Iterator[Event]:
        response: Response = event.get("response") or {}
        if error := response.get("error"):
            raise provider_error(error)
        if not self._seen:  # nothing came in pieces
            for place, item in enumerate(response.get("output") or ()):
                yield from self._item_done(place, item)
        self._ended = True
        self.finish_word = response.get("status")
        self._finish = FINISH.get(self.finish_word or "", "unknown")
        if why := response.get("incomplete_details"):
            self._finish = WHY_INCOMPLETE.get(why.get("reason", ""), "unknown")
        self._usage = response.get("usage") or {}

    def _failed(self, event: ResponsesEvent) -> NoReturn:
        response: Response = event.get("response") or {}
        report = response.get("error") or event.get("error") or event
        raise provider_error(cast("JsonValue", report))


_Read: TypeAlias = Callable[[ResponsesDecoder, ResponsesEvent], Iterator[Event]]
_ReadItem: TypeAlias = Callable[[ResponsesDecoder, Hashable, ResponsesItem], Iterator[Event]]

_READ: dict[str, _Read] = {
    "response.output_text.delta": ResponsesDecoder._text,
    "response.refusal.delta": ResponsesDecoder._text,
    "response.reasoning_text.delta": ResponsesDecoder._reasoning,
    "response.reasoning_summary_text.delta": ResponsesDecoder._reasoning,
    "response.reasoning_summary_part.added": ResponsesDecoder._summary_part,
    "response.function_call_arguments.delta": ResponsesDecoder._arguments,
    "response.function_call_arguments.done": ResponsesDecoder._arguments_done,
    "response.output_item.added": ResponsesDecoder._added,
    "response.output_item.done": ResponsesDecoder._done,
    "response.completed": ResponsesDecoder._over,
    "response.incomplete": ResponsesDecoder._over,
    "response.cancelled": ResponsesDecoder._over,
    "response.failed": ResponsesDecoder._failed,
    "response.error": ResponsesDecoder._failed,
    "error": ResponsesDecoder._failed,
}

_DONE: dict[str, _ReadItem] = {
    "message": ResponsesDecoder._message_done,
    "reasoning": ResponsesDecoder._reasoning_done,
    "function_call": ResponsesDecoder._call_done,
}


def _place_of(event: ResponsesEvent) -> Hashable:
    """What identifies an item: its place, or its name where a proxy sends no place."""
    place = event.get("output_index")
    if place is not None:
        return place
    item = event.get("item")
    return event.get("item_id") if item is None else item.get("id") or item.get("call_id")


def _call_id(item: ResponsesItem) -> str | None:
    return item.get("call_id") or item.get("id")


def _text_of(contents: list[ResponsesContent] | None) -> str:
    return "".join(content.get("text") or content.get("refusal") or "" for content in contents or ())


def _usage(tokens: ResponsesTokens) -> Usage:
    of_input = tokens.get("input_tokens_details") or {}
    of_output = tokens.get("output_tokens_details") or {}
    return Usage(
        tokens.get("input_tokens") or 0,
        tokens.get("output_tokens") or 0,
        cached=of_input.get("cached_tokens") or 0,
        cache_written=of_input.get("cache_write_tokens") or 0,
        reasoning=of_output.get("reasoning_tokens") or 0,
        cost=tokens.get("cost"),
    )
