"""Find turns that no process runs, and resume or close them."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.errors import BadRequest, TurnBusy, TurnQuarantined
from dragoman.runtime import Runtime
from dragoman.store.store import Store, TurnRow
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.machine import State
from dragoman.turn.steps.cancel import end_quarantined


async def interrupted_conversations(store: Store) -> set[str]:
    """Return the conversations with an interrupted turn. A turn that waits for a user is not interrupted."""
    return {row.conversation for row in await store.abandoned_turns() if row.state != State.WAITING}


async def resume_turn(runtime: Runtime, conversation: str, *, only: str | None = None) -> TurnHandle | None:
    """Resume the interrupted turn of a conversation, or with `only` this one, including turns that its calls
    started.

    Returns None if there is none. Raises TurnQuarantined if the turn needs something that is missing.
    """
    for row in await runtime.store.live_turns(conversation):
        if row.id == (only or row.id) and await runtime.store.is_abandoned(row.id):
            inner = [one for one in await runtime.store.within(conversation) if one != conversation]
            for each in await _abandoned(runtime.store, inner):
                await runtime.turn(each.id).resume()
            turn = runtime.turn(row.id)
            await turn.resume()
            return turn
    return None


async def next_queued(runtime: Runtime, after: str) -> TurnHandle | None:
    """Return the turn of a message that was queued while this turn ran here. It can have begun, or even have
    ended."""
    conversation = (await runtime.store.turn(after)).conversation
    waiting = [one.turn for one in await runtime.store.queued(conversation=conversation)]
    # Read the turns after the queue, because a queued one can begin in between.
    turns = [row.id for row in await runtime.store.turns(conversation)]
    later = turns[turns.index(after) + 1 :]
    found = [*later, *(turn for turn in waiting if turn not in turns)]
    return runtime.turn(found[0]) if found else None


async def _abandoned(store: Store, conversations: Iterable[str]) -> list[TurnRow]:
    rows = [row for one in conversations for row in await store.live_turns(one)]
    return [row for row in rows if await store.is_abandoned(row.id)]


async def close_interrupted(runtime: Runtime, busy: TurnBusy) -> str:
    """End the interrupted turn that blocks a new message, and return its ID.

    Raises BadRequest if it waits for an answer, and TurnBusy if a process runs it.
    """
    row = await runtime.store.turn(busy.turn)
    if not await runtime.store.is_abandoned(row.id):
        raise busy
    if row.state == State.WAITING:
        raise BadRequest(
            f"Turn {row.id} waits for an answer. `dragoman questions` shows what it asks, "
            f"`dragoman resume {row.conversation}` resumes it, and "
            f"`dragoman cancel {row.conversation}` ends it."
        ) from busy
    await cancel_turn(runtime, row.id, "interrupted; another message followed")
    return row.id


async def cancel_turn(runtime: Runtime, id: str, reason: str) -> bool:
    """Cancel a turn of any process. If no process runs it, it is ended here. Returns False if it had already
    ended."""
    turn = runtime.turn(id)
    if not await turn.cancel(reason):
        return False
    try:
        if await runtime.store.is_abandoned(id) and await turn.resume():
            await turn.result()
    except TurnQuarantined:
        await end_quarantined(runtime.services, runtime.driver.wake, id, reason)
    return True
