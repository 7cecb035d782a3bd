"""A turn's events in; what a person, or a program, reads of them out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol, TextIO

from pydantic import JsonValue

from dragoman.cli.plain import one_line, plain, shown_json
from dragoman.cli.printing import print_json
from dragoman.messages import events as e
from dragoman.messages.events import EVENT
from dragoman.messages.usage import Usage

SHOWN = 200  # characters of a result


class Screen(Protocol):
    def show(self, event: e.Event) -> None: ...

    def end(self, end: e.TurnEnd) -> None:
        """Once, whatever happened, also where no turn began."""


class Lines:
    """Every event as one JSON object a line; the last one is the result."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: e.Event) -> None:
        print_json(EVENT.to_json(event), self._out)

    def end(self, end: e.TurnEnd) -> None:
        result: dict[str, JsonValue] = {
            "type": "result",
            "text": end.text,
            "usage": asdict(end.usage),
            "state": end.state,
            "error": end.error,
        }
        print_json(result, self._out)
        _complain(end)


class Reading:
    """The text as it comes, on standard output; calls, notices and errors beside it."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._in_line = False
        self._safe: Callable[[str], str] = plain if out.isatty() else str  # a file gets it to the letter

    def show(self, event: e.Event) -> None:
        match event:
            case e.TextDelta():
                print(self._safe(event.text), end="", file=self._out, flush=True)
                self._in_line = not event.text.endswith("\n")
            case e.TextEnd():
                self._end_line()
            case e.CallStart():
                _aside(f"⚙ {plain(event.tool)} {one_line(shown_json(event.arguments), 1000)}")
            case e.CallEnd():
                _aside(f"→ {plain(event.tool)} {event.state}: {one_line(event.result.text, SHOWN)}")
            case e.Notice() if event.kind != "title":
                _aside(f"· {plain(event.text)}")
            case _:
                pass

    def end(self, end: e.TurnEnd) -> None:
        self._end_line()
        _complain(end)

    def _end_line(self) -> None:
        if self._in_line:
            print(file=self._out, flush=True)
            self._in_line = False


def not_begun(error: str, state: str = "error") -> e.TurnEnd:
    """The end of a turn that never was one."""
    return e.TurnEnd(state, "", Usage(), error)


def _complain(end: e.TurnEnd) -> None:
    if end.error is not None:
        _aside(f"dragoman: {' '.join(end.error.split())}")


def _aside(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
