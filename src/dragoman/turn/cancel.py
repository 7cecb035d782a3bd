"""Stops turns: one by itself, and with a turn the tasks that its calls gave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from dragoman.errors import NotFound, TurnSetAside
from dragoman.messages.parts import CallState
from dragoman.store.store import Store
from dragoman.turn.live.log import TurnLog

Wake: TypeAlias = Callable[[str], Awaitable[None]]
"""Lets a turn read what came in for it, wherever it is."""

_NO_ANSWER = frozenset({CallState.CANCELLED, CallState.INTERRUPTED, CallState.FAILED})


async def cancel_turn(store: Store, wake: Wake, turn: str, reason: str) -> bool:
    """Stop a turn that has begun, in whatever state and process it is. False where it was over already."""
    if not await store.post(turn, "cancel", {"reason": reason}):
        return False
    try:
        await wake(turn)
    except TurnSetAside:
        await store.close_turn(turn)  # nobody here can bring it to an end: it is closed as it is
    return True


async def cancel_tasks(log: TurnLog, wake: Wake) -> None:
    """Nobody waits any more for the turns that calls of this one began: they end with it. What a person said
    since in one of those conversations is theirs, and goes on."""
    calls = {id for id, call in log.turn.calls.items() if call.state in _NO_ANSWER}
    for conversation in await log.store.opened_by(log.conversation.id, calls) if calls else ():
        for begun in (await log.store.turns(conversation.id))[:1]:
            if begun.live:
                with suppress(NotFound):
                    await cancel_turn(log.store, wake, begun.id, "the turn that gave the task is over")
