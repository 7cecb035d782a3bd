"""Assemble calls that arrive in chunks, and announce them as `call.input` events.

Shared by all wires. A wire that announces a call with its whole name uses `start`, `piece` and `end`, or
`whole`. A wire whose provider does not tell which chunks belong together uses only `piece`.
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

# Parse the argument text of a call: return its object, or None if that is ambiguous.


# A string is matched as a whole, so that a comma inside it is never taken for a trailing one. An unclosed
# string extends to the end: otherwise each of its other quotes would be tried as the start of one.
_STRING_OR_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[}\]])')
_ENCODINGS = 2  # An object can be encoded as a string, and that string again.


def parse_arguments(text: str) -> Arguments | None:
    """Return the arguments if the text is a complete JSON object, or becomes one with nothing lost or added.

    An empty text and `null` mean no arguments. A trailing comma is removed. A string that contains an object
    is parsed. An object that comes twice, or together with an empty one, counts once. A lone surrogate
    becomes U+FFFD. Anything else is None: never a guess.
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
    """Return the object that two objects in a row agree on: they are equal, or one of them is empty."""
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
"""Arguments, or a chunk of them, in the forms that providers use."""


class Calls:
    """The calls of one reply. `len` is their number."""

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
        """Begin a call with its whole name."""
        call = self._new(index, id)
        call.take_name(name)
        call.signature = signature
        yield from call.announce()

    def end(
        self, index: Hashable, whole: RawArguments = None, *, signature: str | None = None
    ) -> Iterator[Event]:
        """End the call at this index. `whole`: all its arguments, again or for the first time."""
        for call in self._at.get(index, ())[-1:]:
            call.signature = signature or call.signature
            if whole:
                yield from call.replace(whole)
            yield from call.end()

    def whole(
        self, name: str, arguments: RawArguments, *, id: str | None = None, signature: str | None = None
    ) -> Iterator[Event]:
        """Add a call that comes in one chunk."""
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
        """Add a chunk of some call. Its index and ID identify the call, as far as they are reliable.

        `new` marks a chunk that certainly begins a call.
        """
        call = None if new else self._find(index, id or None, name, arguments)
        if call is None:
            if not (id or name or arguments):
                return  # a placeholder, not a call
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
        """End the reply. `cut`: it broke off, so missing arguments mean that they had not arrived yet."""
        for call in self._calls:
            yield from call.end(cut=cut)

    def _find(
        self, index: Hashable, id: str | None, name: str | None, arguments: RawArguments
    ) -> _ArrivingCall | None:
        """Return the call that a chunk continues. None if it begins one."""
        here = self._calls if index is None else self._at.get(index)
        if not here:
            return None
        call = here[-1]
        if id and call.provider_id != id:
            earlier = next((old for old in reversed(here) if old.provider_id == id), None)
            if earlier is None and call.provider_id is not None and not call.goes_on(name, arguments):
                return None  # A new ID at an occupied index is a new call.
            call = earlier or call
        if name and call.is_over(name, arguments, id=id, loose=index is None and id is None):
            return None
        return call

    def _announce(self) -> Iterator[Event]:
        """Announce the earlier calls, because another one begins: their names are now complete."""
        for call in self._calls:
            if call.name and not call.announced:
                yield from call.announce()

    def _new(self, index: Hashable, id: str | None) -> _ArrivingCall:
        call = _ArrivingCall(call_id(self._reply, len(self._calls)), join_halves(id) if id else None)
        self._calls.append(call)
        self._at.setdefault(index, []).append(call)
        return call


class _ArrivingCall:
    """One call while it arrives. It is announced when its name is complete: with its first argument."""

    __slots__ = ("announced", "ended", "half", "id", "name", "pieces", "provider_id", "signature")

    def __init__(self, id: str, provider_id: str | None) -> None:
        self.id = id
        self.provider_id = provider_id
        self.name = ""
        self.signature: str | None = None
        self.pieces: list[str] = []
        self.half = ""  # of a surrogate pair, at the end of the last chunk
        self.announced = False
        self.ended = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def goes_on(self, name: str | None, arguments: RawArguments) -> bool:
        """Return whether a chunk with another ID continues this call: some providers invent an ID for every
        chunk."""
        if name or not arguments:
            return False
        if isinstance(arguments, str) and not arguments.lstrip().startswith(("{", '"')):
            return True
        text = self.text.rstrip()  # Parse only a possible end, because there are many chunks.
        return not text.endswith(("}", '"')) or parse_arguments(text) is None

    def take_name(self, name: str) -> None:
        """Add to the name, which comes whole, in chunks, or repeated. A repeated name is not added again."""
        name = join_halves(name)
        if not self.announced:
            self.name = name if name.startswith(self.name) else self.name + name

    def is_over(self, name: str, arguments: RawArguments, *, id: str | None, loose: bool) -> bool:
        """Return whether a chunk with a name begins another call, although index and ID do not show it.

        `loose`: only their order connects the chunks.
        """
        if not self.name or not self.pieces:
            return loose and self.name not in ("", name)
        if name != self.name:
            return True  # A name is complete once there are arguments.
        text = _text(arguments)
        if not text.lstrip().startswith("{"):
            return False
        held = parse_arguments(self.text)
        if held is None or (id and not held):  # An empty object was a placeholder for these arguments.
            return False
        again = parse_arguments(text)
        return again is None or canonical(again) != canonical(held)  # If equal, the chunk repeats the whole.

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
        """Use these complete arguments. The chunks were only for display."""
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
    except PydanticSerializationError:  # a lone surrogate in one of its texts
        return to_json(join_all(arguments)).decode()
