"""Events and snapshots in, told to whoever listens; never before what they tell of is stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from dragoman.messages.events import Event
from dragoman.turn.live.broadcast import Broadcast

S = TypeVar("S")
T = TypeVar("T")


class Telling(Generic[S]):
    """What a turn tells: events to followers and watchers, snapshots (`S`) to subscribers.

    While a write is under way, what comes after it waits for it. Writes end in the order in which they
    began, so it is always the oldest that is let go.
    """

    def __init__(self, epoch: int) -> None:
        self.events = Broadcast(epoch)
        self.watchers: list[Callable[[Event], None]] = []
        self.listeners: list[Callable[[S], None]] = []
        self._held: deque[list[tuple[Event | None, S | None]]] = deque()

    @property
    def holding(self) -> bool:
        """Whether something has happened of which nobody has been told yet."""
        return bool(self._held)

    def publish(self, event: Event) -> None:
        if self._held:
            self._held[-1].append((event, None))
        else:
            self._tell_event(event)

    def show(self, snapshot: S) -> None:
        """To the subscribers, when the write that is under way is stored."""
        self._held[-1].append((None, snapshot))

    def hold(self) -> None:
        """A write begins."""
        self._held.append([])

    def let_go(self, *, stored: bool) -> None:
        """The oldest write ended. What was to be told of one that failed is dropped: it did not happen."""
        held = self._held.popleft()
        for event, snapshot in held if stored else ():
            if event is not None:
                self._tell_event(event)
            if snapshot is not None:
                for listener in list(self.listeners):
                    _call(listener, snapshot)

    def subscribe(self, listener: Callable[[S], None], now: S) -> Callable[[], None]:
        """Call it now and on every change. Returns the way to end that. What it raises is dropped."""
        self.listeners.append(listener)
        _call(listener, now)

        def unsubscribe() -> None:
            if listener in self.listeners:
                self.listeners.remove(listener)

        return unsubscribe

    def _tell_event(self, event: Event) -> None:
        self.events.publish(event)
        for watch in self.watchers:
            _call(watch, event)


def _call(listener: Callable[[T], None], told: T) -> None:
    try:
        listener(told)
    except Exception:
        pass  # a listener's trouble is its own: neither the turn nor another listener may suffer
