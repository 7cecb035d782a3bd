"""Scan a streaming reply for the calls written in it, and for the text to show meanwhile.

The theory, on one page. Everything here follows from four rules.

1. *A format is told or known* (D6). A scanner reads one grammar: the format that the prompt described, or the
   one that the model's family was trained on. It never searches for anything else.
2. *A call has a place* (D8). It begins at the start of a line or after a sentence, never in a quotation, in
   code or in a table. Words may come before calls, not after them: calls end a reply. In a fence, calls
   count if the reply has no words outside. Text that a user or a tool brought (`quotes`) is never a call.
3. *Reasoning is not a reply* (W4). Between the tags of reasoning nothing is a call, and in a call nothing is
   reasoning. An end of reasoning without a start means that the prompt began it: all so far was reasoning.
4. *Text is shown as it came* (D2). A scanner holds back only what may be a call. Held text is either a call
   in the end, or it is shown unchanged. White space shrinks where a call was removed (`visible.py`).

A grammar names what begins a call (`opens`, and `begins` for calls without a marker) and reads one from a
cursor. A reading is a generator that waits for text, so every cut of the stream gives the same result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from dragoman.dialects.cursor import BLANK, REACH, TICKS, TILDES, WORD, Cursor, Form, Marks, Steps, marks
from dragoman.dialects.visible import Piece, VisibleText, Voice
from dragoman.messages.message import Arguments
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
    """A call as a model wrote it. `id` is the model's name for it, `format` the dialect it was written in."""

    name: str
    arguments: Arguments
    id: str = ""
    format: str = field(default="", compare=False)
    raw: str = field(default="", compare=False)
    """The call's own text, if several calls are read together and need nothing around them."""


@dataclass(slots=True, frozen=True)
class BadCall:
    """An unreadable call. `error` tells the model why, and how to write it. `raw` is its text."""

    error: str
    name: str = ""
    raw: str = ""
    format: str = field(default="", compare=False)


FoundCall: TypeAlias = TextCall | BadCall
Reading: TypeAlias = Steps[Sequence[FoundCall] | Voice | None]
"""The content that a marker begins: calls, another voice, or (None) only text."""


class Grammar(Protocol):
    """The interface of a dialect for the scanner."""

    name: str
    opens: tuple[str, ...]
    """Markers that begin a call."""
    drops: tuple[str, ...]
    """Markers that begin nothing: wrappers of calls, and left-over closing tags."""
    sections: tuple[str, ...]
    """Tokens, among `drops`, with which text begins: calls before one have ended, whatever follows."""
    bare: tuple[str, ...]
    """How a call without a marker begins, on a separate line."""
    begins: tuple[Form, ...]
    """How a call without a marker begins at the start of a reply, and only there."""
    thoughts: Mapping[str, str]
    """Markers, among `opens`, that begin reasoning, each with the marker that ends it."""
    turns: tuple[str, ...]
    """Markers, among `opens`, with which another voice begins: inside reasoning, only these count."""
    results: tuple[Form, ...]
    """The text before results: a model that writes it invents a result."""

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        """Read one call, or several that belong together. `opener` was read. It is "" for a bare call."""


_FENCE, _TILDES = "```", "~~~"
_RUNS = {_FENCE: TICKS, _TILDES: TILDES}
_CODE_ENDS: dict[str, Form] = {one: ("\n", "[ \t]{0,64}", *one) for one in _RUNS}
_INLINE_END = marks("`", "\n")
_TOKEN = re.compile(r"[|｜]|^\[[A-Z_]+\]$|^\]<\]")  # how vocabularies spell special tokens


def is_token(mark: str) -> bool:
    """Return whether a marker is a special token, which prose contains only in quotations."""
    return _TOKEN.search(mark) is not None


class Scanner:
    """A scanner that is fed with the reply and returns what may be shown. `found` has the calls, in order."""

    def __init__(
        self,
        grammar: Grammar,
        tools: Tools | None = None,
        *,
        thinking: bool = True,
        inside: bool = False,
        quotes: Callable[[str], bool] = lambda raw: False,
    ) -> None:
        """Set up the scanner.

        `thinking`: reasoning may come as tags. `inside`: the prompt has begun reasoning. `quotes` returns
        whether a text came from a user or a tool.
        """
        self.found: list[FoundCall] = []
        self.lone_end = False  # an end of reasoning came without a start
        self.unclosed = False  # the reply ended inside reasoning
        self.tagged = False  # a tag of reasoning has come
        self.assumed = ""  # the words that seem to begin reasoning, until something ends it
        self._grammar = grammar
        self._tools = tools
        self._quotes = quotes
        self._cursor = Cursor()
        self._headers = HEADERS if thinking else {}
        self._thoughts = {**(THOUGHTS if thinking else {}), **grammar.thoughts}
        self._thought_ends = frozenset(self._thoughts.values()).intersection(CLOSING)
        calls = (one for one in grammar.opens if one not in self._thoughts)
        self._openers: tuple[Form, ...] = (*calls, *((grammar.bare,) if grammar.bare else ()))
        endings = (*END_TOKENS, *(ANSWERS.values() if thinking else ()))
        self._known = (*self._openers, *self._thoughts, *self._thought_ends, *grammar.drops, *endings)
        self._marks = marks(*self._known, *_RUNS)
        self._marks_in_thought = marks(*grammar.turns, *END_TOKENS) if grammar.turns else self._marks
        self._shown = VisibleText()
        self._held: list[str] = []  # text that is calls if nothing but calls follows
        self._calls: list[FoundCall] = []  # the calls in it
        self._about = False  # this paragraph quotes the format
        self._answer_end = ""  # the tag that ends the answer, if one began it
        self._nested = 0  # starts nested in the last reasoning: as many extra ends may follow
        # everything was read; only a chunk that matches this is scanned
        self._idle: re.Pattern[str] | None = None
        self._steps = self._run(inside)

    def feed(self, piece: str) -> Sequence[Piece]:
        if self._idle is not None and piece and not self._idle.search(piece):
            return self._shown.say(piece)  # most chunks of most replies
        self._cursor.feed(piece)
        next(self._steps)
        return self._shown.pieces()

    def end(self, *, cut: bool = False, as_text: bool = False) -> list[Piece]:
        """End the reply. `cut`: it broke off, so there may have been more to come.

        `as_text`: possible calls at its end are text.
        """
        self._cursor.broken_off = cut
        self._cursor.over = True
        for _ in self._steps:
            raise AssertionError("a step waits for text, but the reply is over")
        if self._held:
            (self._release if as_text else self._commit)()
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
            if self._shown.unsaid and not self._shown.thinks:
                if self.found or self._calls:
                    yield from self._made_up()
                if self.tagged and not self._answer_end:
                    yield from self._marked_answer()
                if grammar.begins:
                    yield from cursor.space()
                    begun = yield from cursor.sees(*grammar.begins)
                    if begun and (yield from self._call(begun)):
                        continue
            wanted = self._marks_in_thought if self._shown.thinks else self._marks
            mark = cursor.seek(wanted)
            self._say(cursor.cut())
            if not mark and cursor.over:
                return
            if not mark:
                yield from self._wait(wanted)
            # closes code that another such fence opened in this line
            elif mark == _FENCE and self._shown.in_ticks:
                yield from cursor.run(TICKS)
            elif mark == _TILDES and not self._is_fresh:  # tildes have no meaning within a line
                yield from cursor.run(TILDES)
            elif mark in _RUNS:
                yield from self._fence(mark)
            elif (yield from self._in_inline_code()):
                yield from self._inline(mark)
            elif self._is_quoted(mark):
                cursor.at += len(mark)
            elif mark in self._thought_ends:
                self._end_of_thought(mark)
            elif mark == self._answer_end or (mark in END_TOKENS and mark not in grammar.opens):
                yield from self._end_token(mark)
            elif mark in grammar.drops:
                self._drop_or_hold(mark)
            elif mark in ANSWERS.values():
                cursor.at += len(mark)
            else:
                yield from self._call(mark)

    def _wait(self, wanted: Marks) -> Steps[None]:
        """Wait for text. A chunk without a wanted character is shown without scanning."""
        if self._cursor.at == len(self._cursor.text) and not self._held and not self._about:
            self._idle = wanted.first
        yield
        self._idle = None

    # ── calls, and text held until they are certain ───────────────────────────────────────────────

    @property
    def _is_fresh(self) -> bool:
        """Whether this line contains only white space or calls so far."""
        return bool(self._held) or self._shown.fresh

    def _has_place(self, mark: str) -> bool:
        """Return whether a call may begin here (D8).

        If not, the rest of the paragraph is about calls, too.
        """
        if self._held:
            return True
        shown = self._shown
        begins_line = shown.fresh and (shown.unsaid or not shown.indent)
        placed = begins_line or (shown.ends_sentence and mark in self._grammar.opens)
        self._about = self._about or shown.quoted or not placed
        return not self._about

    def _is_quoted_token(self) -> bool:
        """Return whether a token that ends a call or begins a voice is only quoted here."""
        self._about = self._about or (not self._held and self._shown.quoted)
        return self._about

    def _call(self, mark: str) -> Steps[bool]:
        """Read what a marker begins. False if that was only text."""
        cursor = self._cursor
        if mark in self._thoughts:
            yield from self._thought(mark)
            return True
        is_turn = mark in self._grammar.turns
        if self._is_quoted_token() if is_turn else not self._has_place(mark):
            cursor.at += len(mark)
            return False
        found = yield from self._read(mark)
        is_call = found is not None and not isinstance(found, str)
        if found is None or (is_turn and is_call and not self._has_place(mark)):
            self._say(cursor.cut())
            return False
        raw = cursor.cut()
        if isinstance(found, str):
            self._commit()
            self._shown.switch(found)
        elif found or self._held or not is_token(mark):
            self._hold(raw, found)
        else:
            self._shown.gap()
        return True

    def _read(self, mark: str) -> Steps[Sequence[FoundCall] | Voice | None]:
        """Read what the marker begins: at least one character, even if it is text."""
        cursor = self._cursor
        opener = mark if mark in self._grammar.opens else ""
        before = cursor.taken
        cursor.at += len(opener)
        found = yield from self._grammar.read(cursor, opener, self._tools)
        if (yield from self._unread_thought(found, before + len(opener))):
            found = None
        if found is None and cursor.taken == before:
            cursor.at += 1
        return found

    def _say(self, text: str) -> None:
        """Show text. If it contains words, the held text was not a call."""
        if self._held and (not text or text.isspace() or self._breaks_off(text)):
            self._held.append(text)
            return
        self._release()
        self._about = self._about and "\n\n" not in f"{self._shown.last}{text}"
        self._shown.add(text)

    def _breaks_off(self, text: str) -> bool:
        """Return whether the reply ends within a tag."""
        cursor = self._cursor
        at_end = cursor.over and cursor.at == len(cursor.text)
        tags = (*self._grammar.opens, *self._grammar.drops)
        return at_end and any(mark.startswith(text.strip()) for mark in tags)

    def _release(self) -> None:
        """Show the held text, which was not calls."""
        self._shown.add("".join(self._held))
        self._held.clear()
        self._calls.clear()

    def _hold(self, raw: str, found: Sequence[FoundCall] = (), *, inside: Sequence[str] = ()) -> None:
        """Hold text with calls. `inside` is the content of its fence, if any, call by call."""
        texts = (*(inside or (raw,)), *(one.raw for one in found if one.raw))
        if found and any(map(self._quotes, texts)):
            self._say(raw)
            return
        self._held.append(raw)
        for one in found:
            known = replace(one, format=one.format or self._grammar.name)
            self._calls.append(replace(known, raw=raw) if isinstance(known, BadCall) else known)

    def _commit(self) -> None:
        """Accept the held text as calls."""
        self.found += self._calls
        self._held.clear()
        self._calls.clear()
        self._shown.gap()

    def _drop(self, mark: str) -> None:
        self._cursor.at += len(mark)
        self._cursor.cut()
        self._shown.gap()

    def _drop_or_hold(self, mark: str) -> None:
        """Drop or hold a tag: a closing tag is protocol next to calls, a special token anywhere but in
        quotations."""
        if self._held and mark in self._grammar.sections:
            self._commit()
        self._cursor.at += len(mark)
        if self._held or (not is_token(mark) and self._has_place(mark)):
            self._hold(self._cursor.cut())
        elif is_token(mark) and not self._is_quoted_token():
            self._cursor.cut()
            self._shown.gap(fresh=False)

    def _end_token(self, mark: str) -> Steps[None]:
        """Leave out the token if nothing but other tokens comes before or after it."""
        cursor = self._cursor
        cursor.at += len(mark)
        yield from cursor.space()
        while (yield from cursor.accept(*END_TOKENS)):
            yield from cursor.space()
        nothing_before = self._shown.unsaid and not self._held
        if nothing_before or (cursor.over and cursor.at == len(cursor.text)):
            cursor.cut()
            self._commit()

    def _made_up(self) -> Steps[None]:
        """Read a result that the model invented after calls at the start of the reply.

        The rest of the reply builds on it, so it is shown as reasoning, and no call in it counts. If an end
        of reasoning without a start follows, the calls were part of that reasoning.
        """
        cursor = self._cursor
        space = yield from cursor.space()
        if not (yield from cursor.accept(*self._grammar.results)):
            cursor.back(len(space))
            return
        yield from cursor.space()
        self._commit()
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

    # ── reasoning ─────────────────────────────────────────────────────────────────────────────────

    def _marked_answer(self) -> Steps[None]:
        """Leave out the tag that some models put before the answer, after reasoning."""
        space = yield from self._cursor.space()
        if opening := (yield from self._cursor.accept(*ANSWERS)):
            self._answer_end = ANSWERS[opening]
            self._drop("")
        else:
            self._cursor.back(len(space))

    def _thought(self, opener: str) -> Steps[None]:
        """Show the text after the marker as reasoning, up to its end. Without a marker, the prompt has begun
        it. Some replies begin it again."""
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
        """Handle an end without a known start, or one that ends outer reasoning."""
        self._release()
        if self._nested or not self.tagged:
            self.found.clear()
            self.lone_end = self.lone_end or not self.tagged
            self._nested = max(0, self._nested - 1)
            self._shown.misread()
        self.tagged = True
        self._drop(mark)

    def _unread_thought(self, found: Sequence[FoundCall] | Voice | None, start: int) -> Steps[bool]:
        """Return whether a failed or broken call contains a reasoning tag, or a prefix of one like a value.

        A draft call in reasoning breaks off like this. If so, move back to the tag.
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
        """Return whether a tag without special tokens is in code."""
        foreign = mark in THOUGHTS or mark in CLOSING
        if not foreign or mark in self._grammar.thoughts or mark in self._grammar.drops:
            return False
        return self._shown.quotes or self._shown.in_fence

    # ── code ──────────────────────────────────────────────────────────────────────────────────────

    def _in_inline_code(self) -> Steps[bool]:
        """Return whether a backtick opened code: right before this, or earlier in the line, if another closes
        it."""
        if self._held or not self._shown.in_ticks or self._shown.quotes:
            return not self._held and self._shown.quotes
        before, mark = yield from self._cursor.until("`", "\n")
        self._cursor.back(len(before))
        # otherwise none closes it, and the line need not be searched again
        self._shown.in_ticks = mark == "`"
        return self._shown.in_ticks

    def _inline(self, mark: str) -> Steps[None]:
        """Read text after an opening backtick, up to the closing one.

        If the code begins with the marker, the closing one may be in another line of the paragraph: calls
        have several lines.
        """
        self._cursor.at += len(mark)
        if self._shown.quotes:
            code, closed = yield from self._cursor.until("`", "\n\n")
            if closed == "`":
                self._say(self._cursor.cut())
                self._shown.in_ticks = True
                return
            self._cursor.back(len(code))
        while not self._cursor.seek(_INLINE_END) and not self._cursor.over:
            self._say(self._cursor.cut())
            yield
        self._say(self._cursor.cut())

    def _fence(self, kind: str) -> Steps[None]:
        """Read three backticks or tildes, or more: around the whole reply, or around a code block."""
        cursor = self._cursor
        ticks = yield from cursor.run(_RUNS[kind])
        yield from cursor.run(BLANK)
        yield from cursor.run(WORD)
        if self._shown.unsaid and (yield from self._fenced_calls(ticks)):
            return
        space = yield from cursor.space()
        self._say(cursor.cut())
        if "\n" in space:
            yield from self._code(ticks)

    def _fenced_calls(self, ticks: str) -> Steps[bool]:
        """Return whether the block contains only calls. If not, nothing of it is read."""
        cursor, calls, texts = self._cursor, list[FoundCall](), list[str]()
        start = cursor.taken
        while True:
            yield from cursor.space()
            if calls and ((yield from cursor.accept(ticks)) or cursor.at == len(cursor.text)):
                raw = cursor.cut()
                self._hold(raw, calls, inside=texts)
                return True
            mark = yield from cursor.sees(*self._openers, *self._grammar.begins)
            before = cursor.taken
            found = (yield from self._read(mark)) if mark else None
            if not found or isinstance(found, str):
                cursor.back(cursor.taken - start)
                return False
            calls += found
            texts.append(cursor.peek()[before:])

    def _code(self, ticks: str) -> Steps[None]:
        """Read text inside a fenced block, up to its end."""
        cursor, end = self._cursor, marks(_CODE_ENDS[ticks[:3]], *END_TOKENS)
        while True:
            mark = cursor.seek(end)
            self._say(cursor.cut())
            if mark in END_TOKENS:
                yield from self._end_token(mark)
            elif mark:
                cursor.at += 1
                yield from cursor.run(BLANK)
                closing = yield from cursor.run(_RUNS[ticks[:3]])
                yield from cursor.run(BLANK)
                end_of_line = (yield from cursor.sees("\n")) or cursor.at == len(cursor.text)
                if end_of_line and len(closing) >= len(ticks):
                    self._say(cursor.cut())
                    return
            elif cursor.over:
                return
            else:
                yield
