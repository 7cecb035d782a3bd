"""Runs turns as tasks of this process, adopts those whose process died, and starts queued ones in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from typing import Protocol

from pydantic import ValidationError

from dragoman.background import Background
from dragoman.errors import Fenced, NotFound, StoreUnavailable, TurnInterrupted, TurnQuarantined
from dragoman.store.store import Started, Store, TurnRow
from dragoman.store.turns import job_queue_of
from dragoman.turn.facts import FACT, Fact, options_in
from dragoman.turn.live.event_bus import EventBus, LiveTurn
from dragoman.turn.live.event_log import tell_quarantined
from dragoman.turn.live.loading import Paths, load_path, load_turn, missing_here
from dragoman.turn.live.log import TurnLog
from dragoman.turn.services import Services
from dragoman.turn.steps.cancel import end_quarantined
from dragoman.turn.steps.runner import Runner

_log = logging.getLogger("dragoman.turn")
_ORPHANS = 5.0  # seconds between looks for turns whose process died
_GLANCE = 0.25  # seconds between looks for signals of other processes in a store that cannot notify
_PAUSE = 0.01  # seconds between two looks, whatever is written
_OTHERS_FIRST = 1.0  # seconds in which whoever was there when a turn was queued may begin it
_GRACE = 10.0  # seconds in which a turn that is ending may end when the program stops


class TaskDriver:
    """Implements `Driver`. `adopts` is False for programs that only look, answer and leave."""

    hands_out = False

    def __init__(
        self, services: Services, bus: EventBus, background: Background, *, adopts: bool = True
    ) -> None:
        self._services = services
        self._bus = bus
        self._background = background
        self._adopts = adopts
        self._store: Store = services.store
        self._paths = Paths()
        self._runners: dict[str, Runner] = {}
        self._adopting: dict[str, asyncio.Task[bool]] = {}
        self._quarantined: dict[str, str] = {}  # turns that cannot go on here, and why
        self._broken_off: dict[str, int] = {}  # turns to be given up when the store can be reached
        self._leaves_to_workers = job_queue_of(services.store) is not None
        self._given_up: set[str] = set()  # turns, at the last look
        self._begins = 0  # turns that are being stored and begun
        self._may_begin: dict[str, float] = {}  # queued turns, at the last look, and since when
        self._beginning: dict[str, asyncio.Event] = {}  # queued turns among them, until they run here or not
        self._lacking: dict[str, str] = {}  # queued turns that need something else than is here, and what
        self._unheard = False  # signals may have come in that nobody has read
        self._lost: set[str] = set()  # turns of ours that do not run here, at the last look
        self._closing = False

    async def open(self) -> None:
        self._closing = False  # it may have been open before
        self._quarantined.clear()
        self._bus.open()
        if self._adopts:
            await self._adopt_all()
            await self._start_queued(others_first=0.0)
            self._background.repeat("the watch for orphaned turns", self._adopt_all, every=_ORPHANS)
        self._background.repeat("the watch for signals", self._look_for_signals, every=_PAUSE)

    async def close(self) -> None:
        self._closing = True
        await self._background.close()
        for adopting in self._adopting.values():
            adopting.cancel()
        for runner in self._runners.values():
            runner.stop()
        tasks = [live.task for live in self._bus.turns()]
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=_GRACE)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)
        await self._bus.close()
        await self._background.close()  # what the last turns and events began

    @contextmanager
    def starting(self) -> Iterator[None]:
        self._begins += 1
        try:
            yield
        finally:
            self._begins -= 1

    @contextmanager
    def _given_up_on_error(self, started: Started) -> Iterator[None]:
        """It is stored as ours: if it cannot be begun, somebody else may, as soon as the store takes that."""
        try:
            yield
        except BaseException:
            self._broken_off[started.turn.id] = started.turn.epoch
            raise

    async def start(self, started: Started, fact: Fact) -> None:
        path = self._paths.take(started)
        if path is None:
            with self._given_up_on_error(started):
                path = await load_path(self._store, started.conversation.id, started.turn.message)
            if self._closing:
                return  # it goes on at the next start
        self._start_runner(
            TurnLog(
                started.turn,
                store=self._store,
                conversation=started.conversation,
                facts=[fact],
                path=path,
                revision=started.revision,
                clock=self._services.clock,
            )
        )

    async def start_queued(self, turn: str) -> None:
        if not self._closing:
            beginning = self._background.run("beginning a queued turn", lambda: self._begin_next(turn))
            await asyncio.wait([beginning])  # if it fails it is queued all the same

    async def adopt(self, turn: str, *, wanted: bool = False) -> bool:
        if await self._runs_here(turn):
            return True
        if not self._adopts and not wanted:
            return False
        if wanted:
            self._quarantined.pop(turn, None)  # what it lacked may be there now
        if (why := self._quarantined.get(turn)) is not None:
            if (await self._store.turn(turn)).live:
                raise TurnQuarantined(turn, why)
            self._quarantined.pop(turn, None)  # somebody has ended it
        if self._closing:
            return False
        if turn not in self._adopting:
            self._adopting[turn] = task = asyncio.create_task(self._adopt(turn))
            task.add_done_callback(lambda _: self._adopting.pop(turn, None))
        return await asyncio.shield(self._adopting[turn])

    def leaves(self, turn: str) -> bool:
        return not self._adopts and self._bus.here(turn) is None

    async def wake(self, turn: str) -> None:
        if self._bus.here(turn) is not None or await self.adopt(turn):
            live = self._bus.here(turn)
            if live is not None:
                await live.signals.collect()

    async def will_run(self, turn: TurnRow) -> bool:
        return False  # whatever can go on here was begun or adopted

    def forget(self, conversation: str) -> None:
        self._paths.forget(conversation)

    # ── taking turns up from their facts ──────────────────────────────────────────────────────────

    async def _adopt(self, turn: str) -> bool:
        epoch = await self._store.claim(turn)
        if epoch is None:
            return False  # it is over, or its owner is alive
        try:
            log = await load_turn(self._services, turn)
        except BaseException as error:
            self._broken_off[turn] = epoch  # if that cannot be stored now, it is when the store is back
            with suppress(StoreUnavailable):
                await self._release_all()
            if isinstance(error, TurnQuarantined):
                self._quarantined[turn] = error.why
                _log.warning("%s; it stays as it is, and you can cancel or delete it", error)
                with suppress(StoreUnavailable):  # who is told finds that nobody runs it
                    await tell_quarantined(self._store, turn, epoch, error.why)
            raise
        self._start_runner(log)
        return True

    async def _adopt_all(self) -> None:
        """Every turn that nobody runs, but for those that only wait: a signal wakes them."""
        await self._find_lost()
        await self._release_all()
        for row in await self._unclaimed():
            with suppress(NotFound, Fenced):  # deleted, or somebody else's
                async with self._ended_if_cancelled(row.id):
                    await self.adopt(row.id)
        await self._start_queued()

    @asynccontextmanager
    async def _ended_if_cancelled(self, turn: str) -> AsyncIterator[None]:
        """What cannot go on here stays as it is, unless somebody wants it to end."""
        try:
            yield
        except TurnQuarantined:
            for signal in await self._store.signals(turn):
                if signal.kind == "cancel":
                    reason = str(signal.body.get("reason") or "")
                    await end_quarantined(self._services, self.wake, turn, reason)
                    break
        except (StoreUnavailable, NotFound, Fenced):
            raise
        except Exception as error:  # damage that nobody thought of: the others go on
            self._quarantined[turn] = f"{type(error).__name__}: {error}"
            _log.error("cannot resume turn %s; it stays as it is", turn, exc_info=error)

    async def _find_lost(self) -> None:
        """Turns that are ours by the store, and do not run here: what made them so was written, and we were
        told that it failed. Nobody else may take them as long as we live."""
        if self._begins:
            return
        found = {row.id: row.epoch for row in await self._store.own_turns()}
        lost = {turn for turn in found if self._bus.here(turn) is None and turn not in self._adopting}
        for turn in lost & self._lost:
            self._broken_off[turn] = found[turn]
        self._lost = lost

    async def _unclaimed(self) -> list[TurnRow]:
        """Turns that nobody runs, and that have something to do. What was given up on purpose is first left
        to the workers, if the store has a queue for them: whoever finds it still there at the next look takes
        it."""
        found = await self._store.abandoned_turns(waiting=False)
        moving = {row.id for row in found}
        for signalled in await self._store.turns_with_signals(own=()):
            if signalled.turn not in moving and await self._store.is_abandoned(signalled.turn):
                found.append(await self._store.turn(signalled.turn))
        if not self._leaves_to_workers:
            return found
        before, self._given_up = self._given_up, {row.id for row in found if row.owner is None}
        return [row for row in found if row.owner is not None or row.id in before]

    async def _release_all(self) -> None:
        """Turns that broke off here are anybody's, ours included, as soon as the store takes it."""
        for turn, epoch in list(self._broken_off.items()):
            await self._store.release(turn, epoch)
            self._broken_off.pop(turn, None)

    async def _look_for_signals(self) -> None:
        """Signals of this process are read at once; those of others are found here, and where turns are
        adopted, also those for turns that nobody runs."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GLANCE if self._unheard else None):
                await self._store.wait_for_writes(_GLANCE)
        if await self._store.has_new_writes() or self._unheard:
            self._unheard = True  # unless we come to the end of this, and everybody is here
            self._bus.hear_of_writes()
            begins = self._begins
            own = [live.log.id for live in self._bus.turns()]
            for signalled in await self._store.turns_with_signals(own=own):
                live = self._bus.here(signalled.turn)
                read = live.signals.has_read(signalled.newest) if live else signalled.only_followed
                if not read and (live is not None or not self._leaves_to_workers):
                    with suppress(NotFound, Fenced):  # deleted, or somebody else's
                        async with self._ended_if_cancelled(signalled.turn):
                            await self.wake(signalled.turn)
            if self._adopts:
                await self._start_queued()
            self._unheard = bool(begins)

    async def _start_queued(self, others_first: float = _OTHERS_FIRST) -> None:
        """What nobody begins. Who ran the turn before it does that at once, and may alone have what it needs:
        its model, its folder, what was sent along."""
        now = asyncio.get_running_loop().time()
        self._may_begin = {turn: self._may_begin.get(turn, now) for turn in await self._store.queue()}
        for turn, since in list(self._may_begin.items()):
            if now - since >= others_first:
                await self._begin_next(turn)

    async def _start_queued_in(self, conversation: str) -> None:
        for queued in await self._store.queued(conversation=conversation):
            await self._begin_next(queued.turn)

    async def _begin_next(self, turn: str) -> None:
        await self._runs_here(turn)  # nobody else is at it
        self._beginning[turn] = decided = asyncio.Event()
        try:
            with self.starting():
                started = None if await self._lacks(turn) else await self._store.start_queued(turn)
                if started is not None:
                    # What cannot be read holds up no other: it is quarantined when it is adopted.
                    with suppress(ValidationError), self._given_up_on_error(started):
                        facts = await self._store.facts(turn)
                        await self.start(started, FACT.load(facts[0]))
        finally:
            del self._beginning[turn]
            decided.set()

    async def _lacks(self, turn: str) -> bool:
        """Whether a queued turn needs something that is not here: it waits for a process that has it."""
        for queued in await self._store.queued(turn=turn):
            with suppress(ValidationError):  # what cannot be read is quarantined when it is adopted
                why = missing_here(self._services, options_in([queued.fact]))
                if why is not None and self._lacking.get(turn) != why:
                    _log.warning("turn %s stays in the queue: %s", turn, why)
                    self._lacking[turn] = why
                return why is not None
        return False

    async def _runs_here(self, turn: str) -> bool:
        """Once it is decided: by the store a turn is no longer queued a moment before it runs."""
        while (decided := self._beginning.get(turn)) is not None:
            await decided.wait()
        return self._bus.here(turn) is not None

    # ── tasks ─────────────────────────────────────────────────────────────────────────────────────

    def _start_runner(self, log: TurnLog) -> None:
        self._bus.announce(log)
        runner = Runner(self._services, log, on_follow=lambda: self._bus.mirror(log), wake=self.wake)
        self._runners[log.id] = runner
        task = asyncio.create_task(runner.run(), name=log.id)
        self._bus.add(LiveTurn(log, runner.signals, task))
        task.add_done_callback(lambda done: self._ended(log, done))

    def _ended(self, log: TurnLog, task: asyncio.Task[None]) -> None:
        self._runners.pop(log.id, None)
        error = None if task.cancelled() else task.exception()
        live = self._bus.here(log.id)
        if live is not None and not log.turn.state.ended and not isinstance(error, Fenced):
            live.given_up = live.given_up or not self._closing  # it is tried again; who waits for it waits
        self._bus.remove(log.id)
        if log.turn.state.ended and not log.broken:
            self._paths.keep(log)
            if not self._closing:
                here = log.conversation.id
                self._background.run("starting queued turns", lambda: self._start_queued_in(here))
            return
        if error is not None and not isinstance(error, Fenced | TurnInterrupted):
            trace = None if isinstance(error, StoreUnavailable) else error
            _log.error("turn %s broke off; trying again: %s", log.id, error, exc_info=trace)
        if not self._closing:
            self._broken_off[log.id] = log.epoch
            self._background.run(f"releasing turn {log.id}", self._release_all)


# Who sees to it that turns are run: in one process a task for each, on many machines a job queue.


class Driver(Protocol):
    hands_out: bool  # what nobody runs waits for a worker: it is not broken off

    async def open(self) -> None:
        """Go on with every turn that nobody runs, except those that only wait for a person."""

    async def close(self) -> None:
        """Stop, without ending any turn: they go on at the next start."""

    def starting(self) -> AbstractContextManager[None]:
        """A turn is about to be stored and begun: what comes in for it meanwhile is not missed."""

    async def start(self, started: Started, fact: Fact) -> None:
        """Run a turn that was just stored."""

    async def start_queued(self, turn: str) -> None:
        """Run a turn that was put in the queue, if what it waits for is over by now."""

    async def adopt(self, turn: str, *, wanted: bool = False) -> bool:
        """Run a turn that was begun elsewhere. False where it is over, or its owner is alive, or where this
        process adopts none, unless a person wants it. TurnQuarantined where it cannot go on here."""

    def leaves(self, turn: str) -> bool:
        """Whether a turn that no process runs stays so: this one only looks, answers and leaves."""

    async def wake(self, turn: str) -> None:
        """A signal came in: let the turn read it, wherever it is."""

    async def will_run(self, turn: TurnRow) -> bool:
        """Whether a turn that nobody runs goes on by itself when there is room: it is not broken off."""

    def forget(self, conversation: str) -> None:
        """It was deleted: nothing of it need be in memory."""
