"""Finds points in a conversation to revert to, and the changes made after them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dragoman.conversation.tree import Tree
from dragoman.messages.message import Message
from dragoman.workspace.states import ChangeRecord

_NOWHERE = ""  # The path used for records that changed no file.


@dataclass(slots=True, frozen=True)
class Point:
    """A point in a conversation: the message before it and everything after it."""

    conversation: str
    turn: str
    turns: frozenset[str]  # turns that started after it or span it
    calls: frozenset[str]
    after: frozenset[str]  # messages after it
    leaf: str | None
    first_call: str | None = None  # The first call after the point, if the point is within a reply.
    reply_calls: frozenset[str] = frozenset()  # calls of that reply
    # conversations that calls opened, each with its call
    tasks: Mapping[str, str] = field(default_factory=dict)


def point_in(
    tree: Tree, conversation: str, turn: str, first: Sequence[Message], first_call: str | None = None
) -> Point:
    """Return the point before these messages or, with a call, before that call of the first message.

    Without messages, it is the point after everything.
    """
    after = _below(tree, [message.id for message in first])
    messages = [tree[id] for id in after]
    return Point(
        conversation,
        turn,
        frozenset(message.turn for message in messages if message.turn is not None),
        frozenset(call.id for message in messages for call in message.all_calls),
        frozenset(after),
        first[0].parent if first else None,
        first_call,
        frozenset(call.id for message in first for call in message.all_calls),
    )


def _below(tree: Tree, tops: Iterable[str]) -> list[str]:
    """Return these messages and all messages below them, on every branch."""
    found = list(tops)
    for id in found:
        found += tree.children(id)
    return found


def records_after(point: Point, records: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """Return the changes made after a point, also by tasks, and the reverts of those changes.

    `records` are those of its conversation and of the conversations that share tasks with it.
    """

    def calls_of(record: ChangeRecord) -> set[str]:
        task = point.tasks.get(record.conversation)
        return set(record.calls) if task is None else {task}

    wanted = [one for one in records if one.kind == "calls" and point.calls & calls_of(one)]
    if point.first_call is not None:
        start = min((one.id for one in wanted if point.first_call in calls_of(one)), default=None)
        if start is None:  # A call that changed nothing has no record, so only changes after its reply count.
            wanted = [one for one in wanted if not point.reply_calls & calls_of(one)]
        wanted = [one for one in wanted if start is None or one.id >= start]
    ids = {one.id for one in wanted}
    for record in records:
        if record.kind == "revert" and ids & set(record.reverts):
            wanted.append(record)
            ids.add(record.id)
    return sorted(wanted, key=lambda one: one.id)


def last_to_redo(conversation: str, records: Sequence[ChangeRecord]) -> ChangeRecord | None:
    """Return the last revert of a conversation that can be undone, skipping undos of other reverts."""
    reverts = {one.id for one in records if one.kind == "revert"}
    for record, _ in _reverts_in_effect(records):
        took_back_another = len(record.reverts) == 1 and record.reverts[0] in reverts
        if record.conversation == conversation and not took_back_another:
            return record
    return None


def undone_in(done: Sequence[ChangeRecord], records: Sequence[ChangeRecord]) -> set[str]:
    """Return the paths where none of the calls' changes remain.

    `records` are all records of their conversation and its tasks.
    """
    changes = {(one.id, change.path) for one in done for change in one.changes}
    standing = changes - _taken(_reverts_in_effect(records))
    return {path for _, path in changes} - {path for _, path in standing}


def done_in(conversations: Collection[str], records: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """Return the changes and reverts made in these conversations, without what other conversations
    reverted."""
    others = [one for one in _reverts_in_effect(records) if one[0].conversation not in conversations]
    gone = _taken(others)
    found = []
    for record in records:
        kept = [path for path in _paths_of(record) if (record.id, path) not in gone]
        if record.conversation in conversations and kept:
            changes = tuple(change for change in record.changes if change.path in kept)
            found.append(replace(record, changes=changes))
    return found


def _reverts_in_effect(records: Sequence[ChangeRecord]) -> Iterator[tuple[ChangeRecord, set[str]]]:
    """Yield the reverts that had an effect and were not undone themselves, with the paths still affected.

    The last revert comes first. A revert that found everything already undone has no effect and hides none
    before it.
    """
    about: dict[int, set[str]] = {}
    for one in records:  # A revert always follows the records it undoes.
        about[one.id] = {*_paths_of(one)}.union(*(about.get(id, ()) for id in one.reverts))
        if one.only:
            about[one.id] &= {*one.only}
    taken: set[tuple[int, str]] = set()
    for one in reversed(records):
        if one.kind == "revert" and (one.changes or one.leaf_before is not None):
            standing = {path for path in about[one.id] if (one.id, path) not in taken}
            taken |= _taken([(one, standing)])
            if standing:
                yield one, standing


def _taken(reverts: Iterable[tuple[ChangeRecord, set[str]]]) -> set[tuple[int, str]]:
    """Return which paths of which records these reverts undo."""
    return {(id, path) for one, paths in reverts for id in one.reverts for path in paths}


def _paths_of(record: ChangeRecord) -> list[str]:
    return [change.path for change in record.changes] or [_NOWHERE]
