"""Find the stored conversation that a caller's history belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dragoman.errors import NotFound
from dragoman.messages.message import Message, Role, canonical
from dragoman.server.protocols.openai.request_input import (
    AssistantEntry,
    Attached,
    BroughtCall,
    CallOutput,
    Content,
    Entry,
    UserEntry,
    arguments_of,
    calls_with_outputs,
)
from dragoman.store.store import Store

MARK = "openai"  # the metadata key of messages that came by this API
NEWEST = 50  # maximum number of conversations that are searched


class Utterance(NamedTuple):
    """The words of one speaker for comparison, without whitespace, which clients change."""

    role: Role
    words: str


class Shown(NamedTuple):
    """The content of a call as the model sees it."""

    tool: str
    arguments: str
    result: str


class KnownCall(NamedTuple):
    """A call with the ID and content that the caller sent."""

    id: str
    shown: Shown


class Place(NamedTuple):
    """The position of a message in a history: the index of an entry, and a number of characters in it."""

    entry: int
    characters: int


async def find_parent(
    store: Store, person: str, agent: str | None, entries: Sequence[Entry]
) -> tuple[str, str] | None:
    """Return the conversation of this agent, and the message in it, that this history ends at. None if none
    fits."""
    history = _utterances(entries)
    calls = [KnownCall(call.id, _shown(call, output)) for call, output in calls_with_outputs(entries)]
    if not history:
        return None
    for conversation in await store.conversations(user=person, limit=NEWEST):
        if conversation.settings.get("agent") != agent:
            continue
        try:
            messages, _ = await store.messages(conversation.id)
        except NotFound:
            continue  # It was deleted in the meantime.
        if not messages or MARK not in messages[0].metadata:
            continue
        if (found := end_of(history, calls, messages)) is not None:
            return conversation.id, found
    return None


def end_of(
    history: Sequence[Utterance], calls: Sequence[KnownCall], messages: Iterable[Message]
) -> str | None:
    """Return the newest message whose path contains exactly this history. It must be the last of its turn,
    and its path must contain these calls. Other calls are allowed."""
    places: dict[str | None, Place] = {None: Place(-1, 0)}
    by_id: dict[str | None, Message] = {}
    found: dict[str, None] = {}
    for message in messages:  # Each message comes after its parent.
        by_id[message.id] = message
        before, parent = places.get(message.parent), by_id.get(message.parent)
        if parent is not None and parent.turn == message.turn:
            found.pop(parent.id, None)  # The turn continued after that message.
        place = _next(history, before, message, parent) if before is not None else None
        if place is None:
            continue
        places[message.id] = place
        if message.role == "assistant" and _is_whole(history, place) and place.entry == len(history) - 1:
            found[message.id] = None
    return next((id for id in reversed(found) if _has(calls, id, by_id)), None)


def _has(calls: Iterable[KnownCall], id: str, by_id: Mapping[str | None, Message]) -> bool:
    """Return whether the path to a message contains these calls.

    Server calls match by ID, because a user can have changed their results. Others match by content, because
    IDs of other programs repeat and a regenerated answer has new ones.
    """
    ids: set[str] = set()
    shown: set[Shown] = set()
    message = by_id.get(id)
    while message is not None:
        for call in message.calls:
            ids.add(call.id)
            if call.result is not None:
                files = [file.blob or "" for file in call.result.attachments]
                shown.add(Shown(call.tool, canonical(call.arguments), _joined([call.result.text], files)))
        message = by_id.get(message.parent)
    return all(call.id in ids or call.shown in shown for call in calls)


def _shown(call: BroughtCall, output: CallOutput) -> Shown:
    return Shown(call.tool, canonical(arguments_of(call) or {}), _said(output.content))


def _next(
    history: Sequence[Utterance], before: Place, message: Message, parent: Message | None
) -> Place | None:
    """Return the position of a message in the history, given that of its parent. None if it does not fit."""
    words = _words(message)
    if message.role == "user":
        if message.author is not None or (parent is not None and parent.turn == message.turn):
            # A message of a plugin, or one that a user sent to a running turn. The caller has not seen it.
            return before
        if not _is_whole(history, before):
            return None
        return _begun(history, before.entry + 1, Utterance("user", words), whole=True)
    if not words:
        return before
    if before.entry >= 0 and history[before.entry].role == "assistant":
        fits = history[before.entry].words.startswith(words, before.characters)
        return Place(before.entry, before.characters + len(words)) if fits else None
    return _begun(history, before.entry + 1, Utterance("assistant", words), whole=False)


def _begun(history: Sequence[Utterance], entry: int, given: Utterance, *, whole: bool) -> Place | None:
    if entry >= len(history) or history[entry].role != given.role:
        return None
    words = history[entry].words
    fits = words == given.words if whole else words.startswith(given.words)
    return Place(entry, len(given.words)) if fits else None


def _is_whole(history: Sequence[Utterance], place: Place) -> bool:
    return place.entry < 0 or place.characters == len(history[place.entry].words)


def _words(message: Message) -> str:
    return _joined([message.text], [part.blob or part.url or "" for part in message.files])


def _joined(texts: Iterable[str], files: Iterable[str]) -> str:
    return "".join(["".join(text.split()) for text in texts] + [f"\0{file}" for file in files])


def _said(content: Content) -> str:
    texts = [piece for piece in content if isinstance(piece, str)]
    return _joined(texts, [piece.hash for piece in content if isinstance(piece, Attached)])


def _utterances(entries: Sequence[Entry]) -> list[Utterance]:
    found: list[Utterance] = []
    for entry in entries:
        match entry:
            case UserEntry(content=content):
                found.append(Utterance("user", _said(content)))
            case AssistantEntry(texts=written):
                words = _joined(written, ())
                if words and found and found[-1].role == "assistant":
                    found[-1] = Utterance("assistant", found[-1].words + words)
                elif words:
                    found.append(Utterance("assistant", words))
            case _:
                pass
    return found
