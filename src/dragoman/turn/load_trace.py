"""Reads the trace of a turn from the store, with the turns of the sub-agents that its calls began."""

from __future__ import annotations

from dragoman.errors import DragomanError, Unreadable
from dragoman.store.store import Store, TurnRow
from dragoman.turn.facts import FACT
from dragoman.turn.trace import TurnTrace
from dragoman.turn.tracer import trace_turn


async def load_trace(store: Store, row: TurnRow) -> TurnTrace:
    """Unreadable where one of its facts is damaged, or of a newer version."""
    try:
        facts = [FACT.load(body) for body in await store.facts(row.id)]
        trace = trace_turn(row.id, row.conversation, facts, await store.questions_of(row.id))
    except (ValueError, LookupError) as error:
        raise Unreadable("turn", row.id, "one of its facts is not known here") from error
    if row.state == "waiting":
        trace.state = row.state
    if not row.live and trace.ended is None:
        trace.state = row.state  # closed from outside, without a fact
    calls = {call.id: call for call in trace.calls}
    for inner in await store.within(row.conversation) if calls else ():
        try:
            conversation = await store.conversation(inner)
        except DragomanError:
            continue  # it is gone, or damaged: the rest is shown all the same
        call = calls.get(conversation.call or "")
        if call is not None and call.opened is None and (turns := await store.turns(inner)):
            call.opened = turns[0].id  # the first, where it asked several agents
    return trace
