"""Keeps the numbered events of a turn running here, for clients that follow, join late or reconnect.

The state behind an event is stored before the event is published: events published during a write wait for
it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from dragoman.errors import ENDS_THE_PROGRAM
from dragoman.messages.events import EVENT, Event, Notice
from dragoman.sentences import sentence
from dragoman.store.store import Store, StoredEvent, TurnRow

S = TypeVar("S")
T = TypeVar("T")

_OWNER = 1_000_000_000  # The count of numbers reserved for each owner. A later owner's are always higher.
_log = logging.getLogger("dragoman.turn")


class EventLog(Generic[S]):
    """Publishes events to followers and watchers, and snapshots (`S`) to subscribers."""

    def __init__(self, epoch: int) -> None:
        self.watchers: list[Callable[[Event], None]] = []  # called immediately, for each event
        self.listeners: list[Callable[[S], None]] = []
        self.closed = False
        self._silent = False
        self._base = number_before(epoch)
        self._events: list[Event] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._held: deque[list[tuple[Event | None, S | None]]] = deque()  # one list per pending write

    @property
    def last(self) -> int:
        return self._base + len(self._events)

    @property
    def newest(self) -> Event | None:
        return self._events[-1] if self._events else None

    @property
    def holding(self) -> bool:
        """Return whether changes exist that have not been published yet."""
        return bool(self._held)

    # ── telling ───────────────────────────────────────────────────────────────────────────────────

    def publish(self, event: Event) -> None:
        if self._silent:
            return
        if self._held:
            self._held[-1].append((event, None))
        else:
            self._tell(event)

    def show(self, snapshot: S) -> None:
        """Show the snapshot to the subscribers once the current write is stored."""
        self._held[-1].append((None, snapshot))

    def hold(self) -> None:
        """Note that a write starts."""
        self._held.append([])

    def let_go(self, *, stored: bool) -> None:
        """Publish what the oldest write held back. If that write failed, drop it, since its changes do not
        exist."""
        held = self._held.popleft()
        for event, snapshot in held if stored and not self._silent else ():
            if event is not None:
                self._tell(event)
            if snapshot is not None:
                for listener in list(self.listeners):
                    _call(listener, snapshot)

    def silence(self) -> None:
        """Stop publishing: later events would follow changes that were not stored. The next owner publishes
        the rest."""
        self._silent = True

    def close(self) -> None:
        self.closed = True
        self._wake()

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        event.seq = self._base + len(self._events)
        if self._waiting:
            self._wake()
        for watch in self.watchers:
            _call(watch, event)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    # ── listening ─────────────────────────────────────────────────────────────────────────────────

    async def batches(self, after: int = 0) -> AsyncIterator[list[Event]]:
        """Yield batches of all events after this number, each once, until the turn is over.

        Events of an earlier owner are gone, so all events of this owner are new.
        """
        at = after
        while True:
            if batch := self.since(at):
                at = batch[-1].seq
                yield batch
            elif self.closed:
                return
            else:
                waiter = asyncio.get_running_loop().create_future()
                self._waiting.append(waiter)
                await waiter

    def since(self, number: int) -> list[Event]:
        """Return the events after this number."""
        return self._events[max(0, number - self._base) :]

    def subscribe(self, listener: Callable[[S], None], now: S) -> Callable[[], None]:
        """Call the listener now and on every change. Return a function that unsubscribes it."""
        self.listeners.append(listener)
        _call(listener, now)

        def unsubscribe() -> None:
            if listener in self.listeners:
                self.listeners.remove(listener)

        return unsubscribe


def number_before(epoch: int) -> int:
    """Return the number before the first event of an owner."""
    return (epoch - 1) * _OWNER


def owner_of(number: int) -> int:
    """Return the epoch of the owner that published an event of this number."""
    return (number - 1) // _OWNER + 1


def _call(listener: Callable[[T], None], value: T) -> None:
    """Call a listener. Its exceptions must not affect the turn or other listeners."""
    try:
        listener(value)
    except ENDS_THE_PROGRAM:
        raise
    except BaseException:  # Also catch the cancellation of a task whose result the listener requested.
        _log.warning("a listener of a turn failed", exc_info=True)


# Notifies every client that inspects or follows a turn, in any process, that it was quarantined on resume.


QUARANTINED = "quarantined"  # the kind of the notice


async def tell_quarantined(store: Store, turn: str, epoch: int, why: str) -> None:
    """Store the notice as the only event of the owner that claimed and released the turn."""
    seq = number_before(epoch) + 1
    body = EVENT.dump(Notice(sentence("turn.quarantined", why=why), QUARANTINED, seq))
    await store.put_events([StoredEvent(turn, seq, body)], {turn: epoch})


async def is_quarantined(store: Store, turn: TurnRow) -> bool:
    """Return whether quarantine was the last event of a turn that no process runs."""
    for stored in await store.events({turn.id: number_before(turn.epoch)}, 1):
        event = EVENT.load(stored.body)
        return isinstance(event, Notice) and event.kind == QUARANTINED
    return False
