"""Who reads a turn's answer through somebody else's protocol: one that nobody comes back for is cancelled.

Where a protocol has no word for stopping, a client hangs up; it also does when its page is loaded again, and
then it comes back in a moment. Where turns run on several machines it may come back to another one, and
nothing is cancelled.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from dragoman.errors import DragomanError
from dragoman.runtime import Runtime

GRACE = 10.0  # seconds in which a page that is loaded again comes back
_MANY = 10_000  # turns after which those that are over are forgotten


class TurnReaders:
    def __init__(self, runtime: Runtime, *, grace: float = GRACE) -> None:
        self._runtime = runtime
        self._grace = grace
        self._reading: Counter[str] = Counter()
        self._left: dict[str, asyncio.Task[None]] = {}
        self._asking: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._begun: set[str] = set()  # turns that were asked for here: others have other readers

    def one_by_one(self, person: str, name: str) -> asyncio.Lock:
        """For requests in the conversation of this name: two that say the same begin one turn."""
        return self._asking.setdefault((person, name), asyncio.Lock())

    def began(self, turn: str) -> None:
        """It was asked for here: who hangs up on it wants it no more."""
        if len(self._begun) > _MANY:
            self._begun = {one for one in self._begun if self._runtime.bus.here(one) is not None}
        self._begun.add(turn)

    @contextmanager
    def reading(self, turn: str) -> Iterator[None]:
        """Who leaves it by an error, or by being closed, has hung up."""
        self._reading[turn] += 1
        if (leaving := self._left.pop(turn, None)) is not None:
            leaving.cancel()
        over = False
        try:
            yield
            over = True
            if (live := self._runtime.bus.here(turn)) is None or live.log.turn.state.ended:
                self._begun.discard(turn)  # else it waits for who asked for it, and may be hung up on then
        finally:
            self._reading[turn] -= 1
            if not self._reading[turn]:
                del self._reading[turn]
                if not over and turn in self._begun and not self._runtime.driver.hands_out:
                    self._left[turn] = self._runtime.background.run(
                        f"stopping turn {turn}", lambda: self._stop_later(turn)
                    )

    async def stop_if_left(self, turn: str) -> bool:
        """At once, where its reader has hung up: who says something else does not want it any more."""
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
            return  # it is over, or gone
