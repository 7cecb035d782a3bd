"""Assembles calls that arrive in pieces, and announces them as `call.input` events.

Shared by all wires. Those that announce a call with its whole name use `start`, `piece` and `end`, or
`whole`; those that do not say which pieces belong together use `piece` alone.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import TypeAlias

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from dragoman.messages.boundary import is_finite, is_shallow, read_strict_json
from dragoman.messages.events import CallInputDelta, CallInputEnd, CallInputStart, Event
from dragoman.messages.message import Arguments, canonical
from dragoman.wire.prose import LONE, is_whole, join_all, join_halves, read_torn_json, split_half
from dragoman.wire.wire import call_id

# Parses the argument text of a call: the object it stands for, or None where that is not certain.


# A string is matched whole, so that a comma inside one is never taken for a trailing one.
# One that is never closed is taken to the end: its other quotes would each be tried as the beginning of one.
_STRING_OR_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[}\]])')
_ENCODINGS = 2  # an object may have been made a string, and that a string again


def parse_arguments(text: str) -> Arguments | None:
    """The arguments, if the text is a complete JSON object, or becomes one with nothing lost or added.

    Nothing and `null` mean no arguments; a trailing comma goes; a string that holds an object is opened; an
    object that comes twice, or beside an empty one, counts once; half a character becomes U+FFFD. Anything
    else is None: never a guess.
    """
    text = join_halves(text)
    for _ in range(_ENCODINGS + 1):
        text = text.strip()
        if text in ("", "null"):
            return {}
        try:
            value = _strict(text)
        except ValueError:
            return _repaired(text)
        if isinstance(value, dict):
            return value
        if not isinstance(value, str):
            return None
        text = value
    return None


def _repaired(text: str) -> Arguments | None:
    text = _STRING_OR_TRAILING_COMMA.sub(r"\1", text).removesuffix(",")
    try:
        value = _strict(text)
    except ValueError:
        return _doubled(text)
    return value if isinstance(value, dict) else None


def _doubled(text: str) -> Arguments | None:
    """What two objects in a row agree on: they are equal, or one of them is empty."""
    for cut in re.finditer(r"\}\s*(?=\{)", text):
        try:
            first, second = _strict(text[: cut.end()]), _strict(text[cut.end() :])
        except ValueError:
            continue
        if isinstance(first, dict) and isinstance(second, dict):
            agree = not first or not second or canonical(first) == canonical(second)
            return (first or second) if agree else None
    return None


def _strict(text: str) -> JsonValue:
    if not is_shallow(text):
        raise ValueError("too deep to be stored")
    try:
        return read_strict_json(text)
    except ValueError:
        if "\\u" not in text:
            raise
    value = join_all(read_torn_json(text.encode()))
    if not is_finite(value):
        raise ValueError("it holds a number that is not finite")
    return value


RawArguments: TypeAlias = str | Arguments | None
"""Arguments, or a piece of them, as a provider may write them."""


class Calls:
    """The calls of one reply. `len` is how many there are."""

    def __init__(self, reply: str) -> None:
        self._reply = reply
        self._calls: list[_ArrivingCall] = []
        self._at: dict[Hashable, list[_ArrivingCall]] = {}  # the calls that came at an index, the newest last

    def __len__(self) -> int:
        return len(self._calls)

    # ── calls that are announced ──────────────────────────────────────────────────────────────────

    def start(
        self, index: Hashable, name: str, *, id: str | None = None, signature: str | None = None
    ) -> Iterator[Event]:
        """A call begins, and this is its whole name."""
        call = self._new(index, id)
        call.take_name(name)
        call.signature = signature
        yield from call.announce()

    def end(
        self, index: Hashable, whole: RawArguments = None, *, signature: str | None = None
    ) -> Iterator[Event]:
        """The call at this index is complete. `whole`: all its arguments, once more or only now."""
        for call in self._at.get(index, ())[-1:]:
            call.signature = signature or call.signature
            if whole:
                yield from call.replace(whole)
            yield from call.end()

    def whole(
        self, name: str, arguments: RawArguments, *, id: str | None = None, signature: str | None = None
    ) -> Iterator[Event]:
        """A call that comes in one piece."""
        index = object()
        yield from self.start(index, name, id=id, signature=signature)
        yield from self.end(index, arguments)

    # ── calls that have to be found ───────────────────────────────────────────────────────────────

    def piece(
        self,
        *,
        index: Hashable = None,
        id: str | None = None,
        name: str | None = None,
        arguments: RawArguments = None,
        signature: str | None = None,
        new: bool = False,
    ) -> Iterator[Event]:
        """A piece of some call: its index and id say of which one, as far as they can be trusted.

        `new` says that it certainly begins a call.
        """
        call = None if new else self._find(index, id or None, name, arguments)
        if call is None:
            if not (id or name or arguments):
                return  # a placeholder, no call
            yield from self._announce()
            call = self._new(index, id)
        elif id:
            call.provider_id = call.provider_id or id
        if signature:
            call.signature = signature
        if name:
            call.take_name(name)
        if arguments is not None and arguments != "":
            yield from call.add(arguments)

    def close(self, *, cut: bool = False) -> Iterator[Event]:
        """The reply is over. `cut` says that it broke off: no arguments then means that none had come yet."""
        for call in self._calls:
            yield from call.end(cut=cut)

    def _find(
        self, index: Hashable, id: str | None, name: str | None, arguments: RawArguments
    ) -> _ArrivingCall | None:
        """The call that a piece continues; None if it begins one."""
        here = self._calls if index is None else self._at.get(index)
        if not here:
            return None
        call = here[-1]
        if id and call.provider_id != id:
            earlier = next((old for old in reversed(here) if old.provider_id == id), None)
            if earlier is None and call.provider_id is not None and not call.goes_on(name, arguments):
                return None  # a new id at an occupied index is a new call
            call = earlier or call
        if name and call.is_over(name, arguments, id=id, loose=index is None and id is None):
            return None
        return call

    def _announce(self) -> Iterator[Event]:
        """Another call begins: what is held of the names so far is all there is."""
        for call in self._calls:
            if call.name and not call.announced:
                yield from call.announce()

    def _new(self, index: Hashable, id: str | None) -> _ArrivingCall:
        call = _ArrivingCall(call_id(self._reply, len(self._calls)), join_halves(id) if id else None)
        self._calls.append(call)
        self._at.setdefault(index, []).append(call)
        return call


class _ArrivingCall:
    """One call while it arrives. It is announced when its name can grow no more: with its first argument."""

    __slots__ = ("announced", "ended", "half", "id", "name", "pieces", "provider_id", "signature")

    def __init__(self, id: str, provider_id: str | None) -> None:
        self.id = id
        self.provider_id = provider_id
        self.name = ""
        self.signature: str | None = None
        self.pieces: list[str] = []
        self.half = ""  # of a character, at the end of the last piece
        self.announced = False
        self.ended = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def goes_on(self, name: str | None, arguments: RawArguments) -> bool:
        """Whether a piece with another id is one of this call: some make up an id for every piece."""
        if name or not arguments:
            return False
        if isinstance(arguments, str) and not arguments.lstrip().startswith(("{", '"')):
            return True
        text = self.text.rstrip()  # parsed only where it may end: there are many pieces
        return not text.endswith(("}", '"')) or parse_arguments(text) is None

    def take_name(self, name: str) -> None:
        """A name comes whole, in pieces, or again and again: what is held already is not added once more."""
        name = join_halves(name)
        if not self.announced:
            self.name = name if name.startswith(self.name) else self.name + name

    def is_over(self, name: str, arguments: RawArguments, *, id: str | None, loose: bool) -> bool:
        """Whether a piece that brings a name belongs to another call, though index and id do not say so.

        `loose` means that nothing but the order holds the pieces together.
        """
        if not self.name or not self.pieces:
            return loose and self.name not in ("", name)
        if name != self.name:
            return True  # a name does not grow once there are arguments
        text = _text(arguments)
        if not text.lstrip().startswith("{"):
            return False
        held = parse_arguments(self.text)
        if held is None or (id and not held):  # an empty object stood in for what comes now
            return False
        again = parse_arguments(text)
        return again is None or canonical(again) != canonical(held)  # equal: the whole, once more

    def add(self, arguments: str | Arguments) -> Iterator[Event]:
        if self.ended:
            return
        if not isinstance(arguments, str):
            yield from self.replace(arguments)
            return
        if self.half or not is_whole(arguments):
            arguments, self.half = split_half(self.half + arguments)
            if not arguments:
                return
        self.pieces.append(arguments)
        if self.announced:
            yield CallInputDelta(self.id, arguments)
        elif self.name:
            yield from self.announce()

    def replace(self, whole: str | Arguments) -> Iterator[Event]:
        """All arguments at once: they count, and the pieces were for display."""
        text, shown = _text(whole), self.text
        self.pieces[:], self.half = [text], ""
        if self.announced and text != shown and text.startswith(shown):
            yield CallInputDelta(self.id, text[len(shown) :])
        elif self.name and not self.announced:
            yield from self.announce()

    def announce(self) -> Iterator[Event]:
        self.announced = True
        yield CallInputStart(self.id, self.name, self.provider_id)
        if self.pieces:
            yield CallInputDelta(self.id, self.text)

    def end(self, *, cut: bool = False) -> Iterator[Event]:
        if self.ended:
            return
        self.ended = True
        if self.half:
            self.pieces.append(LONE)
        if not self.announced:
            yield from self.announce()
        elif self.half:
            yield CallInputDelta(self.id, LONE)
        text = self.text
        arguments = None if cut and not text.strip() else parse_arguments(text)
        yield CallInputEnd(self.id, self.name, arguments, text if arguments is None else None, self.signature)


def _text(arguments: RawArguments) -> str:
    if arguments is None or isinstance(arguments, str):
        return join_halves(arguments or "")
    try:
        return to_json(arguments).decode()
    except PydanticSerializationError:  # half a character in one of its texts
        return to_json(join_all(arguments)).decode()
