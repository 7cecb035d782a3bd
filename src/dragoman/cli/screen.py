"""A turn's events in; what a person, or a program, reads of them out."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Protocol, TextIO

from pydantic import JsonValue

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

    def show(self, event: e.Event) -> None:
        match event:
            case e.TextDelta():
                print(event.text, end="", file=self._out, flush=True)
                self._in_line = not event.text.endswith("\n")
            case e.TextEnd():
                self._end_line()
            case e.CallStart():
                _aside(f"⚙ {event.tool} {json.dumps(event.arguments, ensure_ascii=False)}")
            case e.CallEnd():
                _aside(f"→ {event.tool} {event.state}: {_short(event.result.text)}")
            case e.Notice() if event.kind != "title":
                _aside(f"· {event.text}")
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


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
