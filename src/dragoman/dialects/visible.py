"""Build the visible text of a reply, closing the gaps where calls were removed.

Of the white space on both sides of a gap, the run with more line breaks stays, or the first if they are
equal. At the start and at the end of the reply, all white space is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

Voice: TypeAlias = Literal["text", "reasoning"]
Piece: TypeAlias = tuple[Literal["text", "reasoning", "misread"], str]
"""A chunk to show next. `misread`: the text so far was reasoning, as its end shows."""

_TICK_RUN = re.compile("`+")
_FENCE = 3
_SPACES = " \t\r\n"
_CODE_INDENT = 4
_SENTENCE_ENDS = frozenset(".!?…。！？")
_OPENING_QUOTES = frozenset("\"'“‘„«‹「『`(>|")
_QUOTING_LINES = frozenset(">|")  # a quotation, a row of a table


class VisibleText:
    """The text that was shown, and white space that waits for what follows it."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._voice: Voice = "text"
        self._heard: set[Voice] = set()
        self._run = ""  # of white space
        self._space = ""  # the best run since the last text
        self._gapped = False  # protocol was left out since then
        self.last = ""  # character, of text or of reasoning
        self.indent = 0  # blanks at the start of this line
        self._first = ""  # the first non-blank character in this line
        self._tail = ""  # the last one of the text
        self._letters = 0  # letters in this line: a lower bound, exact below two
        self._follows_quotation = False  # the previous line is one, and continues in this one
        self.in_ticks = False  # this line has an odd number of backtick runs
        self._ticks = 0  # at the end
        self._fenced = False

    @property
    def unsaid(self) -> bool:
        """Whether the text is still empty: a reply, or the part after its reasoning, begins here."""
        return "text" not in self._heard

    @property
    def thinks(self) -> bool:
        """Whether the next text is reasoning."""
        return self._voice == "reasoning"

    @property
    def fresh(self) -> bool:
        """Whether this line is blank so far."""
        return not self._first

    @property
    def ends_sentence(self) -> bool:
        """Whether a sentence ends here, or a word without a space after it. A list number does not count."""
        return (self._tail in _SENTENCE_ENDS and self._letters > 1) or self.last.isalpha()

    @property
    def quoted(self) -> bool:
        """Whether the next text is quoted: in code, in quotation marks, in a quotation, in a table."""
        in_code = self.in_ticks or self.in_fence or (self.indent >= _CODE_INDENT and not self.unsaid)
        in_quotation = self._first in _QUOTING_LINES or self._follows_quotation
        return in_code or in_quotation or self.last in _OPENING_QUOTES

    @property
    def quotes(self) -> bool:
        """Whether the last character was a backtick that opens inline code."""
        return self.in_ticks and self.last == "`"

    @property
    def in_fence(self) -> bool:
        """Whether there is an odd number of fences before this, or one that may continue."""
        return self._fenced ^ (self._ticks >= _FENCE)

    def pieces(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def add(self, text: str) -> None:
        if text:
            self._pieces += self.say(text)

    def say(self, text: str) -> tuple[Piece, ...]:
        """Return what can be shown immediately, now that this text is next."""
        if self._voice == "reasoning":
            self._heard.add("reasoning")
            self.last = text[-1]
            return (("reasoning", text),)
        if "`" in text or "\n" in text or self._ticks:
            self._follow_ticks(text)
        else:
            self.last = text[-1]
        if self._letters < 2 or "\n" in text:
            self._follow_line(text)
        body = text.rstrip(_SPACES)
        if not body:
            self._run += text
            return ()
        self._tail = body[-1]
        shown, self._run = self._run + body, text[len(body) :]
        if self._gapped:
            shown = self._closed_up(shown)
        self._heard.add("text")
        return (("text", shown),)

    def gap(self, *, fresh: bool = True) -> None:
        """Note that protocol was left out here. `fresh`: the next text begins a line."""
        self._space, self._run, self._gapped = _larger(self._space, self._run), "", True
        if fresh:
            self._begin_line()

    def misread(self) -> None:
        """Turn all text so far into reasoning."""
        self._space, self._run, self._gapped = "", "", True
        self._begin_line()
        self._heard.discard("text")
        self._pieces.append(("misread", ""))

    def switch(self, voice: Voice) -> None:
        """Switch to this voice. Its several messages are separated by a blank line."""
        self._voice = voice
        self.last = ""
        self._begin_line()
        if voice == "text":
            self._space = _larger(self._space, "\n\n")
        elif voice in self._heard:
            self._pieces.append((voice, "\n\n"))

    def end(self) -> None:
        if not self._gapped and self._run:
            self._pieces.append(("text", self._run))

    def _begin_line(self) -> None:
        self.indent, self._first, self._letters = 0, "", 0

    def _follow_line(self, text: str) -> None:
        *lines, line = text.split("\n")
        for ended in lines:
            first = self._first or ended.lstrip(" \t")[:1]
            self._follows_quotation = first in _QUOTING_LINES or (self._follows_quotation and bool(first))
            self._begin_line()
        if not self._first:
            words = line.lstrip(" \t")
            self.indent += len(line) - len(words)
            self._first = words[:1]
        self._letters += sum(map(str.isalpha, line))

    def _closed_up(self, text: str) -> str:
        """Return text after a gap, with the white space that stays."""
        words = text.lstrip(_SPACES)
        space = _larger(self._space, text[: -len(words)]) if "text" in self._heard else ""
        self._space, self._gapped = "", False
        return space + words

    def _follow_ticks(self, text: str) -> None:
        if self._ticks and text[0] != "`":
            self._fenced, self._ticks = self.in_fence, 0
        for run in _TICK_RUN.finditer(text):
            before, self._ticks = self._ticks if not run.start() else 0, run.end() - run.start()
            self._ticks += before
            if run.end() < len(text):
                self._fenced, self._ticks = self.in_fence, 0
        if "\n" in text:
            self.in_ticks, self.last = False, "\n"
            text = text[text.rindex("\n") + 1 :]
        runs = len(_TICK_RUN.findall(text)) - (text[:1] == "`" == self.last)
        self.in_ticks ^= bool(runs % 2)
        self.last = text[-1:] or self.last


def joined(pieces: Iterable[Piece]) -> tuple[str, str]:
    """Return the text and the reasoning of a reply that was shown in these chunks."""
    shown: dict[str, list[str]] = {"text": [], "reasoning": []}
    for voice, piece in pieces:
        if voice == "misread":
            shown = {"text": [], "reasoning": shown["reasoning"] + shown["text"]}
        else:
            shown[voice].append(piece)
    return "".join(shown["text"]), "".join(shown["reasoning"])


def _larger(one: str, other: str) -> str:
    return max(one, other, key=lambda space: (space.count("\n"), bool(space)))
