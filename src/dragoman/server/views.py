"""Makes what a client is shown of conversations and turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dragoman.conversation.tree import Conversation, Tree
from dragoman.messages.codec import Codec
from dragoman.messages.events import StepRetry
from dragoman.runtime import Runtime
from dragoman.server.shapes import ConversationSummary, Origin, QueuedTurn, TreeView, UnfinishedTurn
from dragoman.store.store import Busy, TurnRow
from dragoman.turn.live.log import TurnLog

SUMMARY: Codec[ConversationSummary] = Codec(ConversationSummary)
TREE: Codec[TreeView] = Codec(TreeView)


def summary(conversation: Conversation, busy: Busy, snippet: str | None = None) -> ConversationSummary:
    origin = Origin(conversation.parent, conversation.call) if conversation.parent is not None else None
    return ConversationSummary(
        conversation.id,
        conversation.title,
        conversation.leaf,
        conversation.settings,
        conversation.usage,
        conversation.created,
        conversation.updated,
        busy.live,
        busy.waiting,
        origin,
        snippet,
    )


async def summaries(runtime: Runtime, conversations: Sequence[Conversation]) -> list[ConversationSummary]:
    busy = await runtime.store.busy([one.id for one in conversations])
    return [summary(one, busy.get(one.id, Busy())) for one in conversations]


async def tree_of(runtime: Runtime, id: str) -> TreeView:
    """The conversation as it is now: what is stored, and over it what runs here and is not stored yet.

    There is no `await` between the look at the running turns and the end, and nothing they know is unheard:
    whoever counts the events told so far counts exactly those that are in it.
    """
    while True:
        before, begun = _running(runtime, id), runtime.bus.last_begun(id)
        info = await runtime.store.conversation(id)
        messages, revision = await runtime.store.messages(id)
        queued = await runtime.store.queued(conversation=id)
        rows = [row for row in await runtime.store.turns(id) if row.live]
        questions = {question.id: question for question in await runtime.store.questions(conversation=id)}
        logs = await _heard(before)
        if _running(runtime, id).keys() == before.keys() and runtime.bus.last_begun(id) == begun:
            break  # else one may have begun and ended meanwhile
    tree = Tree(messages)
    for log in logs:
        shown = log.snapshot()
        for message in shown.messages:
            tree.add(message)
        for old in [question for question in questions.values() if question.turn == log.id]:
            del questions[old.id]
        questions.update({question.id: question for question in shown.questions})
        if shown.state.ended:  # since the rows were read: its end has been told
            rows = [row for row in rows if row.id != log.id]
    busy = Busy(bool(rows), len(questions))
    turns = [_live(row, next((log for log in logs if log.id == row.id), None)) for row in rows]
    waiting = [QueuedTurn(one.turn, one.message) for one in queued]
    return TreeView(summary(info, busy), list(tree), turns, list(questions.values()), waiting, revision)


def _running(runtime: Runtime, conversation: str) -> dict[str, TurnLog]:
    return {live.log.id: live.log for live in runtime.bus.turns(conversation)}


async def _heard(logs: dict[str, TurnLog]) -> list[TurnLog]:
    """The same, when nothing of what they know is still to be told."""
    while waiting := [log for log in logs.values() if log.events.holding]:
        await waiting[0].stored()
        await asyncio.sleep(0)  # what is told of a write is told right after it
    return list(logs.values())


def _live(row: TurnRow, log: TurnLog | None) -> UnfinishedTurn:
    state = log.turn.state if log is not None else row.state
    last = log.events.since(log.events.last - 1) if log is not None else []
    retrying = last[0].reason if last and isinstance(last[0], StepRetry) else None
    return UnfinishedTurn(row.id, row.message, state, row.live, row.created, retrying)
