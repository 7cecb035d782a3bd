"""What was said in conversations whose turns ended here: a cache that spares the next turn the reading."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from dragoman.messages.message import File, Message, Part, ToolCall
from dragoman.store.store import Started
from dragoman.turn.live.log import TurnLog

_ROOM = 64 * 2**20  # bytes
_ANY = 500  # bytes that a message or a part of one takes, whatever is in it


@dataclass(slots=True, frozen=True)
class _EndedPath:
    revision: int
    path: list[Message]
    size: int


class Paths:
    """Paths of ended turns, as many as there is room for; the one used longest ago goes first."""

    def __init__(self, *, room: int = _ROOM) -> None:
        self._room = room
        self._ended: OrderedDict[str, _EndedPath] = OrderedDict()
        self.size = 0  # in bytes, estimated

    def keep(self, log: TurnLog) -> None:
        self._pop(log.conversation.id)
        if log.resumed:
            return  # its revision was not counted from the start
        size = sum(map(_size, log.path))
        if size > self._room:
            return
        self._ended[log.conversation.id] = _EndedPath(log.revision, log.path, size)
        self.size += size
        while self.size > self._room:
            self._pop(next(iter(self._ended)))

    def take(self, started: Started) -> list[Message] | None:
        """The path of this conversation, if nobody has changed it since, with the new message at its end."""
        if started.message is None:
            return None
        if started.message.parent is None and started.conversation.leaf is None:
            return [started.message]
        ended = self._pop(started.conversation.id)
        if ended is None:
            return None
        path = ended.path
        if started.revision != ended.revision + 1 or not path or path[-1].id != started.message.parent:
            return None
        return [*path, started.message]  # a copy: who holds the earlier turn reads on in its own

    def forget(self, conversation: str) -> None:
        self._pop(conversation)

    def _pop(self, conversation: str) -> _EndedPath | None:
        ended = self._ended.pop(conversation, None)
        if ended is not None:
            self.size -= ended.size
        return ended


def _size(message: Message) -> int:
    """About how many bytes it takes in memory. Cheap, since every message of a path is asked at every end."""
    return _ANY + sum(map(_part_size, message.parts))


def _part_size(part: Part) -> int:
    if isinstance(part, ToolCall):
        text = sum(len(value) if isinstance(value, str) else _ANY for value in part.arguments.values())
        if (result := part.result) is not None:  # a value is about as long as the text that was made from it
            text += len(result.text) * (1 if result.value is None else 2)
        return _ANY + text
    if isinstance(part, File):
        return _ANY + len(part.url or "")
    return _ANY + len(part.message if part.type == "error" else part.text)
