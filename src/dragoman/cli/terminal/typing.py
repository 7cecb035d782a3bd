"""A line that a person types while a turn runs: keys are read beside the screen, which shows it."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

PASTES = ("\x1b[?2004h", "\x1b[?2004l")  # a terminal marks what is pasted, and stops doing so
_ALONE = 0.1  # seconds after which an Escape is a key, and not the beginning of one


class TypedLine:
    """Enter and Tab hand the line over; Escape empties it, or calls `stop` where it is empty."""

    def __init__(
        self, *, enter: Callable[[str], None], tab: Callable[[str], None], stop: Callable[[], None]
    ) -> None:
        self.text = ""
        self._enter = enter
        self._tab = tab
        self._stop = stop
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._parser = Vt100Parser(self._press)
        self._later: asyncio.TimerHandle | None = None
        self._listens = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While the block runs. Where there is no terminal that can be read like this, nothing is read."""
        if sys.platform == "win32" or not sys.stdin.isatty():
            yield
            return
        self._listen(True)
        try:
            yield
        finally:
            self._listen(False)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While a prompt reads the keys."""
        listens = self._listens
        if listens:
            self._listen(False)
        try:
            yield
        finally:
            if listens:
                self._listen(True)

    def _listen(self, wanted: bool) -> None:
        loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
        self._listens = wanted
        print(PASTES[0 if wanted else 1], end="", file=sys.__stdout__, flush=True)
        if wanted:
            loop.add_reader(terminal, self._read)
            return
        loop.remove_reader(terminal)
        if self._later is not None:
            self._later.cancel()

    def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            data = os.read(sys.stdin.fileno(), 4096)
        except OSError:
            data = b""
        if not data:  # the terminal has gone, and would be ready to be read for ever
            loop.remove_reader(sys.stdin.fileno())
            return
        if self._later is not None:
            self._later.cancel()
        self._parser.feed(self._decoder.decode(data))
        self._later = loop.call_later(_ALONE, self._parser.flush)

    def _press(self, press: KeyPress) -> None:
        match press.key:
            case Keys.ControlM | Keys.ControlJ:
                self._hand_over(self._enter)
            case Keys.ControlI:
                self._hand_over(self._tab)
            case Keys.Backspace | Keys.ControlH:
                self.text = self.text[:-1]
            case Keys.ControlU:
                self.text = ""
            case Keys.ControlW:
                self.text = self.text.rstrip().rpartition(" ")[0]
            case Keys.Escape if self.text:
                self.text = ""
            case Keys.Escape:
                self._stop()
            case Keys.BracketedPaste:
                self.text += press.data.replace("\r\n", "\n").replace("\r", "\n")
            case str() as letter if not isinstance(press.key, Keys) and letter.isprintable():
                self.text += letter
            case _:
                pass  # arrows and the like: a line that grows at its end is enough here

    def _hand_over(self, to: Callable[[str], None]) -> None:
        text, self.text = self.text.strip(), ""
        if text:
            to(text)
