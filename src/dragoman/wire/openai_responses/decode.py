"""Decode the event stream of the Responses API. No network, no clock."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import NoReturn, TypeAlias, cast

from pydantic import JsonValue

from dragoman.messages.endings import BROKEN_OFF, reason_of
from dragoman.messages.events import (
    Event,
    FileAdded,
    FilePartial,
    ItemAdded,
    MessageEnd,
    ProviderData,
    TextCited,
)
from dragoman.messages.message import Citation, File
from dragoman.messages.request import FIND_TOOLS
from dragoman.messages.usage import Usage, counted, counts
from dragoman.wire.calls import Calls
from dragoman.wire.http_client.framing import DONE
from dragoman.wire.openai_responses.shapes import (
    FINISH,
    NAME,
    RESPONSE_FIELDS,
    SILENT,
    USAGE_FIELDS,
    WHY_INCOMPLETE,
    Response,
    ResponsesAnnotation,
    ResponsesContent,
    ResponsesEvent,
    ResponsesItem,
    ResponsesTokens,
)
from dragoman.wire.prose import extra_fields, join_all, read_json
from dragoman.wire.provider_errors import provider_error, reports_error
from dragoman.wire.transport_errors import unfinished
from dragoman.wire.wire import Prose

# Describe results of OpenAI's own tools in a line for people, with the sources they found.


TELLING = (
    *("queries", "query", "url", "commands", "command", "code"),
    *("revised_prompt", "name", "server_label"),
)
MOST = 300  # characters of a line


def describe(item: JsonValue) -> str:
    """Return the most informative field of an item: a search query, the first line of code, a tool's name."""
    if not isinstance(item, dict):
        return ""
    action = item.get("action")
    fields = {**item, **action} if isinstance(action, dict) else item
    for name in TELLING:
        match fields.get(name):
            case str() as text if text.strip():
                return text.strip().partition("\n")[0][:MOST]
            case [str(), *_] as texts:
                return " · ".join(map(str, texts))[:MOST]
    return ""


def citation(note: ResponsesAnnotation) -> Citation:
    return Citation(
        note.get("url"),
        note.get("title") or note.get("filename") or note.get("file_id"),
        None,
        note.get("start_index"),
        note.get("end_index"),
        join_all(cast("JsonValue", note)),
    )


class ResponsesDecoder:
    """One reply. `finish_word` is the provider's word for how the reply ended."""

    def __init__(self, reply: str) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        self._seen: set[Hashable] = set()  # the items of which something has come
        self._calls = Calls(reply)
        self._finish = "unknown"
        self._reason: str | None = None
        self._refuses = False
        self._usage: ResponsesTokens = {}
        self.over = False
        self._files = 0  # files that the model has made
        self._annotations: dict[Hashable, list[ResponsesAnnotation]] = {}  # of items that are not done

    def whole(self, body: JsonValue) -> Iterable[Event] | None:
        """Return the events of a response that was not streamed."""
        if not isinstance(body, dict) or not isinstance(body.get("output"), list) or not body.get("status"):
            return None
        return [*self._over({"response": cast("Response", body)})]

    @property
    def usage(self) -> Usage:
        """The usage known so far."""
        return _usage(self._usage)

    def feed(self, frame: bytes) -> Iterable[Event]:
        if frame.startswith(DONE):
            return ()
        event: ResponsesEvent = read_json(frame)
        kind = event.get("type") or ("error" if reports_error(event) else "")
        if read := _READ.get(kind):
            return read(self, event)
        # events of OpenAI's own tools, annotations of the text, and newer types
        return () if kind in SILENT else (_provider_data(event),)

    def end(self) -> Iterator[Event]:
        yield from self._prose.close()
        yield from self._calls.close(cut=self._finish in BROKEN_OFF or self._finish == "unknown")
        if not self.over:
            raise unfinished()
        if len(self._calls) and self._finish in ("stop", "unknown"):
            self._finish = "tool_calls"
        if self._refuses and self._finish in ("stop", "tool_calls", "unknown"):
            self._finish = self._reason = "refusal"
        yield MessageEnd(self._finish, self.usage, reason=reason_of(self._finish, self._reason))

    # ── prose ─────────────────────────────────────────────────────────────────────────────────────

    def _text(self, event: ResponsesEvent) -> Iterable[Event]:
        self._seen.add(_place_of(event))
        events = self._prose.text(event.get("delta") or "")
        chances = event.get("logprobs")
        return (*events, _provider_data({"logprobs": chances})) if chances else events

    def _refusal(self, event: ResponsesEvent) -> Iterable[Event]:
        self._refuses = True
        return self._text(event)

    def _reasoning(self, event: ResponsesEvent) -> Iterator[Event]:
        self._seen.add(_place_of(event))
        yield from self._prose.reasoning(event.get("delta") or "")

    def _summary_part(self, event: ResponsesEvent) -> Iterator[Event]:
        if event.get("summary_index"):  # Each part of a summary is separate reasoning.
            yield from self._prose.close()

    def _message_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        contents = item.get("content") or []
        self._refuses = self._refuses or any(content.get("refusal") for content in contents)
        if place not in self._seen:
            yield from self._prose.text(_text_of(contents))
        whole = [note for content in contents for note in content.get("annotations") or ()]
        if notes := whole or self._annotations.pop(place, []):
            yield TextCited([*map(citation, notes)])  # before its text ends, as in the vendor's own stream
        self._prose.phase = item.get("phase")
        yield from self._prose.close()
        self._prose.phase = None

    def _annotation(self, event: ResponsesEvent) -> Iterator[Event]:
        """Collect a source during the text: the final message lists all of them again."""
        if note := event.get("annotation"):
            self._annotations.setdefault(_place_of(event), []).append(note)
        yield _provider_data(event)

    def _reasoning_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        if place not in self._seen:
            yield from self._prose.reasoning(_text_of(item.get("summary")) or _text_of(item.get("content")))
        # Without its encrypted form or its text, the item is only an ID, and we ask OpenAI to store nothing.
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

    def _text_call_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        """Add a call of a tool that takes a text, as the argument `input`."""
        yield from self._prose.close()
        text = {"input": item.get("input") or ""}
        yield from self._calls.whole(item.get("name") or "", {**text}, id=_call_id(item))

    def _search_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        """Add a tool search that we run, as a call of `find_tools`. One that OpenAI ran is OpenAI's item."""
        if item.get("execution") != "client":
            yield from self._own_item(item)
            return
        yield from self._prose.close()
        given: object = item.get("arguments")
        arguments = read_json(given.encode()) if isinstance(given, str) else given
        query = arguments if isinstance(arguments, dict) else {}
        yield from self._calls.whole(FIND_TOOLS, query, id=_call_id(item))

    # ── items ─────────────────────────────────────────────────────────────────────────────────────

    def _added(self, event: ResponsesEvent) -> Iterator[Event]:
        if event["item"].get("type") == "function_call":
            yield from self._call_added(_place_of(event), event["item"])

    def _done(self, event: ResponsesEvent) -> Iterator[Event]:
        yield from self._item_done(_place_of(event), event["item"])

    def _item_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        """Add an item. Some proxies send items only here, complete. Results of OpenAI's tools go back
        unchanged."""
        if done := _DONE.get(item.get("type", "")):
            yield from done(self, place, item)
            self._seen.add(place)
        else:
            self._seen.add(place)
            yield from self._own_item(item)

    def _own_item(self, item: ResponsesItem) -> Iterator[Event]:
        yield from self._prose.close()
        whole = join_all(cast("JsonValue", item))
        yield _provider_data({"item": item})
        yield ItemAdded(item.get("type") or "item", describe(whole), NAME, whole)

    def _picture_done(self, place: Hashable, item: ResponsesItem) -> Iterator[Event]:
        """Add an image as a file, and the rest of its item for display. Only the file goes back."""
        yield from self._prose.close()
        whole = {**item}
        data, format = whole.pop("result", None), str(whole.get("output_format") or "png")
        yield ItemAdded("image_generation_call", describe(join_all(cast("JsonValue", whole))), NAME)
        if isinstance(data, str) and data:
            self._files += 1
            yield FileAdded(_picture(data, format, self._files))

    def _picture_partial(self, event: ResponsesEvent) -> Iterator[Event]:
        if data := event.get("partial_image_b64"):
            yield FilePartial(_picture(data, event.get("output_format") or "png", 0), self._files)

    # ── how it ended ──────────────────────────────────────────────────────────────────────────────

    def _over(self, event: ResponsesEvent) -> Iterator[Event]:
        response: Response = event.get("response") or {}
        self._usage = counted(response.get("usage"), self._usage)
        if error := response.get("error"):
            raise provider_error(error)
        if not self._seen:  # nothing came in chunks
            for place, item in enumerate(response.get("output") or ()):
                yield from self._item_done(place, item)
        self.over = True
        self.finish_word = response.get("status")
        self._reason = self.finish_word
        self._finish = FINISH.get(self.finish_word or "", "unknown")
        if (why := response.get("incomplete_details")) and (reason := why.get("reason")):
            self._reason, self._finish = reason, WHY_INCOMPLETE.get(reason.lower(), "unknown")
        extra = extra_fields(response, RESPONSE_FIELDS)
        if of_usage := extra_fields(self._usage, USAGE_FIELDS):
            extra["usage"] = of_usage
        if extra:
            yield ProviderData(NAME, extra)

    def _failed(self, event: ResponsesEvent) -> NoReturn:
        response: Response = event.get("response") or {}
        self._usage = counted(response.get("usage"), self._usage)
        report = response.get("error") or event.get("error") or event
        raise provider_error(cast("JsonValue", report))


_Read: TypeAlias = Callable[[ResponsesDecoder, ResponsesEvent], Iterable[Event]]
_ReadItem: TypeAlias = Callable[[ResponsesDecoder, Hashable, ResponsesItem], Iterator[Event]]

_READ: dict[str, _Read] = {
    "response.output_text.delta": ResponsesDecoder._text,
    "response.refusal.delta": ResponsesDecoder._refusal,
    "response.reasoning_text.delta": ResponsesDecoder._reasoning,
    "response.reasoning_summary_text.delta": ResponsesDecoder._reasoning,
    "response.reasoning_summary_part.added": ResponsesDecoder._summary_part,
    "response.function_call_arguments.delta": ResponsesDecoder._arguments,
    "response.function_call_arguments.done": ResponsesDecoder._arguments_done,
    "response.output_text.annotation.added": ResponsesDecoder._annotation,
    "response.output_item.added": ResponsesDecoder._added,
    "response.output_item.done": ResponsesDecoder._done,
    "response.image_generation_call.partial_image": ResponsesDecoder._picture_partial,
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
    "custom_tool_call": ResponsesDecoder._text_call_done,
    "tool_search_call": ResponsesDecoder._search_done,
    "image_generation_call": ResponsesDecoder._picture_done,
}


def _picture(base64: str, format: str, number: int) -> File:
    name = f"image-{number}.{format}" if number else "image"
    return File(f"image/{format}", url=f"data:image/{format};base64,{base64}", name=name)


def _place_of(event: ResponsesEvent) -> Hashable:
    """Return an item's key: its position, or its ID if a proxy sends no position."""
    place = event.get("output_index")
    if place is not None:
        return place
    item = event.get("item")
    return event.get("item_id") if item is None else item.get("id") or item.get("call_id")


def _provider_data(fields: Mapping[str, object]) -> ProviderData:
    data = join_all(cast("JsonValue", fields))
    assert isinstance(data, dict)
    return ProviderData(NAME, data)


def _call_id(item: ResponsesItem) -> str | None:
    return item.get("call_id") or item.get("id")


def _text_of(contents: list[ResponsesContent] | None) -> str:
    return "".join(content.get("text") or content.get("refusal") or "" for content in contents or ())


def _usage(tokens: ResponsesTokens) -> Usage:
    of_input = counts(tokens.get("input_tokens_details"))
    of_output = counts(tokens.get("output_tokens_details"))
    return Usage.claimed(
        tokens.get("input_tokens") or 0,
        tokens.get("output_tokens") or 0,
        cached=of_input.get("cached_tokens") or 0,
        cache_written=of_input.get("cache_write_tokens") or 0,
        reasoning=of_output.get("reasoning_tokens") or 0,
        cost=tokens.get("cost"),
    )
