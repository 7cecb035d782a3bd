"""Lets callers follow the events of a turn, whichever process runs it.

A turn that runs here is followed in its log. For a turn of another process, a signal asks its owner to mirror
the events into the store under the same numbers. They are read from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

from dragoman.background import Background
from dragoman.errors import StoreUnavailable
from dragoman.messages.asked import call_asked
from dragoman.messages.codec import Codec
from dragoman.messages.events import EVENT, Event, TurnEnd
from dragoman.messages.message import Message
from dragoman.store.store import Store, StoredEvent, TurnRow
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.signals import Signals
from dragoman.turn.machine import State

# Writes events of local turns for other processes, and reads the events of other processes.
#
# All turns of this process share one writer and one reader, so events of one moment are one write and one
# read.


_COALESCE = 0.025  # Seconds for which events are collected before they are written.
_MANY = 1000  # Maximum number of events per write or read.
_GLANCE = 0.05  # Seconds between checks in a store that cannot notify.
_PAUSE = 0.005  # Minimum seconds between two reads, however often the store is written.
_LINGER = 30.0  # Seconds to keep events after the end of their turn, for clients that lag behind.
_MESSAGES: Codec[list[Message]] = Codec(list[Message])
_log = logging.getLogger("dragoman.turn")


class Mirror:
    """Writes the events of turns followed from other processes, under their original numbers."""

    def __init__(self, store: Store, background: Background) -> None:
        self._store = store
        self._background = background
        self._logs: dict[str, tuple[TurnLog, int]] = {}  # each with the number last written
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
        """Note that the turn publishes no more events here."""
        if turn in self._logs:
            self._changed.set()

    async def close(self) -> None:
        """Write all published events before the process stops."""
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
        """Write all events since the last write, and drop turns whose last event is written."""
        rows: list[StoredEvent] = []
        upto: dict[str, tuple[TurnLog, int]] = {}
        for log, at in list(self._logs.values()):
            if new := log.events.since(at)[:_MANY]:
                rows += [_base(log)] if not at else []
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


def _base(log: TurnLog) -> StoredEvent:
    """Return the turn's messages before its current owner's first event.

    The row's negative number sorts before all events, so followers do not read it.
    """
    return StoredEvent(log.id, -log.epoch, _MESSAGES.dump([*log.begun]))


def _rows(log: TurnLog, events: list[Event]) -> list[StoredEvent]:
    """Return the rows of these events, without unwritable ones: a tool can report any value as progress."""
    rows = []
    for event in events:
        try:
            body = EVENT.dump(event)
            body.encode()  # Reject lone surrogates, which cannot be encoded.
            rows.append(StoredEvent(log.id, event.seq, body))
        except (TypeError, ValueError) as error:
            _log.warning(
                "turn %s: cannot send an event (%s) to other processes: %s", log.id, event.type, error
            )
    return rows


_LOOK = 0.5  # Seconds between checks for turns that ended or changed owner.
_SELDOM = 5.0  # Seconds between these checks if nothing was written.


class Follower:
    """Events of one turn that were read for one reader and not taken yet."""

    def __init__(self, turn: str, after: int) -> None:
        self.turn = turn
        self.at = after
        self.owner: str | None = ""  # owner of the turn at the last check
        self.called = False  # whether to look the turn up again
        self.told = False  # whether the requests of an abandoned turn were delivered
        self._events: list[Event] = []
        self._arrived = asyncio.Event()

    def put(self, events: list[Event]) -> None:
        if new := [event for event in events if event.seq > self.at]:
            self.at = new[-1].seq
            self._events += new
            self._arrived.set()

    def look_up(self) -> None:
        """Stop waiting, so that the reader looks the turn up again."""
        self.called = True
        self._arrived.set()

    async def take(self, seconds: float | None) -> list[Event]:
        """Return all events that arrived. None if the time passes or a lookup is requested."""
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return []
        self._arrived.clear()
        events, self._events = self._events, []
        return events


class RemoteEvents:
    """Reads the events of turns of other processes, for everyone who follows one here."""

    def __init__(self, store: Store, background: Background) -> None:
        self._store = store
        self._background = background
        self._followers: set[Follower] = set()
        self._wanted = asyncio.Event()
        self.written = asyncio.Event()  # set when another process has written
        self._begun = False

    @asynccontextmanager
    async def follow(self, turn: str, after: int) -> AsyncIterator[Follower]:
        follower = Follower(turn, after)
        self._followers.add(follower)
        self._wanted.set()
        if not self._begun:
            self._begun = True
            self._background.repeat("reading events of other processes", self._read_next, every=_PAUSE)
            self._background.repeat("looking after followed turns", self._look_after, every=_LOOK)
        try:
            await self._catch_up(follower)
            yield follower
        finally:
            self._followers.discard(follower)

    def look_up(self, turn: str) -> None:
        for follower in self._followers:
            if follower.turn == turn:
                follower.look_up()

    async def _look_after(self) -> None:
        """Check all followed turns in one statement after a write.

        A turn that ended, changed owner or was abandoned may have no process that publishes its events. A
        process may also die without notice.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_SELDOM):
                await self.written.wait()
        self.written.clear()
        if not (followers := list(self._followers)):
            return
        try:
            found = await self._store.live_turns_named({follower.turn for follower in followers})
        except StoreUnavailable:
            self.written.set()
            raise
        rows = {row.id: row for row in found}
        for follower in followers:
            row = rows.get(follower.turn)
            silent = row is not None and row.state == State.WAITING and not (follower.at or follower.told)
            if row is None or row.owner != follower.owner or silent:
                follower.look_up()
            follower.owner = None if row is None else row.owner

    async def _read_next(self) -> None:
        await self._wanted.wait()
        if not self._followers:
            self._wanted.clear()
            return
        await self._store.wait_for_events(_GLANCE)
        await self._read()

    async def _catch_up(self, follower: Follower) -> None:
        """Read the existing events for a new follower. The others have them already."""
        while rows := await self._store.events({follower.turn: follower.at}, _MANY):
            follower.put([EVENT.load(row.body) for row in rows])
            if len(rows) < _MANY:
                return

    async def _read(self) -> None:
        """Read until no events are left, and give each follower those after its last one."""
        while self._followers:
            after: dict[str, int] = {}
            # A follower that joins meanwhile needs more than this read returns.
            followers = list(self._followers)
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


_LOOK_EVERY = 0.05  # Seconds between checks for the last events of a turn that is over.
_PATIENCE = 3.0  # Seconds to wait for the last events of a turn that is over.
_KEPT = 10_000  # Number of events kept of ended turns, for clients that reconnect after the end.


@dataclass(slots=True)
class LiveTurn:
    """A turn that runs here. Its task ends with it, and raises the turn's error."""

    log: TurnLog
    signals: Signals
    task: asyncio.Task[None]
    given_up: bool = False  # The turn continues elsewhere when the awaited answer arrives.


class EventBus:
    """The turns of this process, and access to events of others."""

    def __init__(self, store: Store, background: Background) -> None:
        self._store = store
        self._background = background
        self._mirror = Mirror(store, background)
        self._remote = RemoteEvents(store, background)
        self._turns: dict[str, LiveTurn] = {}
        self._over: dict[str, tuple[str, list[Event]]] = {}  # turns that ended here recently
        self._kept = 0  # total number of these events
        self._added = asyncio.Event()  # set when the next turn is added
        self.watchers: list[Callable[[TurnLog], None]] = []  # called with each turn before it starts here
        # called with each turn that another process is to run
        self.elsewhere: list[Callable[[str, str], None]] = []
        self.writes: list[Callable[[], None]] = []  # called when another process has written

    def open(self) -> None:
        """Recreate objects bound to an event loop: a runtime may reopen in another loop."""
        self._mirror = Mirror(self._store, self._background)
        self._remote = RemoteEvents(self._store, self._background)
        self._added = asyncio.Event()

    # ── turns that run here ───────────────────────────────────────────────────────────────────────

    def here(self, turn: str) -> LiveTurn | None:
        return self._turns.get(turn)

    async def until_here(self, turn: str, seconds: float) -> None:
        """Wait until the turn runs here, at most this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.here(turn) is None:
                    await self._added.wait()

    def turns(self, conversation: str | None = None) -> list[LiveTurn]:
        """Return the turns that run here, of one conversation or of all."""
        return [
            live
            for live in self._turns.values()
            if conversation is None or live.log.conversation.id == conversation
        ]

    def announce(self, log: TurnLog) -> None:
        """Notify watchers of a turn that is about to start."""
        for watch in self.watchers:
            watch(log)

    def hand_over(self, turn: str, conversation: str) -> None:
        """Notify watchers of a turn that was requested here and starts elsewhere."""
        for watch in self.elsewhere:
            watch(turn, conversation)

    def hear_of_writes(self) -> None:
        self._remote.written.set()
        for watch in self.writes:
            watch()

    def add(self, live: LiveTurn) -> None:
        self._turns[live.log.id] = live
        self._added.set()
        self._added = asyncio.Event()
        self._remote.look_up(live.log.id)  # Callers that followed the turn remotely now follow it here.

    def remove(self, turn: str) -> None:
        live = self._turns.pop(turn, None)
        if live is not None:
            live.log.events.close()
            self._mirror.note_end(turn)
            if live.log.turn.state.ended and not live.log.broken:  # Otherwise the turn is retried.
                told = live.log.events.since(0)
                self._over[turn] = live.log.conversation.id, told
                self._kept += len(told)
                while self._kept > _KEPT:
                    self._drop(next(iter(self._over)))

    def _drop(self, turn: str) -> None:
        _, told = self._over.pop(turn)
        self._kept -= len(told)

    def forget(self, conversation: str) -> None:
        """Drop the events of a deleted conversation."""
        for turn in [turn for turn, (where, _) in self._over.items() if where == conversation]:
            self._drop(turn)

    # ── following ─────────────────────────────────────────────────────────────────────────────────

    def follow(self, turn: str, after: int = 0) -> AsyncIterator[list[Event]]:
        """Yield every event after this number once, in batches, until the turn ends or no process runs it."""
        live = self.here(turn)
        return self._follow_elsewhere(turn, after) if live is None else live.log.events.batches(after)

    def rest(self, turn: str, after: int) -> list[Event] | None:
        """Return the events after this number of a turn that recently ended here. None for any other turn."""
        if (over := self._over.get(turn)) is None:
            return None
        _, told = over
        return [event for event in told if event.seq > after]

    async def begun_by(self, turn: str, epoch: int) -> list[Message] | None:
        """Return the messages of another process's turn before this owner's first event.

        None if they are not stored: the turn has no remote follower yet, or an older version runs it.
        """
        for stored in await self._store.events({turn: -epoch - 1}, 1):
            if stored.seq == -epoch:
                return _MESSAGES.load(stored.body)
        return None

    async def is_heard(self, turn: str, upto: int) -> bool:
        """Return whether the event of this number was the end of the turn.

        The last owner may have died before it published the end.
        """
        if (rest := self.rest(turn, upto)) is not None:
            return not rest
        for stored in await self._store.events({turn: upto - 1}, 1):
            return stored.seq == upto and isinstance(EVENT.load(stored.body), TurnEnd)
        return False

    async def _follow_elsewhere(self, turn: str, after: int) -> AsyncIterator[list[Event]]:
        patience, asked = _PATIENCE, False
        async with self._remote.follow(turn, after) as follower:
            while patience > 0:
                follower.called = False
                row = await self._store.turn(turn)
                if row.live and not asked:
                    # The signal also reaches later owners of the turn.
                    asked = await self._store.post(turn, "follow", {})
                told = follower.told or follower.at
                if not told and (questions := await self._asked_by_nobody(row)):
                    follower.told = True
                    yield questions
                while batch := await follower.take(None if row.live else _LOOK_EVERY):
                    yield batch
                    if isinstance(batch[-1], TurnEnd):
                        return
                    if follower.called:
                        break
                if (live := self.here(turn)) is not None:  # The turn was resumed here.
                    async for batch in live.log.events.batches(follower.at):
                        follower.at = batch[-1].seq
                        yield batch
                    if not live.given_up:
                        return
                patience -= 0 if row.live else _LOOK_EVERY  # The last events are on their way.

    async def _asked_by_nobody(self, turn: TurnRow) -> list[Event]:
        """Return the open requests of a waiting turn that was given up: no process publishes them."""
        if turn.state != State.WAITING or not await self._store.is_abandoned(turn.id):
            return []
        return [call_asked(one) for one in await self._store.questions_of(turn.id) if one.open]

    def mirror(self, log: TurnLog) -> None:
        """Start mirroring this turn for a follower in another process."""
        self._mirror.add(log)

    async def close(self) -> None:
        await self._mirror.close()
