"""Stops turns: a single turn, and the tasks that its calls gave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import TypeAlias

from dragoman.errors import NotFound, TurnQuarantined, Unreadable
from dragoman.messages.message import CallState
from dragoman.turn.live.loading import read_turn
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.signals import Signals
from dragoman.turn.services import Services
from dragoman.turn.steps.finalize import conclude, keep_what_came

Wake: TypeAlias = Callable[[str], Awaitable[None]]
"""Lets a turn read its new signals, in any process."""

_NO_ANSWER = frozenset({CallState.CANCELLED, CallState.INTERRUPTED, CallState.FAILED})


async def cancel_turn(services: Services, wake: Wake, turn: str, reason: str, by: str | None = None) -> bool:
    """Stop a started turn, in any state and process. Return False if it was over already."""
    if not await services.store.post(turn, "cancel", {"reason": reason, **({"by": by} if by else {})}):
        return False
    try:
        await wake(turn)
    except TurnQuarantined:
        await end_quarantined(services, wake, turn, reason, by)
    return True


async def end_quarantined(
    services: Services, wake: Wake, turn: str, reason: str, by: str | None = None
) -> None:
    """Cancel a turn that cannot continue here: through its facts or, if they are unreadable, as it is."""
    store = services.store
    if await store.claim(turn) is None:
        return  # Another process owns the turn, and receives the cancel.
    try:
        log = await read_turn(services, turn)
    except TurnQuarantined:
        await store.close_turn(turn)
        with suppress(Unreadable):
            await _cancel_tasks_of_unread(services, wake, turn)
        return
    log.cancelled, log.cancelled_by = reason, by
    signals = Signals(turn, store, on_cancel=lambda _: None)
    await keep_what_came(log, signals, "cancelled", None)
    await cancel_tasks(services, log, wake)
    await conclude(log, signals, None)


async def cancel_tasks(services: Services, log: TurnLog, wake: Wake) -> None:
    """Cancel the turns that this turn's calls started, since no call waits for them."""
    calls = {id for id, call in log.turn.calls.items() if call.state in _NO_ANSWER}
    await _cancel_opened_by(services, wake, log.conversation.id, calls)


async def _cancel_tasks_of_unread(services: Services, wake: Wake, turn: str) -> None:
    """Do the same from the calls of its messages, which stay unchanged."""
    conversation = (await services.store.turn(turn)).conversation
    messages, _ = await services.store.messages(conversation)
    made = (call for message in messages if message.turn == turn for call in message.all_calls)
    calls = {call.id for call in made if call.state in _NO_ANSWER or not call.state.settled}
    await _cancel_opened_by(services, wake, conversation, calls)


async def _cancel_opened_by(
    services: Services, wake: Wake, conversation: str, calls: Collection[str]
) -> None:
    """Cancel only the first turn of each conversation: turns that a user sent there later continue."""
    for opened in await services.store.opened_by(conversation, calls) if calls else ():
        for begun in (await services.store.turns(opened.id))[:1]:
            if begun.live:
                with suppress(NotFound):
                    await cancel_turn(services, wake, begun.id, "the turn that gave the task is over")
