"""Conversations that belong together: one gave the other a task, and both work in the same folder."""

from __future__ import annotations

from collections.abc import Collection

from dragoman.conversation.tree import Conversation
from dragoman.store.store import Store, TurnRow


async def sender_of(store: Store, row: TurnRow) -> str:
    """The user who sent the message of a turn, whose rules apply to it."""
    return row.sender or await store.owner_of(row.conversation)


async def root_of(store: Store, conversation: Conversation) -> str:
    """The conversation that a task's one began in, at last."""
    while conversation.parent is not None:
        conversation = await store.conversation(conversation.parent)
    return conversation.id


async def family_of(store: Store, conversation: str) -> list[str]:
    """Those where what was done in this one may have been taken back: which gave tasks, and got them."""
    return await store.within(await root_of(store, await store.conversation(conversation)))


async def tasks_given(
    store: Store, conversation: str, calls: Collection[str]
) -> tuple[dict[str, str], list[TurnRow]]:
    """The conversations that these calls opened, and theirs, each with which of the calls it was; and the
    turns in them."""
    tasks: dict[str, str] = {}
    for one in await store.opened_by(conversation, calls) if calls else ():
        tasks[one.id] = tasks.get(one.parent or "") or one.call or ""
    return tasks, [row for task in tasks for row in await store.turns(task)]
