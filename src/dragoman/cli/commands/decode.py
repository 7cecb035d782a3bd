"""`dragoman decode`: a provider's recorded stream, decoded as a turn would, as one JSON object.

Ids, the finish reason and the token counts are the provider's own, so that they can be found in the stream.
"""

from __future__ import annotations

import sys
from itertools import chain

from pydantic import JsonValue

from dragoman.cli.terminal.text import print_json
from dragoman.errors import ProviderError
from dragoman.messages import events as e
from dragoman.messages.usage import Usage
from dragoman.providers.wires import wire
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.http_client.framing import FRAMINGS, Framing
from dragoman.wire.transport_errors import garbled, is_no_stream, no_event, no_stream
from dragoman.wire.wire import Decoder, Wire


def decode(name: str) -> None:
    protocol = wire(name)  # before anything is read: a wrong name is an error at once
    print_json(report(protocol, sys.stdin.buffer.read()), indent=2)


def report(wire: Wire, stream: bytes) -> dict[str, JsonValue]:
    """Everything in the stream, also where it breaks off: `error` is how."""
    decoder = wire.decoder("msg_decoded")
    events: list[e.Event] = []
    error: ProviderError | None = None
    try:
        _read(decoder, FRAMINGS[ENDPOINTS[wire.name].framing](), stream, events)
    except ProviderError as raised:
        error = raised
    end = next((event for event in events if isinstance(event, e.MessageEnd)), None)
    return {
        "text": "".join(event.text for event in events if isinstance(event, e.TextDelta)),
        "reasoning": "".join(event.text for event in events if isinstance(event, e.ReasoningDelta)),
        "tool_calls": _calls(events),
        "finish": getattr(decoder, "finish_word", None),
        "usage": _counts(wire.name, end.usage) if end is not None else None,
        "error": _report_error(error) if error is not None else None,
    }


def _read(decoder: Decoder, splitter: Framing, stream: bytes, events: list[e.Event]) -> None:
    if is_no_stream(stream):
        raise no_stream(stream)
    framed = False
    for frame in chain(splitter.feed(stream), splitter.end()):
        framed = True
        try:
            for event in decoder.feed(frame):
                events.append(event)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise garbled(frame, error) from error
    if not framed:
        raise no_event(stream)
    events.extend(decoder.end())


def _calls(events: list[e.Event]) -> list[JsonValue]:
    """The calls in order; of one whose arguments are not whole, the text that came of them."""
    calls: dict[str, dict[str, JsonValue]] = {}
    raw: dict[str, str] = {}
    for event in events:
        match event:
            case e.CallInputStart():
                calls[event.call] = {"id": event.provider_id, "name": event.tool, "arguments": None}
                raw[event.call] = ""
            case e.CallInputDelta():
                raw[event.call] += event.text
            case e.CallInputEnd():
                calls[event.call] |= {"name": event.tool, "arguments": event.arguments}
                raw[event.call] = event.raw or raw[event.call]
            case _:
                pass
    return [{**call, "raw": raw[id]} if call["arguments"] is None else call for id, call in calls.items()]


def _counts(wire: str, usage: Usage) -> dict[str, JsonValue]:
    """Anthropic and Amazon count cached tokens beside the others, Gemini thoughts beside the answer."""
    beside = wire in ("anthropic_messages", "bedrock_converse")
    cached = usage.cached + usage.cache_written if beside else 0
    return {
        "input": usage.input - cached,
        "output": usage.output - (usage.reasoning if wire == "gemini" else 0),
        "cache_read": usage.cached,
        "cache_write": usage.cache_written,
        "reasoning": usage.reasoning or None,
    }


def _report_error(error: ProviderError) -> dict[str, JsonValue]:
    return {
        "message": error.message,
        "kind": error.kind,
        "status": error.status,
        "retryable": error.retryable,
        "hint": error.hint,
    }
