"""The numbered events of a turn that runs here, for whoever follows it now, comes late, or comes back.

What an event tells of is stored before anybody hears it: while a write is under way, what was published after
it began waits for it.
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

_OWNER = 1_000_000_000  # numbers an owner may use: a later owner's are higher, whatever came before
_log = logging.getLogger("dragoman.turn")


class EventLog(Generic[S]):
    """Events to followers and watchers, snapshots (`S`) to subscribers."""

    def __init__(self, epoch: int) -> None:
        self.watchers: list[Callable[[Event], None]] = []  # called at once, for each event
        self.listeners: list[Callable[[S], None]] = []
        self.closed = False
        self._silent = False
        self._base = number_before(epoch)
        self._events: list[Event] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._held: deque[list[tuple[Event | None, S | None]]] = deque()  # a list for each write under way

    @property
    def last(self) -> int:
        return self._base + len(self._events)

    @property
    def newest(self) -> Event | None:
        return self._events[-1] if self._events else None

    @property
    def holding(self) -> bool:
        """Whether something has happened of which nobody has been told yet."""
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
        """To the subscribers, when the write that is under way is stored."""
        self._held[-1].append((None, snapshot))

    def hold(self) -> None:
        """A write begins."""
        self._held.append([])

    def let_go(self, *, stored: bool) -> None:
        """The oldest write ended. What was to be told of one that failed is dropped: it did not happen."""
        held = self._held.popleft()
        for event, snapshot in held if stored and not self._silent else ():
            if event is not None:
                self._tell(event)
            if snapshot is not None:
                for listener in list(self.listeners):
                    _call(listener, snapshot)

    def silence(self) -> None:
        """Tell nothing more: it would follow what did not happen. The next owner tells how it continues."""
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
        """Every event after this number, each once, until the turn is over: all that has come since the last
        look at once. Of an earlier owner's numbers none are left: all of ours are new."""
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
        """What came after this number."""
        return self._events[max(0, number - self._base) :]

    def subscribe(self, listener: Callable[[S], None], now: S) -> Callable[[], None]:
        """Call it now and on every change. Returns the way to end that."""
        self.listeners.append(listener)
        _call(listener, now)

        def unsubscribe() -> None:
            if listener in self.listeners:
                self.listeners.remove(listener)

        return unsubscribe


def number_before(epoch: int) -> int:
    """The first event of an owner has the next number."""
    return (epoch - 1) * _OWNER


def owner_of(number: int) -> int:
    """The epoch of the owner that told an event of this number."""
    return (number - 1) // _OWNER + 1


def _call(listener: Callable[[T], None], value: T) -> None:
    """Neither the turn nor another listener may suffer from what a listener raises."""
    try:
        listener(value)
    except ENDS_THE_PROGRAM:
        raise
    except BaseException:  # also of a task whose result it wanted, and that was cancelled
        _log.warning("a listener of a turn failed", exc_info=True)


# A turn that cannot go on where it was taken up: told to whoever looks at it or follows it, anywhere.


QUARANTINED = "quarantined"  # the kind of notice that tells it


async def tell_quarantined(store: Store, turn: str, epoch: int, why: str) -> None:
    """As the only event of the owner that had claimed the turn, and has given it up."""
    seq = number_before(epoch) + 1
    body = EVENT.dump(Notice(sentence("turn.quarantined", why=why), QUARANTINED, seq))
    await store.put_events([StoredEvent(turn, seq, body)], {turn: epoch})


async def is_quarantined(store: Store, turn: TurnRow) -> bool:
    """Whether that is the last that became of it, of a turn that nobody runs."""
    for stored in await store.events({turn.id: number_before(turn.epoch)}, 1):
        event = EVENT.load(stored.body)
        return isinstance(event, Notice) and event.kind == QUARANTINED
    return False
