"""A turn that cannot go on where it was taken up: told to whoever looks at it or follows it, anywhere."""

from __future__ import annotations

from dragoman.messages.events import EVENT, Notice
from dragoman.sentences import sentence
from dragoman.store.store import Store, StoredEvent, TurnRow
from dragoman.turn.live.events import number_before

SET_ASIDE = "set_aside"  # the kind of notice that tells it


async def tell_set_aside(store: Store, turn: str, epoch: int, why: str) -> None:
    """As the only event of the owner that had claimed the turn, and has given it up."""
    seq = number_before(epoch) + 1
    body = EVENT.dump(Notice(sentence("turn.set_aside", why=why), SET_ASIDE, seq))
    await store.put_events([StoredEvent(turn, seq, body)], {turn: epoch})


async def is_set_aside(store: Store, turn: TurnRow) -> bool:
    """Whether that is the last that became of it, of a turn that nobody runs."""
    for stored in await store.events({turn.id: number_before(turn.epoch)}, 1):
        event = EVENT.load(stored.body)
        return isinstance(event, Notice) and event.kind == SET_ASIDE
    return False
