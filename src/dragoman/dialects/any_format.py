"""Calls in whichever format a model of which nothing is known writes them: told by how the first one begins.

The markers of all dialects are looked for, and each is read by the dialect that has it. Calls without a
marker count only if a reply begins with them, and if they name tools there are. So do those behind a tag or a
token that no dialect has, and behind `Action:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dragoman.dialects.cursor import Cursor, Form, marks
from dragoman.dialects.elements import ELEMENTS, read_elements, read_inside
from dragoman.dialects.grammar import Dialect, tool_named
from dragoman.dialects.llama_json import LISTED
from dragoman.dialects.loose import (
    LOOSE_BEGINS,
    LOOSE_BLOCKS,
    LOOSE_STATEMENTS,
    LOOSE_SUSPECTS,
    LOOSE_TYPESCRIPT,
    is_loose,
    read_loose,
)
from dragoman.dialects.scanner import Reading, TextCall, Tools

_LEFT_OUT = (  # too much else begins like these, or it is read without them
    *(">>>", "<|start|>assistant", "to=self<|message|>", "Thought:", "Action:"),
    "<｜tool_calls_begin｜>",
)
_TOKEN_LIKE = re.compile(r"[|｜:\[]|tool_call")  # what is never text: other closing tags may be
_PYTHON_TAGS = ("<|python_tag|>", "<|python_start|>", "<|tool_call_start|>")
_FUNCTION_CALLS, _INVOKE, _FUNCTION_NAME = "<function_calls>", "<invoke name=", '<function name="'
_LISTED_LINE: Form = ("\n", r"[ \t]{0,8}", *LISTED)
_VARIANTS: tuple[Form, ...] = (
    (
        "<",
        *"tool_call",
        "s?",
        ":",
        r"[\w-]{1,32}",
        ">",
    ),  # Hunyuan 4: each of its models has a suffix of its own
    (
        "<",
        "[｜|]",
        r"[A-Z]{2,12}",
        "[｜|]",
        r"[a-z]",
        r"[a-z_]{2,20}",
        ">",
    ),  # GigaChat 3.5, and as DeepSeek has it
    ("<", r"[a-z0-9]{2,20}", *"_tool_call", ">"),  # iQuest Coder
)
_AFFIX = re.compile(r":[\w-]+|[｜|][A-Z]+[｜|]|[a-z0-9]+_(?=tool_call>)")
_VARIANT = marks(*_VARIANTS)
_ELEMENT = marks(*ELEMENTS)
_JSON = ("{", (r"\[", r"\s{0,64}", r'[{"\]]'))


class AnyFormat(Dialect):
    name = "any"

    def __init__(self, written: Dialect, others: Iterable[Dialect]) -> None:
        """`written` is how it writes calls itself, and what a marker means that several have."""
        known = {one.name: one for one in (written, *others)}
        self._written = written
        self._json, self._python, self._channels, self._olmo = (
            known[name] for name in ("llama_json", "llama_pythonic", "harmony", "olmo")
        )
        self.how = written.how
        self.ids = written.ids
        self.bare, self.sure = written.bare, written.sure
        self._unmarked = (*written.begins, *((written.bare,) if written.bare else ()))
        self._owners: dict[str, Dialect] = {
            opener: written for opener in written.opens if opener not in written.thoughts
        }
        for one in known.values():
            for opener in one.opens:
                if opener not in one.thoughts and opener not in _LEFT_OUT:
                    self._owners.setdefault(opener, one)
        self.thoughts = {
            begin: end
            for one in known.values()
            for begin, end in one.thoughts.items()
            if begin not in _LEFT_OUT
        }
        self.opens = (*self._owners, *self.thoughts)
        self.turns = (*dict.fromkeys((*written.turns, *self._channels.turns)),)
        drops = dict.fromkeys(mark for one in known.values() for mark in one.drops)
        self.drops = (*(mark for mark in drops if mark not in self.opens and _TOKEN_LIKE.search(mark)),)
        self.begins = (
            *written.begins,
            *self._channels.begins,
            *self._json.begins,
            self._json.bare,
            self._python.bare,
            *LOOSE_BEGINS,
        )
        self.suspects = (*LOOSE_SUSPECTS, _LISTED_LINE, *_VARIANTS)
        self.elements = ELEMENTS
        in_blocks = (*self.begins, *self.elements, *LOOSE_STATEMENTS)
        self.call_blocks = {**dict.fromkeys(LOOSE_BLOCKS, in_blocks), "typescript": (LOOSE_TYPESCRIPT,)}

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener in _PYTHON_TAGS:
            yield from cursor.space()
            one = self._json if (yield from cursor.sees(*_JSON)) else self._python
            return (yield from one.read(cursor, opener, tools))
        if opener == _FUNCTION_CALLS:
            if (found := (yield from read_inside(self._written, cursor, opener, tools))) is not None:
                return found
            yield from cursor.space()
            one = self._owners[opener] if (yield from cursor.sees(_INVOKE)) else self._olmo
            return (yield from one.read(cursor, opener, tools))
        if opener == _FUNCTION_NAME:
            return (yield from self._by_name(cursor, opener, tools))
        if opener:
            return (yield from self._owners[opener].read(cursor, opener, tools))
        if (yield from cursor.sees(*self._unmarked)):
            return (yield from self._written.read(cursor, "", tools))
        if (yield from cursor.sees(*self._channels.begins)):
            return (yield from self._channels.read(cursor, "", tools))
        if (yield from cursor.sees(LISTED, _LISTED_LINE)):
            yield from cursor.space()
            return (yield from self._json.read(cursor, "", tools))
        if (yield from cursor.sees(*_VARIANTS)):
            return (yield from self._variant(cursor, tools))
        is_element = yield from cursor.sees(*ELEMENTS)
        if is_element and (found := (yield from read_elements(self, cursor, tools))) is not None:
            return found
        if (yield from cursor.sees(*LOOSE_BEGINS, *LOOSE_SUSPECTS, *LOOSE_STATEMENTS)):
            return (yield from read_loose(self, cursor, tools))
        if is_element:
            return None
        one = self._python if (yield from cursor.sees(self._python.bare)) else self._json
        bare = yield from cursor.sees("{", "[")
        found = yield from one.read(cursor, "", tools)
        if bare and not isinstance(found, str):
            known = found and all(tool_named(call.name, tools) for call in found)
            return found if known else None
        return found

    def _by_name(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        """An element that one dialect claims, and that may hold elements which this does not have."""
        start = cursor.taken
        found = yield from self._owners[opener].read(cursor, opener, tools)
        if found and all(isinstance(one, TextCall) for one in found):
            return found
        size = cursor.taken - start
        cursor.back(size + len(opener))
        if (other := (yield from read_elements(self, cursor, tools))) is not None:
            return other
        cursor.at += len(opener) + size
        return found

    def _variant(self, cursor: Cursor, tools: Tools | None) -> Reading:
        """Calls in tags that are known but for what one model puts in front of or behind each name."""
        start = cursor.taken
        tag = yield from cursor.accept(*_VARIANTS)
        yield from cursor.until(f"</{tag[1:]}", tag)
        yield from cursor.accept(f"</{tag[1:]}")
        affix = _AFFIX.search(tag)
        assert affix is not None  # the forms have one
        plain = re.sub(
            rf"(</?){re.escape(affix[0])}|{re.escape(affix[0])}(?=>)", r"\1", cursor.peek()[start:]
        )
        found = self.parse(plain, tools).found
        if not found:
            cursor.back(cursor.taken - start)
        return found or None

    def format_of(self, mark: str) -> str:
        """The name of the dialect whose calls begin like this."""
        if mark in (*_PYTHON_TAGS, _FUNCTION_CALLS):  # each stands for several
            return self.name
        if mark in self._owners:
            return self._owners[mark].name
        if mark in self._json.begins:
            return self._json.name
        if mark.startswith("to="):
            return self._channels.name
        if is_loose(mark) or _VARIANT.whole.fullmatch(mark) or _ELEMENT.whole.fullmatch(mark):
            return self.name
        return self._json.name if mark[-1] in '"{[' else self._python.name

    def calls(self, calls: Sequence[TextCall]) -> str:
        return self._written.calls(calls)

    def result(self, id: str, tool: str, text: str) -> str:
        return self._written.result(id, tool, text)
