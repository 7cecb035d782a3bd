"""Run `dragoman decode` and `parse`: read a recorded stream, or a reply as text, like a turn does."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path

from pydantic import JsonValue

from dragoman.cli.flags.inspection import DecodeFlags, ParseFlags
from dragoman.cli.terminal.text import parse_json, print_json
from dragoman.dialects.dialect import dialect, parse_report
from dragoman.errors import ConfigError, ProviderError
from dragoman.messages import events as e
from dragoman.messages.request import ToolSpec
from dragoman.messages.usage import Usage
from dragoman.providers.wires import wire
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.http_client.framing import FRAMINGS, Framing
from dragoman.wire.transport_errors import garbled, is_no_stream, no_event, no_stream
from dragoman.wire.wire import Decoder, Wire


def decode(flags: DecodeFlags) -> None:
    protocol = wire(flags.wire)  # A wrong name must raise an error before input is read.
    print_json(report(protocol, sys.stdin.buffer.read()), indent=2)


def report(wire: Wire, stream: bytes) -> dict[str, JsonValue]:
    """Return the content of the stream, even if it breaks off. `error` says how."""
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
    """Return the calls in order. A call with incomplete arguments has their text so far."""
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
    """Return the counts of tokens. Anthropic and Amazon count cached tokens separately, and Gemini counts
    reasoning separately from the answer."""
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


def parse(flags: ParseFlags) -> int:
    """Print one report, or one for each line. Returns 1 if a line is not a JSON string."""
    name = flags.dialect
    dialect(name)  # A wrong name must raise an error before input is read.
    specs = _read_tools(flags.tools) if flags.tools is not None else None
    if not flags.jsonl:
        print_json(parse_report(name, sys.stdin.buffer.read().decode(errors="replace"), specs), indent=2)
        return 0
    status = 0
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        reply = _parse_string(line)
        if reply is None:
            status = 1
            error = f"line {number} is not a JSON string"
            print_json({"calls": [], "text": "", "errors": [error]})
        else:
            print_json(parse_report(name, reply, specs))
    return status


def _parse_string(line: bytes) -> str | None:
    try:
        value = parse_json(line)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _read_tools(file: Path) -> tuple[ToolSpec, ...]:
    """Return tools from the format of provider requests: a list of objects, bare or wrapped as functions."""
    try:
        content = parse_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{file} is not valid JSON: {error}") from error
    listed = content.get("tools") if isinstance(content, dict) else content
    if not isinstance(listed, list):
        raise ConfigError(f"'{file}' has no list of tools.")
    return tuple(_parse_tool(file, place, one) for place, one in enumerate(listed, 1))


def _parse_tool(file: Path, place: int, entry: JsonValue) -> ToolSpec:
    tool = entry.get("function", entry) if isinstance(entry, dict) else None
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(tool, dict) or not isinstance(name, str) or not name:
        raise ConfigError(f"'{file}': tool {place} has no name.")
    parameters = tool.get("parameters") or tool.get("input_schema") or {}
    if not isinstance(parameters, dict):
        raise ConfigError(f"'{file}': the parameters of {name!r} are not a valid JSON schema.")
    return ToolSpec(name, str(tool.get("description") or ""), parameters)
