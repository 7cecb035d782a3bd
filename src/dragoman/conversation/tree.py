"""Models a conversation as a tree of messages: paths, versions, and the parent of a new message. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from dragoman.errors import BadRequest, NotFound
from dragoman.messages.boundary import check_json
from dragoman.messages.ids import new_id
from dragoman.messages.message import CallState, Message, Part, Summary, ToolCall, ToolResult
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence

LOCAL = "local"  # The local user, who owns everything without a user.


@dataclass(slots=True, frozen=True)
class Conversation:
    """A conversation without its messages. `leaf` is the parent of the next message.

    A sub-conversation names the conversation and the call that opened it.
    """

    id: str
    title: str | None = None
    leaf: str | None = None
    user: str | None = None
    settings: dict[str, JsonValue] = field(default_factory=dict)
    usage: Usage = Usage()
    created: float = 0.0
    updated: float = 0.0
    parent: str | None = None
    call: str | None = None
    pinned: bool = False  # Retention never deletes it.
    archived: bool = False  # archived until the next message
    tags: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        """Return the owner's name."""
        return self.user or LOCAL


class Tree:
    """The messages of one conversation by ID, and their children in order of arrival."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: dict[str, Message] = {}
        self._children: dict[str | None, list[str]] = {}
        for message in messages:
            self.add(message)

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages.values())

    def __contains__(self, id: str) -> bool:
        return id in self._messages

    def __getitem__(self, id: str) -> Message:
        try:
            return self._messages[id]
        except KeyError:
            raise NotFound("message", id) from None

    def add(self, message: Message) -> None:
        """Add a message, or update an existing one."""
        known = self._messages.get(message.id)
        if known is not None and known.parent != message.parent:
            raise BadRequest(sentence("message.cannot_move", message=message.id, parent=known.parent))
        if known is None:
            if message.parent is not None and message.parent not in self._messages:
                raise BadRequest(sentence("message.no_parent", message=message.id, parent=message.parent))
            self._children.setdefault(message.parent, []).append(message.id)
        self._messages[message.id] = message

    def path(self, leaf: str | None) -> list[Message]:
        """Return the path from the first message to this one."""
        path = []
        while leaf is not None:
            path.append(self[leaf])
            leaf = path[-1].parent
        path.reverse()
        return path

    def recent(self, leaf: str | None, turn: str | None = None) -> list[Message]:
        """Return the part of the path that a model may still be shown.

        It goes back to what the last summary keeps, and to the start of this turn.
        """
        path: list[Message] = []
        stop: str | None = None
        summed = enough = False
        while leaf is not None:
            message = self[leaf]
            if enough and (turn is None or message.turn != turn):
                break
            path.append(message)
            if not summed and (summary := summary_of(message)) is not None:
                summed, stop = True, summary.keeps_from
                enough = stop is None
            enough = enough or message.id == stop
            leaf = message.parent
        path.reverse()
        return path

    def versions(self, id: str) -> list[str]:
        """Return the message and its siblings, oldest first, as counted by ‹2/3›."""
        return list(self._children[self[id].parent])

    def children(self, id: str | None) -> list[str]:
        return list(self._children.get(id, ()))

    def tip(self, id: str) -> str:
        """Return the newest leaf below a message, to which a switch to that branch leads."""
        while children := self._children.get(id):
            id = children[-1]
        return id

    def question_of(self, id: str) -> Message:
        """Return the user message that a message answers, or the message itself if a user wrote it."""
        message = self[id]
        while message.role != "user" or message.author is not None:
            if message.parent is None:
                raise BadRequest(sentence("message.no_question", id=id))
            message = self[message.parent]
        return message


def summary_of(message: Message) -> Summary | None:
    return next((part for part in message.parts if isinstance(part, Summary)), None)


def copied(messages: Iterable[Message], conversation: str) -> dict[str, Message]:
    """Return copies of the messages for another conversation, with new IDs, keyed by their old IDs."""
    ids: dict[str | None, str | None] = {None: None}
    turns: dict[str | None, str | None] = {None: None}
    copies: dict[str, Message] = {}
    for message in messages:
        id = ids[message.id] = new_id("msg")
        turn = turns.setdefault(message.turn, new_id("turn"))
        parts = tuple(_copied_part(part, ids) for part in message.parts)
        copy = replace(
            message, id=id, conversation=conversation, parent=ids[message.parent], parts=parts, turn=turn
        )
        copies[message.id] = replace(copy, inner=_copied_inner(message, copy)) if message.inner else copy
    return copies


def _copied_inner(message: Message, copy: Message) -> tuple[ToolCall, ...]:
    programs = {old.id: new.id for old, new in zip(message.calls, copy.calls, strict=True)}
    return tuple(
        _settled(_renamed(replace(call, made_in=replace(place, call=programs[place.call])), new_id("call")))
        for call in message.inner
        if (place := call.made_in) is not None and place.call in programs
    )


def _copied_part(part: Part, ids: dict[str | None, str | None]) -> Part:
    match part:
        case ToolCall():
            return _settled(_renamed(part, new_id("call")))
        case Summary():
            return replace(part, keeps_from=ids.get(part.keeps_from))
        case _:
            return part


def _renamed(call: ToolCall, id: str) -> ToolCall:
    """Rename a call. A shortened result names the call's ID for reading the rest, so update that too."""
    result = call.result
    if result is not None and result.blob is not None:
        result = replace(result, text=result.text.replace(repr(call.id), repr(id)))
    return replace(call, id=id, result=result)


def _settled(call: ToolCall) -> ToolCall:
    """Cancel a call that is still running: the copy never ran."""
    if call.state.settled:
        return call
    result = ToolResult("This call had no result when the conversation was copied.")
    return replace(call, state=CallState.CANCELLED, result=result)


# Tags of conversations: a few words by which a user files one.


LONGEST_TAG = 40
MOST_TAGS = 20


def check_tags(tags: Any) -> list[str]:
    """Return the tags without duplicates, with single spaces. Raise BadRequest if a tag is invalid or there
    are too many."""
    given = [*tags] if isinstance(tags, Iterable) and not isinstance(tags, str) else None
    if given is None or not all(isinstance(tag, str) for tag in given):
        raise BadRequest(sentence("tags.kind", tags=tags))
    found = [*dict.fromkeys(map(_check_tag, given))]
    if len(found) > MOST_TAGS:
        raise BadRequest(sentence("tags.too_many", most=MOST_TAGS))
    return found


def usable_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the first valid tags of an import."""
    words = dict.fromkeys(" ".join(tag.split()) for tag in tags)
    return tuple([word for word in words if 0 < len(word) <= LONGEST_TAG][:MOST_TAGS])


def _check_tag(tag: str) -> str:
    check_json(tag, "a tag")
    words = " ".join(tag.split())
    if not words or len(words) > LONGEST_TAG:
        raise BadRequest(sentence("tags.too_long", most=LONGEST_TAG))
    return words
