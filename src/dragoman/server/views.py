"""Makes what clients are shown of conversations, turns and the queue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pydantic import ValidationError

from dragoman.conversation.tree import Conversation
from dragoman.messages.codec import Codec
from dragoman.runtime import Runtime
from dragoman.server.shapes import ConversationSummary, Origin, QueuedTurn, QueueView, SteeringMessage
from dragoman.store.codecs import MESSAGE
from dragoman.store.store import Busy, Queued, TurnRow
from dragoman.turn.live.loading import needs_of

SUMMARY: Codec[ConversationSummary] = Codec(ConversationSummary)
QUEUE: Codec[QueueView] = Codec(QueueView)

INTERRUPTED = "interrupted"
QUEUED = "queued"


def summary(
    conversation: Conversation, busy: Busy, snippet: str | None = None, found: str | None = None
) -> ConversationSummary:
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
        found,
        conversation.pinned,
        conversation.archived,
        list(conversation.tags),
    )


async def summaries(runtime: Runtime, conversations: Sequence[Conversation]) -> list[ConversationSummary]:
    busy = await runtime.store.busy([one.id for one in conversations])
    return [summary(one, busy.get(one.id, Busy())) for one in conversations]


async def state_of(runtime: Runtime, row: TurnRow) -> str:
    """The state of a turn. Where it is not over and nobody runs it: `queued`, if it waits for a worker or for
    a place under a limit; else `interrupted`, until somebody continues it.

    A turn that only waits for a person needs nobody to run it: the answer wakes it.
    """
    if (live := runtime.bus.here(row.id)) is not None:
        await live.log.stored()  # S2: who is told `waiting` looks for the question next
        return (await runtime.store.turn(row.id)).state
    if not row.live or not await runtime.store.is_abandoned(row.id):
        return row.state
    if row.state == "waiting":
        signals = await runtime.store.signals(row.id)
        if not any(signal.kind != "follow" for signal in signals):
            return row.state
    return QUEUED if await runtime.driver.will_run(row) else INTERRUPTED


async def queue_of(runtime: Runtime, conversation: str, live: Sequence[TurnRow]) -> QueueView:
    """What a person has sent and no turn has taken yet: for a turn of its own, or to steer one of those."""
    queued = await runtime.store.queued(conversation=conversation)
    steering = []
    for row in live:
        for signal in await runtime.store.signals(row.id):
            if signal.kind == "steer":
                with suppress(ValidationError):  # damaged: its turn will strike it off
                    message = MESSAGE.from_json(signal.body.get("message"))
                    steering.append(SteeringMessage(signal.seq, row.id, message))
    return QueueView(conversation, await queued_turns(runtime, queued), steering)


async def queued_turns(runtime: Runtime, queued: Sequence[Queued]) -> list[QueuedTurn]:
    may_begin = {*await runtime.store.queue()} if queued else set()
    return [
        QueuedTurn(one.turn, one.message, needs_of(one) if one.turn in may_begin else None) for one in queued
    ]
