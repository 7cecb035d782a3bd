"""Places in a conversation that one can go back to, and what was done after them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dragoman.conversation.tree import Tree
from dragoman.messages.message import Message
from dragoman.workspace.states import ChangeRecord


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
    for record in reversed(_reverts_in_effect(records)):
        took_back_another = len(record.reverts) == 1 and record.reverts[0] in reverts
        if record.conversation == conversation and not took_back_another:
            return record
    return None


def are_taken_back(done: Sequence[ChangeRecord], records: Sequence[ChangeRecord]) -> bool:
    """Whether nothing of what calls did stands, by all records of their conversation and its tasks."""
    reverted = {id for one in _reverts_in_effect(records) for id in one.reverts}
    return bool(done) and all(one.id in reverted for one in done)


def done_in(conversations: Collection[str], records: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """What was done in these and taken back there, less what was taken back in others."""
    others = [one for one in _reverts_in_effect(records) if one.conversation not in conversations]
    gone = {id for one in others for id in one.reverts}
    return [one for one in records if one.conversation in conversations and one.id not in gone]


def _reverts_in_effect(records: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """Those that did something, and were not taken back themselves. One that finds everything taken back
    already does nothing, and hides none before it."""
    reverts = [
        one for one in records if one.kind == "revert" and (one.changes or one.leaf_before is not None)
    ]
    taken: set[int] = set()
    standing: list[ChangeRecord] = []
    for one in reversed(reverts):
        if one.id not in taken:
            standing.append(one)
            taken.update(one.reverts)
    return standing[::-1]
