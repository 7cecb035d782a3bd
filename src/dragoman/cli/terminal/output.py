"""Print the events of `dragoman run`: text for users, or JSON lines for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol, TextIO

from pydantic import JsonValue

from dragoman.cli.terminal.cards import refusals_of
from dragoman.cli.terminal.text import format_json, one_line, plain, print_json
from dragoman.messages import events as e
from dragoman.messages.events import EVENT
from dragoman.messages.usage import Usage

SHOWN = 200  # maximum characters of a result


class TurnOutput(Protocol):
    def show(self, event: e.Event) -> None: ...

    def take_value(self, value: JsonValue) -> None:
        """Receive the answer as a value, if a type was requested."""

    def end(self, end: e.TurnEnd) -> None:
        """Finish the output. Called exactly once, even if no turn began."""


class JsonOutput:
    """Prints every event as a JSON object on one line, and the result last."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._value: dict[str, JsonValue] = {}

    def take_value(self, value: JsonValue) -> None:
        self._value = {"output": value}

    def show(self, event: e.Event) -> None:
        print_json(EVENT.to_json(event), self._out)

    def end(self, end: e.TurnEnd) -> None:
        result: dict[str, JsonValue] = {
            "type": "result",
            "text": end.text,
            "usage": asdict(end.usage),
            "state": end.state,
            "finish": end.finish,
            "error": end.error,
            **self._value,
        }
        print_json(result, self._out)
        _print_error(end)


class TextOutput:
    """Prints the answer on standard output as it arrives, and calls, notices and errors on standard error."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._in_line = False
        self._ended = False  # whether the text has ended; the end of its line is decided with the reply
        self._started: set[str] = set()  # calls whose arguments have been shown
        self._lines: dict[str, str] = {}  # prefixes for the output about calls of programs
        self._clean: Callable[[str], str] = plain if out.isatty() else str  # A file gets the text unchanged.

    def show(self, event: e.Event) -> None:
        match event:
            case e.TextDelta():
                self._print(event.text)
            case e.TextEnd():
                self._ended = True
            case e.MessageEnd() if event.finish == "length" and not self._out.isatty():
                self._ended = False  # The next reply continues the text.
            case e.InnerCallMade(call=call, made_in=place):
                self._lines[call] = f"  line {place.line}: "
            case e.CallStart():
                self._started.add(event.call)
                self._aside(self._lines.get(event.call, "") + _call_line(event))
            case e.CallEnd():
                if event.call not in self._started:  # The call did not run, so print what it would have done.
                    self._aside(self._lines.get(event.call, "") + _call_line(event))
                told = f"→ {plain(event.tool)} {event.state}: {one_line(event.result.text, SHOWN)}"
                self._aside(f"  {told}" if event.call in self._lines else told)
                for text, _ in refusals_of(event.result) or ():
                    self._aside(f"⛨ {plain(text)}")
            case e.StepRetry():
                attempt = f"attempt {event.attempt} of {event.attempts}"
                self._aside(f"· {plain(event.reason)}: {attempt} in {event.seconds:.0f} s")
            case e.MessageAdded(message=message) if (
                message.role == "assistant"
            ):  # The reply ended before this program followed the turn.
                self._print(message.text)
                self._ended = True
            case e.Notice() if event.kind != "title":
                self._aside(f"· {plain(event.text)}")
            case e.TurnEnd():
                self._end_line()
            case _:
                pass

    def take_value(self, value: JsonValue) -> None:
        print_json(value, self._out)

    def end(self, end: e.TurnEnd) -> None:
        self._end_line()
        _print_error(end)

    def _print(self, text: str) -> None:
        if text:
            if self._ended:
                self._end_line()
            print(self._clean(text), end="", file=self._out, flush=True)
            self._in_line = not text.endswith("\n")

    def _aside(self, text: str) -> None:
        if self._ended:
            self._end_line()
        _print_aside(text)

    def _end_line(self) -> None:
        self._ended = False
        if self._in_line:
            print(file=self._out, flush=True)
            self._in_line = False


class ValueOutput(TextOutput):
    """Prints text, except for the answer: only its typed value is printed, once, as JSON."""

    def show(self, event: e.Event) -> None:
        if not isinstance(event, e.TextDelta | e.TextEnd | e.MessageAdded):
            super().show(event)


def end_without_turn(error: str, state: str = "error") -> e.TurnEnd:
    """Return an end for a turn that did not begin, or whose end this program does not see."""
    return e.TurnEnd(state, "", Usage(), error)


def _call_line(event: e.CallStart | e.CallEnd) -> str:
    return f"⚙ {plain(event.tool)} {one_line(format_json(event.arguments), 1000)}"


def _print_error(end: e.TurnEnd) -> None:
    if end.error is not None:
        _print_aside(f"dragoman: {' '.join(end.error.split())}")


def _print_aside(text: str) -> None:
    print(plain(text), file=sys.stderr, flush=True)
