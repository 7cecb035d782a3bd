"""Finds conversations that belong together: one gave the other a task, and both work in the same folder."""

from __future__ import annotations

from collections.abc import Collection

from dragoman.conversation.tree import Conversation
from dragoman.store.store import Store, TurnRow


async def sender_of(store: Store, row: TurnRow) -> str:
    """The user who sent the message of a turn, whose rules apply to it."""
    return row.sender or await store.owner_of(row.conversation)


async def root_of(store: Store, conversation: Conversation) -> str:
    """Return the outermost conversation above a task's conversation."""
    while conversation.parent is not None:
        conversation = await store.conversation(conversation.parent)
    return conversation.id


async def family_of(store: Store, conversation: str) -> list[str]:
    """Return the conversations connected by tasks, in which changes of this one may have been reverted."""
    return await store.within(await root_of(store, await store.conversation(conversation)))


async def tasks_given(
    store: Store, conversation: str, calls: Collection[str]
) -> tuple[dict[str, str], list[TurnRow]]:
    """Return the conversations that these calls opened, including nested ones, each with its call, and their
    turns."""
    tasks: dict[str, str] = {}
    for one in await store.opened_by(conversation, calls) if calls else ():
        tasks[one.id] = tasks.get(one.parent or "") or one.call or ""
    return tasks, [row for task in tasks for row in await store.turns(task)]
