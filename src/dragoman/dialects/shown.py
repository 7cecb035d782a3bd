"""What is said in, and where something was left out; pieces to show out, as if nothing had stood there.

Of the white space on both sides of what is left out, the run with more line breaks stays, the first if they
are equal; at the beginning and at the end of the reply both go.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Voice: TypeAlias = Literal["text", "reasoning"]
Piece: TypeAlias = tuple[Voice, str]

_TICK_RUN = re.compile("`+")
_SPACES = " \t\r\n"


class Shown:
    """What was shown, and the white space that waits for what follows it."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._voice: Voice = "text"
        self._heard: set[Voice] = set()
        self._run = ""  # of white space
        self._space = ""  # the best run since the last text
        self._gapped = False  # protocol was left out since then
        self._last = ""
        self.in_ticks = False  # an odd number of backtick runs stands in this line

    @property
    def quotes(self) -> bool:
        """Whether the last character was a backtick that opens inline code."""
        return self.in_ticks and self._last == "`"

    def pieces(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def add(self, text: str) -> None:
        if not text:
            return
        if self._voice == "reasoning":
            self._pieces.append(("reasoning", text))
            self._heard.add("reasoning")
            return
        self._follow_ticks(text)
        body = text.strip(_SPACES)
        lead = text[: text.index(body[0])] if body else text
        self._run += lead
        if body:
            space = "" if self._gapped and "text" not in self._heard else _larger(self._space, self._run)
            self._pieces.append(("text", space + body))
            self._heard.add("text")
            self._run, self._space, self._gapped = text[len(lead) + len(body) :], "", False

    def gap(self) -> None:
        self._space, self._run, self._gapped = _larger(self._space, self._run), "", True

    def speak(self, voice: Voice) -> None:
        """From here on it is this voice. What one says in several messages is kept apart."""
        self._voice = voice
        if voice == "text":
            self._space = _larger(self._space, "\n\n")
        elif voice in self._heard:
            self._pieces.append((voice, "\n\n"))

    def end(self) -> None:
        if not self._gapped and self._run:
            self._pieces.append(("text", self._run))

    def _follow_ticks(self, text: str) -> None:
        if "\n" in text:
            self.in_ticks, self._last = False, "\n"
            text = text[text.rindex("\n") + 1 :]
        runs = len(_TICK_RUN.findall(text)) - (text[:1] == "`" == self._last)
        self.in_ticks ^= bool(runs % 2)
        self._last = text[-1:] or self._last


def _larger(one: str, other: str) -> str:
    return max(one, other, key=lambda space: (space.count("\n"), bool(space)))
