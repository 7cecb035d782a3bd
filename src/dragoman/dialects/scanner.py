"""Scans a reply as it streams for the calls written in it, and for the text that may be shown meanwhile.

What counts as protocol, and what as text about it:

- A marker that is a token of its own in a model's vocabulary (`reserved`) is protocol wherever it stands.
- A marker that a model writes as ordinary characters is text where it is quoted: behind an opening backtick,
  up to the closing one in the same line; and in a fenced block, unless the block begins with it (models like
  to fence their calls) or is never closed though the reply is complete (then it is no block).
- Between the tags of a thought nothing is a call, and in a call nothing is a thought. The end of a thought
  that never began means that the prompt had begun it: all text so far was the thought, and no call in it
  counts.
- A token that ends a reply is no text where the text ends with it.
- Where it was left out, white space shrinks (`visible.py`). All other text is shown as it came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from dragoman.dialects.cursor import BLANK, REACH, TICKS, TILDES, WORD, Cursor, Form, Marks, Steps, marks
from dragoman.dialects.visible import Piece, VisibleText, Voice
from dragoman.messages.parts import Arguments
from dragoman.messages.request import ToolSpec
from dragoman.wire.thinking import (
    ANSWERS,
    BEGIN_TOKENS,
    CLOSING,
    END_TOKENS,
    HEADERS,
    OPENING,
    THOUGHTS,
    WORDS,
    thought_ends,
)

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
    begins: tuple[Form, ...]
    """How a call looks that begins without a marker at the beginning of a reply, and only there."""
    suspects: tuple[Form, ...]
    """How calls look that may stand anywhere, of tools there are, as far as it takes to suspect one."""
    elements: tuple[Form, ...]
    """How elements of XML begin that may be calls of tools there are, but not in code that is quoted."""
    call_blocks: Mapping[str, tuple[Form, ...]]
    """The languages of fenced blocks that hold calls wherever they stand, each with how these begin."""
    reserved: bool
    thoughts: Mapping[str, str]
    """Markers, among `opens`, that begin a thought, each with what ends it. No call in it counts."""

    turns: tuple[str, ...]
    """Markers, among `opens`, with which another voice begins: in a thought nothing else counts."""
    results: tuple[Form, ...]
    """What stands in front of results, which no model writes but one that plays on alone."""

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        """Read one call, or several that belong together. `opener` was read; it is "" for a bare call."""


_FENCE, _TILDES = "```", "~~~"
_RUNS = {_FENCE: TICKS, _TILDES: TILDES}
_CODE_ENDS: dict[str, Form] = {one: ("\n", "[ \t]{0,64}", *one) for one in _RUNS}
_LINE_OR_TICK = ("`", "\n")
_INLINE_END = marks(*_LINE_OR_TICK)
_SETTINGS = ("yaml", "yml", "toml")  # no model calls in these languages


class Scanner:
    """Feed it the reply; it returns what may be shown. `found` fills with calls, in the order written."""

    def __init__(
        self, grammar: Grammar, tools: Tools | None = None, *, thinking: bool = True, inside: bool = False
    ) -> None:
        """`thinking` says that thoughts may come as tags, `inside` that the prompt has begun one."""
        self.found: list[FoundCall] = []
        self.openers: list[str] = []  # how the calls began that could be read
        self.lone_end = False  # the end of a thought came, and no beginning
        self.unclosed = False  # the reply ended in a thought
        self.tagged = False  # a tag of a thought has come
        self.assumed = ""  # the words that seem to begin a thought, until something ends it
        self._grammar = grammar
        self._tools = tools
        self._cursor = Cursor()
        self._headers = HEADERS if thinking else {}
        self._thoughts = {**(THOUGHTS if thinking else {}), **grammar.thoughts}
        self._thought_ends = frozenset(self._thoughts.values()).intersection(CLOSING)
        calls = (one for one in grammar.opens if one not in self._thoughts)
        self._marked: tuple[Form, ...] = (*calls, *((grammar.bare,) if grammar.bare else ()))
        self._openers: tuple[Form, ...] = (*self._marked, *grammar.suspects)
        self._elements = grammar.elements if tools else ()
        endings = (*END_TOKENS, *(ANSWERS.values() if thinking else ()))
        calls_or_thoughts = (*self._openers, *self._elements, *self._thoughts)
        self._known = (*calls_or_thoughts, *self._thought_ends, *grammar.drops, *endings)
        self._marks = marks(*self._known, *(() if grammar.reserved else _RUNS))
        self._known_in_thought = (*grammar.turns, *END_TOKENS) if grammar.turns else self._known
        tokens = grammar.reserved or all("|" in turn for turn in grammar.turns)  # which no code protects
        self._marks_in_thought = marks(*self._known_in_thought, *(() if tokens else _RUNS))
        self._in_code = (*self._marked, *((grammar.sure,) if grammar.sure else ()))
        self._shown = VisibleText()
        self._answer_end = ""  # what ends the answer, where its beginning was marked
        self._nested = 0  # thoughts that began in the last one: as many ends of it may follow
        self._idle: re.Pattern[str] | None = None  # all was read; only a piece with one of these is looked at
        self._steps = self._run(inside)

    def feed(self, piece: str) -> Sequence[Piece]:
        if self._idle is not None and piece and not self._idle.search(piece):
            return self._shown.say(piece)  # most pieces of most replies
        self._cursor.feed(piece)
        next(self._steps)
        return self._shown.pieces()

    def end(self, *, cut: bool = False) -> list[Piece]:
        """The reply is over. `cut` says that it broke off: then there may have been more to come."""
        self._cursor.broken_off = cut
        self._cursor.over = True
        for _ in self._steps:
            raise AssertionError("a step waits for text, but the reply is over")
        self._shown.end()
        return self._shown.pieces()

    def _run(self, inside: bool) -> Steps[None]:
        cursor, grammar = self._cursor, self._grammar
        while (yield from cursor.accept(*BEGIN_TOKENS)):
            yield from cursor.space()
            self._drop("")
        if inside:
            yield from self._thought("")
        elif self._headers and (header := (yield from cursor.sees(*self._headers))):
            self.assumed = header if header in WORDS else ""
            yield from self._thought(header)
        while True:
            if self.found and self._shown.gapped and not self._shown.thinks:
                yield from self._made_up()
            if self.tagged and self._shown.unsaid and not self._answer_end:
                yield from self._marked_answer()
            if grammar.begins and self._shown.unsaid and not self._shown.thinks:
                yield from cursor.space()
                begun = yield from cursor.sees(*grammar.begins)
                if begun and (yield from self._call(begun)):
                    continue
            wanted = self._marks_in_thought if self._shown.thinks else self._marks
            mark = cursor.seek(wanted)
            self._shown.add(cursor.cut())
            if not mark and cursor.over:
                return
            if not mark:
                yield from self._wait(wanted)
            elif mark == _FENCE and self._shown.in_ticks:  # closes code that one like it opened in this line
                yield from cursor.run(TICKS)
            elif mark == _TILDES and not self._shown.fresh:  # these do nothing within a line
                yield from cursor.run(TILDES)
            elif mark in _RUNS:
                yield from self._fence(mark)
            elif not grammar.reserved and (yield from self._in_inline_code()):
                yield from self._inline(mark)
            elif self._is_quoted(mark):
                cursor.at += len(mark)
            elif mark in self._thought_ends:
                self._end_of_thought(mark)
            elif mark in grammar.drops:
                self._drop(mark)
            elif mark in ANSWERS.values() and mark != self._answer_end:
                cursor.at += len(mark)
            elif mark == self._answer_end or (mark in END_TOKENS and mark not in grammar.opens):
                yield from self._end_token(mark)
            else:
                yield from self._call(mark)

    def _wait(self, wanted: Marks) -> Steps[None]:
        """Wait for text; a piece that holds nothing of what is wanted is shown without a look at it."""
        if self._cursor.at == len(self._cursor.text):
            self._idle = wanted.first
        yield
        self._idle = None

    def _drop(self, mark: str) -> None:
        self._cursor.at += len(mark)
        self._cursor.cut()
        self._shown.gap()

    def _end_token(self, mark: str) -> Steps[None]:
        """Left out if nothing follows it, or nothing but others."""
        cursor = self._cursor
        cursor.at += len(mark)
        yield from cursor.space()
        while (yield from cursor.accept(*END_TOKENS)):
            yield from cursor.space()
        if cursor.over and cursor.at == len(cursor.text):
            self._drop("")

    def _call(self, mark: str) -> Steps[bool]:
        """Read what a marker begins. False if that was only text."""
        cursor = self._cursor
        if mark in self._thoughts:
            yield from self._thought(mark)
            return True
        opener = mark if mark in self._grammar.opens else ""
        before = cursor.taken
        cursor.fresh = self._shown.fresh
        cursor.at += len(opener)
        found = yield from self._grammar.read(cursor, opener, self._tools)
        if (yield from self._unread_thought(found, before + len(opener))):
            found = None
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
            if any(isinstance(one, TextCall) for one in found):
                self.openers.append(mark)
        return True

    def _made_up(self) -> Steps[None]:
        """Behind a call: a result that the model made up. The rest of the reply goes on from it, so it is
        shown as a thought, and no call in it counts. Where a thought ends in it that never began, the call
        stood in that thought."""
        cursor = self._cursor
        space = yield from cursor.space()
        if not (yield from cursor.accept(*self._grammar.results)):
            cursor.back(len(space))
            return
        yield from cursor.space()
        self._drop("")
        self._shown.switch("reasoning")
        wanted, begun = marks(*self._thoughts, *self._thought_ends, *END_TOKENS), 0
        while True:
            mark = cursor.seek(wanted)
            self._shown.add(cursor.cut())
            lone = mark in self._thought_ends and not begun and not self.tagged
            if lone and self._shown.last != "`":
                self._shown.switch("text")
                self._end_of_thought(mark)
                return
            begun += (mark in self._thoughts) - (mark in self._thought_ends and begun > 0)
            cursor.at += len(mark)
            if not mark and cursor.over:
                return
            if not mark:
                yield from self._wait(wanted)

    # ── thoughts ──────────────────────────────────────────────────────────────────────────────────

    def _marked_answer(self) -> Steps[None]:
        """Behind a thought: what some models put in front of the answer is no part of it."""
        space = yield from self._cursor.space()
        if opening := (yield from self._cursor.accept(*ANSWERS)):
            self._answer_end = ANSWERS[opening]
            self._drop("")
        else:
            self._cursor.back(len(space))

    def _thought(self, opener: str) -> Steps[None]:
        """Show what stands behind the marker as reasoning, up to what ends it. Without one, the prompt has
        begun it; some replies begin it once more.
        """
        cursor = self._cursor
        if not opener:
            yield from cursor.space()
            opener = yield from cursor.sees(*OPENING)
        self.tagged = bool(opener)
        own = opener in self._grammar.thoughts
        ends = (self._thoughts[opener],) if own else thought_ends(opener)
        cursor.at += len(opener)
        yield from cursor.space()
        self._drop("")
        self._shown.switch("reasoning")
        self._nested = 0
        again = opener if opener in THOUGHTS else ""
        wanted = marks(*ends, *((again,) if again else ()))
        while True:
            mark = cursor.seek(wanted)
            self._shown.add(cursor.cut())
            if mark and mark == again:
                cursor.at += len(mark)
                self._nested += self._shown.last != "`"
                continue
            if mark:
                quoted = self._shown.last == "`"
                cursor.at += len(mark)
                if quoted and (yield from cursor.sees("`")):
                    continue
                self.tagged = True
                self.assumed = ""
                cursor.cut()
                self._shown.switch("text")
                return
            if cursor.over:
                self.unclosed = True
                return
            yield from self._wait(wanted)

    def _end_of_thought(self, mark: str) -> None:
        """One that ends no thought that was seen to begin, or a thought in which another one began."""
        if self._nested or not self.tagged:
            self.found.clear()
            self.openers.clear()
            self.lone_end = self.lone_end or not self.tagged
            self._nested = max(0, self._nested - 1)
            self._shown.misread()
        self.tagged = True
        self._drop(mark)

    def _unread_thought(self, found: Sequence[FoundCall] | Voice | None, start: int) -> Steps[bool]:
        """Whether what was read as no call, or as one that is broken, ran over a tag of a thought, or into
        one that begins like a value: a draft in a thought breaks off like this. If so, it ends in front of
        the tag.
        """
        calls = () if found is None or isinstance(found, str) else found
        whole = found is not None and (
            self.tagged or (calls and not any(isinstance(one, BadCall) for one in calls))
        )
        if whole or found == []:
            return False
        wanted = (*self._thought_ends, *(self._thoughts if found is None else ()))
        if not wanted:
            return False
        tags, taken = marks(*wanted), self._cursor.peek()
        tag = tags.whole.search(taken, start) or tags.begun.search(taken, max(start, len(taken) - REACH))
        if tag is None:
            return False
        size = len(taken) - tag.start()
        self._cursor.back(size)
        if (yield from self._cursor.sees(*wanted)):
            return True
        self._cursor.at += size
        return False

    def _is_quoted(self, mark: str) -> bool:
        """Whether it is a tag that these tokens do not protect, and stands in code."""
        foreign = mark in THOUGHTS or mark in CLOSING
        if not foreign or mark in self._grammar.thoughts or mark in self._grammar.drops:
            return False
        return self._shown.quotes or self._shown.in_fence

    # ── code ──────────────────────────────────────────────────────────────────────────────────────

    def _in_inline_code(self) -> Steps[bool]:
        """Whether a backtick opened code: right before this, or earlier in the line, if another closes it."""
        if not self._shown.in_ticks or self._shown.quotes:
            return self._shown.quotes
        before, mark = yield from self._cursor.until(*_LINE_OR_TICK)
        self._cursor.back(len(before))
        self._shown.in_ticks = mark == "`"  # else none closes it, and the line need not be searched again
        return self._shown.in_ticks

    def _inline(self, mark: str) -> Steps[None]:
        """Behind an opening backtick: text, up to the closing one. That may stand in another line of the
        paragraph if the code begins with the marker: calls have lines.
        """
        self._cursor.at += len(mark)
        if self._shown.quotes:
            code, closed = yield from self._cursor.until("`", "\n\n")
            if closed == "`":
                self._shown.add(self._cursor.cut())
                self._shown.in_ticks = True
                return
            self._cursor.back(len(code))
        while not self._cursor.seek(_INLINE_END) and not self._cursor.over:
            self._shown.add(self._cursor.cut())
            yield
        self._shown.add(self._cursor.cut())

    def _fence(self, kind: str) -> Steps[None]:
        """Three backticks or tildes, or more: around calls, before a block of code, or just so."""
        cursor = self._cursor
        ticks = yield from cursor.run(_RUNS[kind])
        yield from cursor.run(BLANK)
        language = yield from cursor.run(WORD)
        space = yield from cursor.space()
        may_begin = self._shown.unsaid and language not in _SETTINGS
        begins = (*self._grammar.begins, *self._elements) if may_begin else ()
        begins = (*begins, *self._grammar.call_blocks.get(language, ()))
        openers = self._grammar.turns if self._shown.thinks else (*self._openers, *begins)
        mark = yield from cursor.sees(*openers)
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
                yield from cursor.run(_RUNS[ticks[:3]])
                cursor.cut()
                self._shown.gap()
                return
            mark = yield from cursor.sees(*self._openers, *self._elements)
            if not mark:
                cursor.back(len(space))
            if not mark or not (yield from self._call(mark)):
                return

    def _code(self, ticks: str) -> Steps[None]:
        """Inside a fenced block. From a marker on it is held, until the block is closed and it is text."""
        cursor, held, end = self._cursor, False, _CODE_ENDS[ticks[:3]]
        while True:
            mark = cursor.seek(marks(end) if held else marks(*self._in_code, end))
            if not held:
                self._shown.add(cursor.cut())
            if mark.startswith("\n"):
                cursor.at += 1
                yield from cursor.run(BLANK)
                closing = yield from cursor.run(_RUNS[ticks[:3]])
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
        if held and not cursor.broken_off:  # never closed: read it again, as if the fence had been text
            cursor.back(cursor.taken)
            self._marks, self._marks_in_thought = marks(*self._known), marks(*self._known_in_thought)
