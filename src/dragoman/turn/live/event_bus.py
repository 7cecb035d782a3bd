"""Where the events of a turn can be followed, whichever process runs it.

A turn that runs here is followed in its own log. For one that another process runs, the owner is asked (by
a signal) to mirror its events into the store, under the same numbers, and they are read from there.
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

# Events of turns that run here, put where other processes read them; and those of other processes, read.
#
# One writer and one reader for all turns of this process: what a moment brings is one write, and one read.


_COALESCE = 0.025  # seconds in which events are put together before they are written
_MANY = 1000  # events written or read at once
_GLANCE = 0.05  # seconds between looks in a store that cannot notify
_PAUSE = 0.005  # seconds between two reads, whatever is written
_LINGER = 30.0  # seconds for which events stay after the end of their turn, for who is behind
_MESSAGES: Codec[list[Message]] = Codec(list[Message])
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
    """What the turn had said before its present owner's first event. Its number is no event's, and comes
    before them all: who follows the events does not read it."""
    return StoredEvent(log.id, -log.epoch, _MESSAGES.dump([*log.begun]))


def _rows(log: TurnLog, events: list[Event]) -> list[StoredEvent]:
    """Without what cannot be written: a tool may tell of its progress with anything."""
    rows = []
    for event in events:
        try:
            body = EVENT.dump(event)
            body.encode()  # half a character is no text
            rows.append(StoredEvent(log.id, event.seq, body))
        except (TypeError, ValueError) as error:
            _log.warning(
                "turn %s: cannot send an event (%s) to other processes: %s", log.id, event.type, error
            )
    return rows


_LOOK = 0.5  # seconds between looks for turns that are over, or that somebody else runs
_SELDOM = 5.0  # seconds between them where nothing was written


class Follower:
    """What has been read of one turn for one reader, and not been taken yet."""

    def __init__(self, turn: str, after: int) -> None:
        self.turn = turn
        self.at = after
        self.owner: str | None = ""  # of the turn, when it was last looked at
        self.called = False  # to look it up
        self.told = False  # what it asks, though nobody runs it
        self._events: list[Event] = []
        self._arrived = asyncio.Event()

    def put(self, events: list[Event]) -> None:
        if new := [event for event in events if event.seq > self.at]:
            self.at = new[-1].seq
            self._events += new
            self._arrived.set()

    def look_up(self) -> None:
        """Wait no longer: there is something to be seen elsewhere."""
        self.called = True
        self._arrived.set()

    async def take(self, seconds: float | None) -> list[Event]:
        """All that has come; nothing where nothing comes for so long, or something is to be looked up."""
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
        self.written = asyncio.Event()  # something, by another process
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
        """All turns in one statement, when something was written: a turn that is over, or that somebody else
        runs or nobody, may have nobody who tells of it. A process may also die without a word."""
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


_LOOK_EVERY = 0.05  # seconds between looks for the last events of a turn that is over
_PATIENCE = 3.0  # seconds in which the last events of a turn that is over may still arrive
_KEPT = 10_000  # events of turns that are over, for who lost the connection before they were


@dataclass(slots=True)
class LiveTurn:
    """A turn that runs here. Its task ends with it, and raises what it failed with."""

    log: TurnLog
    signals: Signals
    task: asyncio.Task[None]
    given_up: bool = False  # it goes on elsewhere when what it waits for comes


class EventBus:
    """The turns of this process, and a window on those of others."""

    def __init__(self, store: Store, background: Background) -> None:
        self._store = store
        self._background = background
        self._mirror = Mirror(store, background)
        self._remote = RemoteEvents(store, background)
        self._turns: dict[str, LiveTurn] = {}
        self._over: dict[str, tuple[str, list[Event]]] = {}  # of those that ended here lately
        self._kept = 0  # events in all of these
        self._added = asyncio.Event()  # the next turn
        self.watchers: list[Callable[[TurnLog], None]] = []  # told of each turn before it begins to run here
        self.elsewhere: list[Callable[[str, str], None]] = []  # and of each that somebody else is to run
        self.writes: list[Callable[[], None]] = []  # told when another process has written something

    def open(self) -> None:
        """What belongs to an event loop is made anew: a runtime may be opened again, in another one."""
        self._mirror = Mirror(self._store, self._background)
        self._remote = RemoteEvents(self._store, self._background)
        self._added = asyncio.Event()

    # ── turns that run here ───────────────────────────────────────────────────────────────────────

    def here(self, turn: str) -> LiveTurn | None:
        return self._turns.get(turn)

    async def until_here(self, turn: str, seconds: float) -> None:
        """Wait until it runs here, and no longer than that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.here(turn) is None:
                    await self._added.wait()

    def turns(self, conversation: str | None = None) -> list[LiveTurn]:
        """Those that run here, of one conversation or of all."""
        return [
            live
            for live in self._turns.values()
            if conversation is None or live.log.conversation.id == conversation
        ]

    def announce(self, log: TurnLog) -> None:
        """A turn is about to begin."""
        for watch in self.watchers:
            watch(log)

    def hand_over(self, turn: str, conversation: str) -> None:
        """A turn that was asked for here begins elsewhere."""
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
        self._remote.look_up(live.log.id)  # who follows it from elsewhere follows it here from now on

    def remove(self, turn: str) -> None:
        live = self._turns.pop(turn, None)
        if live is not None:
            live.log.events.close()
            self._mirror.note_end(turn)
            if live.log.turn.state.ended and not live.log.broken:  # else it is tried again
                told = live.log.events.since(0)
                self._over[turn] = live.log.conversation.id, told
                self._kept += len(told)
                while self._kept > _KEPT:
                    self._drop(next(iter(self._over)))

    def _drop(self, turn: str) -> None:
        _, told = self._over.pop(turn)
        self._kept -= len(told)

    def forget(self, conversation: str) -> None:
        """It was deleted."""
        for turn in [turn for turn, (where, _) in self._over.items() if where == conversation]:
            self._drop(turn)

    # ── following ─────────────────────────────────────────────────────────────────────────────────

    def follow(self, turn: str, after: int = 0) -> AsyncIterator[list[Event]]:
        """Every event after this number, each once, until the turn is over or nobody runs it any more: all
        that has come since the last look at once."""
        live = self.here(turn)
        return self._follow_elsewhere(turn, after) if live is None else live.log.events.batches(after)

    def rest(self, turn: str, after: int) -> list[Event] | None:
        """What was told after this number by a turn that ended here lately; None for any other."""
        if (over := self._over.get(turn)) is None:
            return None
        _, told = over
        return [event for event in told if event.seq > after]

    async def begun_by(self, turn: str, epoch: int) -> list[Message] | None:
        """What a turn of another process had said before the first event of this owner. None where nobody has
        told: nobody follows it yet, or an older program runs it."""
        for stored in await self._store.events({turn: -epoch - 1}, 1):
            if stored.seq == -epoch:
                return _MESSAGES.load(stored.body)
        return None

    async def is_heard(self, turn: str, upto: int) -> bool:
        """Whether the event of this number was the end of the turn. Its last owner may have died before it
        told of that."""
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
                    asked = await self._store.post(turn, "follow", {})  # and whoever owns it after that
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
                if (live := self.here(turn)) is not None:  # it was taken up here
                    async for batch in live.log.events.batches(follower.at):
                        follower.at = batch[-1].seq
                        yield batch
                    if not live.given_up:
                        return
                patience -= 0 if row.live else _LOOK_EVERY  # its last words are on their way

    async def _asked_by_nobody(self, turn: TurnRow) -> list[Event]:
        """What a turn asks that was given up while it waits: nobody runs it who would tell of it."""
        if turn.state != State.WAITING or not await self._store.is_abandoned(turn.id):
            return []
        return [call_asked(one) for one in await self._store.questions_of(turn.id) if one.open]

    def mirror(self, log: TurnLog) -> None:
        """Somebody in another process wants to follow this turn."""
        self._mirror.add(log)

    async def close(self) -> None:
        await self._mirror.close()
