"""What `dragoman run` prints of a turn as it happens: text for a person, or JSON lines for a program."""

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

SHOWN = 200  # characters of a result


class TurnOutput(Protocol):
    def show(self, event: e.Event) -> None: ...

    def take_value(self, value: JsonValue) -> None:
        """What the answer is, where a type was asked for."""

    def end(self, end: e.TurnEnd) -> None:
        """Once, whatever happened, also where no turn began."""


class JsonOutput:
    """Every event as one JSON object a line; the last one is the result."""

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
    """The answer as it comes, on standard output; calls, notices and errors on standard error."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._in_line = False
        self._ended = False  # the text; whether its line ends, too, is known when its reply has
        self._started: set[str] = set()  # calls whose arguments have been shown
        self._lines: dict[str, str] = {}  # where programs make calls, for what is printed of these
        self._clean: Callable[[str], str] = plain if out.isatty() else str  # a file gets it to the letter

    def show(self, event: e.Event) -> None:
        match event:
            case e.TextDelta():
                self._print(event.text)
            case e.TextEnd():
                self._ended = True
            case e.MessageEnd() if event.finish == "length" and not self._out.isatty():
                self._ended = False  # what was cut off goes on where it stopped
            case e.InnerCallMade(call=call, made_in=place):
                self._lines[call] = f"  line {place.line}: "
            case e.CallStart():
                self._started.add(event.call)
                self._aside(self._lines.get(event.call, "") + _call_line(event))
            case e.CallEnd():
                if event.call not in self._started:  # it did not run: what it would have done is told now
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
            ):  # it was over before we looked
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
    """As text, but for the answer: of a value, only what fits its type is printed, once, as JSON."""

    def show(self, event: e.Event) -> None:
        if not isinstance(event, e.TextDelta | e.TextEnd | e.MessageAdded):
            super().show(event)


def end_without_turn(error: str, state: str = "error") -> e.TurnEnd:
    """The end to show where no turn began, or this program does not see its end."""
    return e.TurnEnd(state, "", Usage(), error)


def _call_line(event: e.CallStart | e.CallEnd) -> str:
    return f"⚙ {plain(event.tool)} {one_line(format_json(event.arguments), 1000)}"


def _print_error(end: e.TurnEnd) -> None:
    if end.error is not None:
        _print_aside(f"dragoman: {' '.join(end.error.split())}")


def _print_aside(text: str) -> None:
    print(plain(text), file=sys.stderr, flush=True)
