"""Events of turns that run here, put where other processes read them; and those of other processes, read.

One writer and one reader for all turns of this process: what a moment brings is one write, and one read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from dragoman.background import Background
from dragoman.errors import StoreUnavailable
from dragoman.messages.events import EVENT, Event
from dragoman.store.store import Store, StoredEvent
from dragoman.turn.live.log import TurnLog

_COALESCE = 0.025  # seconds in which events are put together before they are written
_MANY = 1000  # events written or read at once
_GLANCE = 0.05  # seconds between looks in a store that cannot notify
_PAUSE = 0.005  # seconds between two reads, whatever is written
_LINGER = 30.0  # seconds for which events stay after the end of their turn, for who is behind
_log = logging.getLogger("dragoman.turn")


class Mirror:
    """Writes the events of turns that somebody in another process follows, under their own numbers."""

    def __init__(self, store: Store, background: Background) -> None:
        self._store = store
        self._background = background
        self._logs: dict[str, tuple[TurnLog, int]] = {}  # and the number that was written last
        self._changed = asyncio.Event()
        self._begun = False

    def add(self, log: TurnLog) -> None:
        if log.id in self._logs and self._logs[log.id][0] is log:
            return
        self._logs[log.id] = log, 0
        log.events.watchers.append(lambda _: self._changed.set())
        self._changed.set()
        if not self._begun:
            self._begun = True
            self._background.repeat("mirroring events", self._write_next, every=_COALESCE)

    def note_end(self, turn: str) -> None:
        """It publishes nothing more here."""
        if turn in self._logs:
            self._changed.set()

    async def close(self) -> None:
        """What was told here is told there, too, before the program stops."""
        with suppress(StoreUnavailable):
            while any(log.events.since(at) for log, at in self._logs.values()):
                await self._write()

    async def _write_next(self) -> None:
        await self._changed.wait()
        self._changed.clear()
        try:
            await self._write()
        except BaseException:
            self._changed.set()
            raise

    async def _write(self) -> None:
        """All that has come since the last time. Whoever has come to its end is done with."""
        rows: list[StoredEvent] = []
        upto: dict[str, tuple[TurnLog, int]] = {}
        for log, at in list(self._logs.values()):
            if new := log.events.since(at)[:_MANY]:
                rows += _rows(log, new)
                upto[log.id] = log, new[-1].seq
        await self._store.put_events(rows, {id: log.epoch for id, (log, _) in upto.items()})
        for id, (log, at) in upto.items():
            if self._logs[id][0] is log:
                self._logs[id] = log, at
        for log, at in list(self._logs.values()):
            if log.events.since(at):
                self._changed.set()
            elif log.events.closed:
                del self._logs[log.id]
                if log.turn.state.ended:
                    self._background.run(f"dropping events of {log.id}", partial(self._drop, log.id))

    async def _drop(self, turn: str) -> None:
        await asyncio.sleep(_LINGER)
        await self._store.drop_events(turn)


def _rows(log: TurnLog, events: list[Event]) -> list[StoredEvent]:
    """Without what cannot be written: a tool may tell of its progress with anything."""
    rows = []
    for event in events:
        try:
            body = EVENT.dump(event)
            body.encode()  # half a character is no text
            rows.append(StoredEvent(log.id, event.seq, body))
        except (TypeError, ValueError) as error:
            _log.warning("turn %s: an event (%s) cannot be told elsewhere: %s", log.id, event.type, error)
    return rows


class Follower:
    """What has been read of one turn for one reader, and not been taken yet."""

    def __init__(self, turn: str, after: int) -> None:
        self.turn = turn
        self.at = after
        self._events: list[Event] = []
        self._arrived = asyncio.Event()

    def put(self, events: list[Event]) -> None:
        if new := [event for event in events if event.seq > self.at]:
            self.at = new[-1].seq
            self._events += new
            self._arrived.set()

    def look_up(self) -> None:
        """Wait no longer: there is something to be seen elsewhere."""
        self._arrived.set()

    async def take(self, seconds: float) -> list[Event]:
        """All that has come; nothing where nothing comes for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return []
        self._arrived.clear()
        events, self._events = self._events, []
        return events


class RemoteEvents:
    """Reads the events of turns that other processes run, for all who follow one from here."""

    def __init__(self, store: Store, background: Background) -> None:
        self._store = store
        self._background = background
        self._followers: set[Follower] = set()
        self._wanted = asyncio.Event()
        self._begun = False

    @asynccontextmanager
    async def follow(self, turn: str, after: int) -> AsyncIterator[Follower]:
        follower = Follower(turn, after)
        self._followers.add(follower)
        self._wanted.set()
        if not self._begun:
            self._begun = True
            self._background.repeat("reading events of other processes", self._read_next, every=_PAUSE)
        try:
            await self._catch_up(follower)
            yield follower
        finally:
            self._followers.discard(follower)

    def look_up(self, turn: str) -> None:
        for follower in self._followers:
            if follower.turn == turn:
                follower.look_up()

    async def _read_next(self) -> None:
        await self._wanted.wait()
        if not self._followers:
            self._wanted.clear()
            return
        await self._store.wait_for_events(_GLANCE)
        await self._read()

    async def _catch_up(self, follower: Follower) -> None:
        """What is there already, for one who has just come: the others have it."""
        while rows := await self._store.events({follower.turn: follower.at}, _MANY):
            follower.put([EVENT.load(row.body) for row in rows])
            if len(rows) < _MANY:
                return

    async def _read(self) -> None:
        """Until nothing is left, for everybody: each gets what comes after what it has."""
        while self._followers:
            after: dict[str, int] = {}
            followers = list(self._followers)  # who joins meanwhile wants more than is read here
            for follower in followers:
                after[follower.turn] = min(after.get(follower.turn, follower.at), follower.at)
            rows = await self._store.events(after, _MANY)
            events: dict[str, list[Event]] = {}
            for row in rows:
                events.setdefault(row.turn, []).append(EVENT.load(row.body))
            for follower in followers:
                follower.put(events.get(follower.turn, []))
            if len(rows) < _MANY:
                return
