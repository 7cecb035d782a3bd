"""Places in a conversation that one can go back to, and what was done after them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dragoman.conversation.tree import Tree
from dragoman.messages.message import Message
from dragoman.workspace.states import ChangeRecord

_NOWHERE = ""  # the path of what changed no file


@dataclass(slots=True, frozen=True)
class Point:
    """What comes after it, and the message before it."""

    conversation: str
    turn: str
    turns: frozenset[str]  # that began after it, or go through it
    calls: frozenset[str]
    after: frozenset[str]  # messages
    leaf: str | None
    first_call: str | None = None  # where it lies within a reply: before this call
    reply_calls: frozenset[str] = frozenset()  # of that reply
    tasks: Mapping[str, str] = field(default_factory=dict)  # conversations that calls opened, with which


def point_in(
    tree: Tree, conversation: str, turn: str, first: Sequence[Message], first_call: str | None = None
) -> Point:
    """Before these messages; with a call, before that call of the first. Without any, after everything."""
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
    """These messages and all that follow them, on every branch."""
    found = list(tops)
    for id in found:
        found += tree.children(id)
    return found


def records_after(point: Point, records: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """What was done after a point, also by tasks, and what was taken back of that: of the records of its
    conversation, and of those that it shares tasks with."""

    def calls_of(record: ChangeRecord) -> set[str]:
        task = point.tasks.get(record.conversation)
        return set(record.calls) if task is None else {task}

    wanted = [one for one in records if one.kind == "calls" and point.calls & calls_of(one)]
    if point.first_call is not None:
        start = min((one.id for one in wanted if point.first_call in calls_of(one)), default=None)
        if start is None:  # a call that changed nothing has no record: what came after its reply counts
            wanted = [one for one in wanted if not point.reply_calls & calls_of(one)]
        wanted = [one for one in wanted if start is None or one.id >= start]
    ids = {one.id for one in wanted}
    for record in records:
        if record.kind == "revert" and ids & set(record.reverts):
            wanted.append(record)
            ids.add(record.id)
    return sorted(wanted, key=lambda one: one.id)


def last_to_redo(conversation: str, records: Sequence[ChangeRecord]) -> ChangeRecord | None:
    """The last revert of a conversation that can be taken back; not one that took back another."""
    reverts = {one.id for one in records if one.kind == "revert"}
    for record, _ in _reverts_in_effect(records):
        took_back_another = len(record.reverts) == 1 and record.reverts[0] in reverts
        if record.conversation == conversation and not took_back_another:
            return record
    return None


def undone_in(done: Sequence[ChangeRecord], records: Sequence[ChangeRecord]) -> set[str]:
    """The paths at which nothing of what calls did stands, by all records of their conversation and its
    tasks."""
    changes = {(one.id, change.path) for one in done for change in one.changes}
    standing = changes - _taken(_reverts_in_effect(records))
    return {path for _, path in changes} - {path for _, path in standing}


def done_in(conversations: Collection[str], records: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """What was done in these and taken back there, less what was taken back in others."""
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
    """Those that did something, and were not taken back themselves, with the paths for which that holds: the
    last one first. One that finds everything taken back already does nothing, and hides none before it."""
    about: dict[int, set[str]] = {}
    for one in records:  # a revert comes behind what it takes back
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
    """Of which records they take back what was done to which path."""
    return {(id, path) for one, paths in reverts for id in one.reverts for path in paths}


def _paths_of(record: ChangeRecord) -> list[str]:
    return [change.path for change in record.changes] or [_NOWHERE]
