"""Scans a reply as it streams for the calls written in it, and for the text that may be shown meanwhile.

What counts as protocol, and what as text about it:

- A marker that is a token of its own in a model's vocabulary (`reserved`) is protocol wherever it stands.
- A marker that a model writes as ordinary characters is text where it is quoted: right behind an opening
  backtick, up to the closing one; and in a fenced block, unless the block begins with it (models like to
  fence their calls) or is never closed though the reply is complete (then it is no block).
- Where it was left out, white space shrinks (`visible.py`). All other text is shown as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from dragoman.dialects.cursor import BLANK, TICKS, WORD, Cursor, Form, Steps, marks
from dragoman.dialects.visible import Piece, VisibleText, Voice
from dragoman.messages.parts import Arguments
from dragoman.messages.request import ToolSpec

Tools: TypeAlias = Sequence[ToolSpec]


@dataclass(slots=True, frozen=True)
class TextCall:
    """A call as a model wrote it. `id` is what the model called it, if it gave it a name."""

    name: str
    arguments: Arguments
    id: str = ""


@dataclass(slots=True, frozen=True)
class BadCall:
    """A call that cannot be read. `error` is for the model: why, and how to write it; `raw` is its text."""

    error: str
    name: str = ""
    raw: str = ""


FoundCall: TypeAlias = TextCall | BadCall
Reading: TypeAlias = Steps[Sequence[FoundCall] | Voice | None]
"""What a marker turned out to begin: calls, another voice, or (None) nothing but text."""


class Grammar(Protocol):
    """What the scanner has to know of a dialect."""

    opens: tuple[str, ...]
    """Markers that begin a call."""
    drops: tuple[str, ...]
    """Markers that are protocol but begin nothing: what wraps calls, and closing tags that were left over."""
    bare: tuple[str, ...]
    """How a call looks that begins without a marker, as far as it takes to suspect one."""
    sure: tuple[str, ...]
    """The same, as far as it takes to suspect one even in a code block."""
    reserved: bool
    thoughts: Mapping[str, str]
    """Markers, among `opens`, that begin a thought, each with what ends it. No call in it counts."""

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        """Read one call, or several that belong together. `opener` was read; it is "" for a bare call."""


_FENCE = "```"
_CODE_END: Form = ("\n", "[ \t]{0,64}", "`", "`", "`")
_INLINE_END = marks("`", "\n")


class Scanner:
    """Feed it the reply; it returns what may be shown. `found` fills with calls, in the order written."""

    def __init__(self, grammar: Grammar, tools: Tools | None = None) -> None:
        bare = (grammar.bare,) if grammar.bare else ()
        sure = (grammar.sure,) if grammar.sure else ()
        self.found: list[FoundCall] = []
        self._grammar = grammar
        self._tools = tools
        self._cursor = Cursor()
        self._openers = (*grammar.opens, *bare)
        self._unfenced = marks(*self._openers, *grammar.drops)
        self._marks = self._unfenced if grammar.reserved else marks(*self._openers, *grammar.drops, _FENCE)
        self._in_code = marks(*grammar.opens, *sure, _CODE_END)
        self._shown = VisibleText()
        self._cut = False
        self._idle = False  # all that came so far was read, and it was text
        self._steps = self._run()

    def feed(self, piece: str) -> Sequence[Piece]:
        if self._idle and piece and not self._marks.first.search(piece):
            return self._shown.say(piece)  # most pieces of most replies
        self._cursor.feed(piece)
        next(self._steps)
        return self._shown.pieces()

    def end(self, *, cut: bool = False) -> list[Piece]:
        """The reply is over. `cut` says that it broke off: then there may have been more to come."""
        self._cut = cut
        self._cursor.over = True
        for _ in self._steps:
            raise AssertionError("a step waits for text, but the reply is over")
        self._shown.end()
        return self._shown.pieces()

    def _run(self) -> Steps[None]:
        cursor = self._cursor
        while True:
            mark = cursor.seek(self._marks)
            self._shown.add(cursor.cut())
            if not mark and cursor.over:
                return
            if not mark:
                self._idle = cursor.at == len(cursor.text)
                yield
                self._idle = False
            elif mark == _FENCE and self._shown.in_ticks:  # closes code that one like it opened in this line
                yield from cursor.run(TICKS)
            elif mark == _FENCE:
                yield from self._fence()
            elif not self._grammar.reserved and self._shown.quotes:
                yield from self._inline(mark)
            elif mark in self._grammar.drops:
                cursor.at += len(mark)
                cursor.cut()
                self._shown.gap()
            else:
                yield from self._call(mark)

    def _call(self, mark: str) -> Steps[bool]:
        """Read what a marker begins. False if that was only text."""
        cursor = self._cursor
        opener = mark if mark in self._grammar.opens else ""
        if opener in self._grammar.thoughts:
            yield from self._thought(opener)
            return True
        before = cursor.taken
        cursor.at += len(opener)
        found = yield from self._grammar.read(cursor, opener, self._tools)
        if found is None:
            if cursor.taken == before:
                cursor.at += 1
            self._shown.add(cursor.cut())
            return False
        raw = cursor.cut()
        self._shown.gap()
        if isinstance(found, str):
            self._shown.switch(found)
        else:
            self.found += (replace(one, raw=raw) if isinstance(one, BadCall) else one for one in found)
        return True

    def _thought(self, opener: str) -> Steps[None]:
        """Show what stands behind the marker as reasoning, up to what ends it."""
        cursor, end = self._cursor, self._grammar.thoughts[opener]
        cursor.at += len(opener)
        cursor.cut()
        self._shown.gap()
        self._shown.switch("reasoning")
        while not (ended := cursor.seek(marks(end))) and not cursor.over:
            self._shown.add(cursor.cut())
            yield
        self._shown.add(cursor.cut())
        if ended:
            cursor.at += len(ended)
            cursor.cut()
            self._shown.switch("text")

    # ── code ──────────────────────────────────────────────────────────────────────────────────────

    def _inline(self, mark: str) -> Steps[None]:
        """Behind an opening backtick: text, up to the closing one."""
        self._cursor.at += len(mark)
        while not self._cursor.seek(_INLINE_END) and not self._cursor.over:
            self._shown.add(self._cursor.cut())
            yield
        self._shown.add(self._cursor.cut())

    def _fence(self) -> Steps[None]:
        """Three backticks or more: around calls, before a block of code, or just so."""
        cursor = self._cursor
        ticks = yield from cursor.run(TICKS)
        yield from cursor.run(WORD)
        space = yield from cursor.space()
        mark = yield from cursor.sees(*self._openers)
        if mark and (yield from self._call(mark)):
            yield from self._fenced_calls(ticks)
            return
        if not mark:
            cursor.back(len(space))
            self._shown.add(cursor.cut())
        if "\n" in space:
            yield from self._code(ticks)

    def _fenced_calls(self, ticks: str) -> Steps[None]:
        """After a call that began a fenced block: more of them, and the end of the block."""
        cursor = self._cursor
        while True:
            space = yield from cursor.space()
            if (yield from cursor.sees(ticks)):
                yield from cursor.run(TICKS)
                cursor.cut()
                self._shown.gap()
                return
            mark = yield from cursor.sees(*self._openers)
            if not mark:
                cursor.back(len(space))
            if not mark or not (yield from self._call(mark)):
                return

    def _code(self, ticks: str) -> Steps[None]:
        """Inside a fenced block. From a marker on it is held, until the block is closed and it is text."""
        cursor, held = self._cursor, False
        while True:
            mark = cursor.seek(marks(_CODE_END) if held else self._in_code)
            if not held:
                self._shown.add(cursor.cut())
            if mark.startswith("\n"):
                cursor.at += 1
                yield from cursor.run(BLANK)
                closing = yield from cursor.run(TICKS)
                yield from cursor.run(BLANK)
                end_of_line = (yield from cursor.sees("\n")) or cursor.at == len(cursor.text)
                if end_of_line and len(closing) >= len(ticks):
                    self._shown.add(cursor.cut())
                    return
            elif mark:
                held = True
            elif cursor.over:
                break
            else:
                yield
        if held and not self._cut:  # never closed: read it again, as if the fence had been text
            cursor.back(cursor.taken)
            self._marks = self._unfenced
