"""The events of a response in, our events out. No network, no clock."""

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
    Content,
    Happening,
    Item,
    Response,
    Tokens,
)
from dragoman.wire.provider_errors import refusal
from dragoman.wire.transport_errors import unfinished
from dragoman.wire.wire import Prose

BROKEN_OFF = ("length", "filter", "unknown")


class Decoder:
    """One reply. `finish_word` is the provider's own word for how it ended."""

    def __init__(self, reply: str) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        self._told: set[Hashable] = set()  # the items of which something has come
        self._calls = Calls(reply)
        self._finish = "unknown"
        self._usage: Tokens = {}
        self._ended = False

    def feed(self, frame: bytes) -> Iterator[Event]:
        if frame.startswith(DONE):
            return
        happening: Happening = from_json(frame)
        kind = happening.get("type") or ("error" if happening.get("error") else "")
        if read := _READ.get(kind):
            yield from read(self, happening)

    def end(self) -> Iterator[Event]:
        yield from self._prose.close()
        yield from self._calls.close(cut=self._finish in BROKEN_OFF)
        if not self._ended:
            raise unfinished()
        if len(self._calls) and self._finish in ("stop", "unknown"):
            self._finish = "tool_calls"
        yield MessageEnd(self._finish, _usage(self._usage))

    # ── prose ─────────────────────────────────────────────────────────────────────────────────────

    def _text(self, happening: Happening) -> Iterator[Event]:
        self._told.add(_place(happening))
        yield from self._prose.text(happening.get("delta") or "")

    def _reasoning(self, happening: Happening) -> Iterator[Event]:
        self._told.add(_place(happening))
        yield from self._prose.reasoning(happening.get("delta") or "")

    def _summary_part(self, happening: Happening) -> Iterator[Event]:
        if happening.get("summary_index"):  # each part of a summary is a thought of its own
            yield from self._prose.close()

    def _message_done(self, place: Hashable, item: Item) -> Iterator[Event]:
        if place not in self._told:
            yield from self._prose.text(_said(item.get("content")))
        yield from self._prose.close()

    def _reasoning_done(self, place: Hashable, item: Item) -> Iterator[Event]:
        if place not in self._told:
            yield from self._prose.reasoning(_said(item.get("summary")) or _said(item.get("content")))
        # Without its sealed form or its words the item is only a name, and we ask them to keep nothing.
        whole = item.get("encrypted_content") or item.get("content")
        yield from self._prose.close(opaque=cast("JsonValue", item) if whole else None)

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def _call_added(self, place: Hashable, item: Item) -> Iterator[Event]:
        yield from self._prose.close()
        if name := item.get("name"):
            self._told.add(place)
            yield from self._calls.start(place, name, id=_call_id(item))

    def _arguments(self, happening: Happening) -> Iterator[Event]:
        yield from self._calls.piece(index=_place(happening), arguments=happening.get("delta"))

    def _arguments_done(self, happening: Happening) -> Iterator[Event]:
        place = _place(happening)
        if place in self._told and (arguments := happening.get("arguments")):
            yield from self._calls.end(place, arguments)

    def _call_done(self, place: Hashable, item: Item) -> Iterator[Event]:
        if place not in self._told:
            yield from self._prose.close()
            yield from self._calls.piece(index=place, id=_call_id(item), name=item.get("name"))
        if item.get("status") != "incomplete":
            yield from self._calls.end(place, item.get("arguments"))

    # ── items ─────────────────────────────────────────────────────────────────────────────────────

    def _added(self, happening: Happening) -> Iterator[Event]:
        if happening["item"].get("type") == "function_call":
            yield from self._call_added(_place(happening), happening["item"])

    def _done(self, happening: Happening) -> Iterator[Event]:
        yield from self._item_done(_place(happening), happening["item"])

    def _item_done(self, place: Hashable, item: Item) -> Iterator[Event]:
        """Some proxies send items only here, whole; what they did on their side is of no interest."""
        if done := _DONE.get(item.get("type", "")):
            yield from done(self, place, item)
            self._told.add(place)

    # ── how it ended ──────────────────────────────────────────────────────────────────────────────

    def _over(self, happening: Happening) -> Iterator[Event]:
        response: Response = happening.get("response") or {}
        if error := response.get("error"):
            raise refusal(error)
        if not self._told:  # nothing came in pieces
            for place, item in enumerate(response.get("output") or ()):
                yield from self._item_done(place, item)
        self._ended = True
        self.finish_word = response.get("status")
        self._finish = FINISH.get(self.finish_word or "", "unknown")
        if why := response.get("incomplete_details"):
            self._finish = WHY_INCOMPLETE.get(why.get("reason", ""), "unknown")
        self._usage = response.get("usage") or {}

    def _failed(self, happening: Happening) -> NoReturn:
        response: Response = happening.get("response") or {}
        said = response.get("error") or happening.get("error") or happening
        raise refusal(cast("JsonValue", said))


_Read: TypeAlias = Callable[[Decoder, Happening], Iterator[Event]]
_ReadItem: TypeAlias = Callable[[Decoder, Hashable, Item], Iterator[Event]]

_READ: dict[str, _Read] = {
    "response.output_text.delta": Decoder._text,
    "response.refusal.delta": Decoder._text,
    "response.reasoning_text.delta": Decoder._reasoning,
    "response.reasoning_summary_text.delta": Decoder._reasoning,
    "response.reasoning_summary_part.added": Decoder._summary_part,
    "response.function_call_arguments.delta": Decoder._arguments,
    "response.function_call_arguments.done": Decoder._arguments_done,
    "response.output_item.added": Decoder._added,
    "response.output_item.done": Decoder._done,
    "response.completed": Decoder._over,
    "response.incomplete": Decoder._over,
    "response.cancelled": Decoder._over,
    "response.failed": Decoder._failed,
    "response.error": Decoder._failed,
    "error": Decoder._failed,
}

_DONE: dict[str, _ReadItem] = {
    "message": Decoder._message_done,
    "reasoning": Decoder._reasoning_done,
    "function_call": Decoder._call_done,
}


def _place(happening: Happening) -> Hashable:
    """What tells an item from the others: its place, or its name where a proxy leaves that out."""
    place = happening.get("output_index")
    if place is not None:
        return place
    item = happening.get("item")
    return happening.get("item_id") if item is None else item.get("id") or item.get("call_id")


def _call_id(item: Item) -> str | None:
    return item.get("call_id") or item.get("id")


def _said(contents: list[Content] | None) -> str:
    return "".join(content.get("text") or content.get("refusal") or "" for content in contents or ())


def _usage(tokens: Tokens) -> Usage:
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
