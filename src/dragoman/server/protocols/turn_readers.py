"""Cancel turns whose clients, in other protocols, disconnect and do not return.

If a protocol has no message for stopping, its clients disconnect. They also disconnect when their page is
loaded again, and then return in a moment. If several machines run turns, a client can return to another one,
so nothing is cancelled.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from dragoman.errors import DragomanError
from dragoman.runtime import Runtime

GRACE = 10.0  # seconds in which a reloaded page returns
_MANY = 10_000  # number of turns after which ended ones are forgotten


class TurnReaders:
    def __init__(self, runtime: Runtime, *, grace: float = GRACE) -> None:
        self._runtime = runtime
        self._grace = grace
        self._reading: Counter[str] = Counter()
        self._left: dict[str, asyncio.Task[None]] = {}
        self._asking: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._begun: set[str] = set()  # turns that a request here started: others have other readers

    def one_by_one(self, person: str, name: str) -> asyncio.Lock:
        """Return a lock for requests in the conversation of this name, so that two identical ones start one
        turn."""
        return self._asking.setdefault((person, name), asyncio.Lock())

    def began(self, turn: str) -> None:
        """Record that a request here started the turn. It is cancelled if its client disconnects."""
        if len(self._begun) > _MANY:
            self._begun = {one for one in self._begun if self._runtime.bus.here(one) is not None}
        self._begun.add(turn)

    @contextmanager
    def reading(self, turn: str) -> Iterator[None]:
        """Count a reader of the turn. Leaving by an exception or by being closed means that the client
        disconnected."""
        self._reading[turn] += 1
        if (leaving := self._left.pop(turn, None)) is not None:
            leaving.cancel()
        over = False
        try:
            yield
            over = True
            if (live := self._runtime.bus.here(turn)) is None or live.log.turn.state.ended:
                # Otherwise the turn waits for its client, which can disconnect then.
                self._begun.discard(turn)
        finally:
            self._reading[turn] -= 1
            if not self._reading[turn]:
                del self._reading[turn]
                if not over and turn in self._begun and not self._runtime.driver.hands_out:
                    self._left[turn] = self._runtime.background.run(
                        f"stopping turn {turn}", lambda: self._stop_later(turn)
                    )

    async def stop_if_left(self, turn: str) -> bool:
        """Cancel the turn immediately if its client has disconnected. Returns whether it did."""
        if (leaving := self._left.pop(turn, None)) is None:
            return False
        leaving.cancel()
        await self._stop(turn)
        await self._runtime.turn(turn).reached("cancelled")
        return True

    async def _stop_later(self, turn: str) -> None:
        await asyncio.sleep(self._grace)
        self._left.pop(turn, None)
        self._begun.discard(turn)
        await self._stop(turn)

    async def _stop(self, turn: str) -> None:
        try:
            await self._runtime.commands.cancel(turn, "the client has disconnected")
        except DragomanError:
            return  # The turn has ended or is deleted.
