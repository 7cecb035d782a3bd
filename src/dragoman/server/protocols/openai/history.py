"""Finds the stored conversation that a history, as a caller tells it, belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman.errors import DragomanError
from dragoman.messages.message import Message, Role
from dragoman.server.protocols.openai.attachments import Attached
from dragoman.server.protocols.openai.brought import AssistantEntry, Entry, UserEntry
from dragoman.store.store import Store

MARK = "openai"  # in the metadata of what came by this API
NEWEST = 50  # conversations that are looked at


class Utterance(NamedTuple):
    """One speaker's words, as far as they are compared: without spaces, which clients change."""

    role: Role
    words: str


class Place(NamedTuple):
    """How far into a history a message is: in which of its entries, and how many characters of that."""

    entry: int
    characters: int


async def find_parent(
    store: Store, person: str, agent: str | None, entries: Sequence[Entry]
) -> tuple[str, str] | None:
    """The conversation with this agent, and the message of it, at which this history ends. None where none
    fits."""
    history = _utterances(entries)
    if not history:
        return None
    for conversation in await store.conversations(user=person, limit=NEWEST):
        if conversation.settings.get("agent") != agent:
            continue
        try:
            messages, _ = await store.messages(conversation.id)
        except DragomanError:
            continue  # one that cannot be read is not gone on with
        if messages and MARK in messages[0].metadata and (found := end_of(history, messages)) is not None:
            return conversation.id, found
    return None


def end_of(history: Sequence[Utterance], messages: Iterable[Message]) -> str | None:
    """The newest message whose path tells exactly this, and which is the last of its turn."""
    places: dict[str | None, Place] = {None: Place(-1, 0)}
    by_id: dict[str | None, Message] = {}
    found: dict[str, None] = {}
    for message in messages:  # each after its parent
        by_id[message.id] = message
        before, parent = places.get(message.parent), by_id.get(message.parent)
        if parent is not None and parent.turn == message.turn:
            found.pop(parent.id, None)  # the turn went on
        place = _next(history, before, message, parent) if before is not None else None
        if place is None:
            continue
        places[message.id] = place
        if message.role == "assistant" and _is_whole(history, place) and place.entry == len(history) - 1:
            found[message.id] = None
    return next(reversed(found), None)


def _next(
    history: Sequence[Utterance], before: Place, message: Message, parent: Message | None
) -> Place | None:
    """Where a message is in the history, if its parent was there."""
    words = _words(message)
    if message.role == "user":
        if message.author is not None or (parent is not None and parent.turn == message.turn):
            return before  # a plugin's, or a person's who steered: the caller has not seen it
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


def _utterances(entries: Sequence[Entry]) -> list[Utterance]:
    found: list[Utterance] = []
    for entry in entries:
        match entry:
            case UserEntry(content=content):
                texts = [piece for piece in content if isinstance(piece, str)]
                files = [piece.hash for piece in content if isinstance(piece, Attached)]
                found.append(Utterance("user", _joined(texts, files)))
            case AssistantEntry(texts=written):
                words = _joined(written, ())
                if words and found and found[-1].role == "assistant":
                    found[-1] = Utterance("assistant", found[-1].words + words)
                elif words:
                    found.append(Utterance("assistant", words))
            case _:
                pass
    return found
