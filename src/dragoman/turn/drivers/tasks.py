"""Runs turns as tasks of this process, adopts those whose process died, and starts queued turns in order."""

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
_ORPHANS = 5.0  # Seconds between checks for turns whose process died.
_GLANCE = 0.25  # Seconds between checks for other processes' signals in a store that cannot notify.
_PAUSE = 0.01  # Minimum seconds between two checks, however often the store is written.
_OTHERS_FIRST = 1.0  # Seconds reserved for the process that was present when the turn was queued.
_GRACE = 10.0  # seconds for turns to stop, or to end if they are ending, before their tasks are cancelled


class TaskDriver:
    """Implements `Driver`. `adopts` is False for processes that only inspect turns, answer and exit."""

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
        self._quarantined: dict[str, str] = {}  # turns that cannot continue here, with the reason
        self._broken_off: dict[str, int] = {}  # turns to release when the store is reachable
        self._leaves_to_workers = job_queue_of(services.store) is not None
        self._given_up: set[str] = set()  # turns given up at the last check
        self._begins = 0  # number of turns being stored and started
        # queued turns at the last check, with the time they were first seen
        self._may_begin: dict[str, float] = {}
        # queued turns being started, until that succeeds or fails
        self._beginning: dict[str, asyncio.Event] = {}
        self._lacking: dict[str, str] = {}  # queued turns, each with the requirement missing here
        self._unheard = False  # Signals may be unread.
        self._lost: set[str] = set()  # owned turns not running here at the last check
        self._closing = False

    async def open(self) -> None:
        self._closing = False  # The runtime may have been open before.
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
        await self._background.close()  # Wait for background work that the last turns and events started.

    @contextmanager
    def starting(self) -> Iterator[None]:
        self._begins += 1
        try:
            yield
        finally:
            self._begins -= 1

    @contextmanager
    def _given_up_on_error(self, started: Started) -> Iterator[None]:
        """Release a turn stored as owned by this process if it cannot start here, once the store
        allows it."""
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
                return  # The turn continues at the next start.
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
            await asyncio.wait([beginning])  # If starting fails, the turn stays queued.

    async def adopt(self, turn: str, *, wanted: bool = False) -> bool:
        if await self._runs_here(turn):
            return True
        if not self._adopts and not wanted:
            return False
        if wanted:
            self._quarantined.pop(turn, None)  # The missing requirement may be available now.
        if (why := self._quarantined.get(turn)) is not None:
            if (await self._store.turn(turn)).live:
                raise TurnQuarantined(turn, why)
            self._quarantined.pop(turn, None)  # The turn was ended elsewhere.
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
        return False  # Every turn that can continue here was started or adopted.

    def forget(self, conversation: str) -> None:
        self._paths.forget(conversation)

    # ── replaying turns from their facts ──────────────────────────────────────────────────────────

    async def _adopt(self, turn: str) -> bool:
        epoch = await self._store.claim(turn)
        if epoch is None:
            return False  # The turn is over, or its owner is alive.
        try:
            log = await load_turn(self._services, turn)
        except BaseException as error:
            # If the release cannot be stored now, it is repeated when the store is back.
            self._broken_off[turn] = epoch
            with suppress(StoreUnavailable):
                await self._release_all()
            if isinstance(error, TurnQuarantined):
                self._quarantined[turn] = error.why
                _log.warning("%s; it stays as it is, and you can cancel or delete it", error)
                with suppress(StoreUnavailable):  # A client that sees the notice must find the turn released.
                    await tell_quarantined(self._store, turn, epoch, error.why)
            raise
        self._start_runner(log)
        return True

    async def _adopt_all(self) -> None:
        """Adopt every turn that no process runs, except waiting ones, which a signal wakes."""
        await self._find_lost()
        await self._release_all()
        for row in await self._unclaimed():
            with suppress(NotFound, Fenced):  # The turn was deleted, or another process owns it.
                async with self._ended_if_cancelled(row.id):
                    await self.adopt(row.id)
        await self._start_queued()

    @asynccontextmanager
    async def _ended_if_cancelled(self, turn: str) -> AsyncIterator[None]:
        """Leave a turn that cannot continue here unchanged, unless a cancel was requested."""
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
        except Exception as error:  # Unforeseen damage to one turn must not stop the others.
            self._quarantined[turn] = f"{type(error).__name__}: {error}"
            _log.error("cannot resume turn %s; it stays as it is", turn, exc_info=error)

    async def _find_lost(self) -> None:
        """Find turns that this process owns in the store but does not run.

        Their claim was written although the store reported a failure. While this process lives, no other can
        claim them.
        """
        if self._begins:
            return
        found = {row.id: row.epoch for row in await self._store.own_turns()}
        lost = {turn for turn in found if self._bus.here(turn) is None and turn not in self._adopting}
        for turn in lost & self._lost:
            self._broken_off[turn] = found[turn]
        self._lost = lost

    async def _unclaimed(self) -> list[TurnRow]:
        """Return turns that no process runs and that have work to do.

        If the store has a queue, workers get the first chance at turns given up on purpose. Those still
        present at the next check are returned.
        """
        found = await self._store.abandoned_turns(waiting=False)
        if not self._leaves_to_workers:
            return found
        before, self._given_up = self._given_up, {row.id for row in found if row.owner is None}
        return [row for row in found if row.owner is not None or row.id in before]

    async def _release_all(self) -> None:
        """Release turns that broke off here, as soon as the store accepts it. Any process may then claim
        them."""
        for turn, epoch in list(self._broken_off.items()):
            await self._store.release(turn, epoch)
            self._broken_off.pop(turn, None)

    async def _look_for_signals(self) -> None:
        """Find the signals of other processes. This process reads its own immediately.

        If this process adopts turns, it also finds signals for turns that no process runs.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_GLANCE if self._unheard else None):
                await self._store.wait_for_writes(_GLANCE)
        if await self._store.has_new_writes() or self._unheard:
            self._unheard = True  # Keep the flag until this check completes without new turns starting.
            self._bus.hear_of_writes()
            begins = self._begins
            own = [live.log.id for live in self._bus.turns()]
            for signalled in await self._store.turns_with_signals(own=own):
                live = self._bus.here(signalled.turn)
                read = live.signals.has_read(signalled.newest) if live else signalled.only_followed
                if not read and (live is not None or not self._leaves_to_workers):
                    with suppress(NotFound, Fenced):  # The turn was deleted, or another process owns it.
                        async with self._ended_if_cancelled(signalled.turn):
                            await self.wake(signalled.turn)
            if self._adopts:
                await self._start_queued()
            self._unheard = bool(begins)

    async def _start_queued(self, others_first: float = _OTHERS_FIRST) -> None:
        """Start queued turns that no process has started.

        The process that ran the previous turn usually starts the next one immediately. It may be the only one
        with the model, the folder and the inputs.
        """
        now = asyncio.get_running_loop().time()
        self._may_begin = {turn: self._may_begin.get(turn, now) for turn in await self._store.queue()}
        for turn, since in list(self._may_begin.items()):
            if now - since >= others_first:
                await self._begin_next(turn)

    async def _start_queued_in(self, conversation: str) -> None:
        for queued in await self._store.queued(conversation=conversation):
            await self._begin_next(queued.turn)

    async def _begin_next(self, turn: str) -> None:
        await self._runs_here(turn)  # Wait until no other attempt to start it is in progress.
        self._beginning[turn] = decided = asyncio.Event()
        try:
            with self.starting():
                started = None if await self._lacks(turn) else await self._store.start_queued(turn)
                if started is not None:
                    # An unreadable turn must not block the others: it is quarantined when it is adopted.
                    with suppress(ValidationError), self._given_up_on_error(started):
                        facts = await self._store.facts(turn)
                        await self.start(started, FACT.load(facts[0]))
        finally:
            del self._beginning[turn]
            decided.set()

    async def _lacks(self, turn: str) -> bool:
        """Return whether a queued turn needs something missing here. It waits for a process that has it."""
        for queued in await self._store.queued(turn=turn):
            with suppress(ValidationError):  # An unreadable turn is quarantined when it is adopted.
                why = missing_here(self._services, options_in([queued.fact]))
                if why is not None and self._lacking.get(turn) != why:
                    _log.warning("turn %s stays in the queue: %s", turn, why)
                    self._lacking[turn] = why
                return why is not None
        return False

    async def _runs_here(self, turn: str) -> bool:
        """Return whether the turn runs here, after any start in progress is decided.

        In the store, a turn leaves the queue a moment before it runs.
        """
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
            # The turn is retried. Callers that wait for it keep waiting.
            live.given_up = live.given_up or not self._closing
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


# Starts and resumes turns: as a task each in one process, or through a job queue on several machines.


class Driver(Protocol):
    hands_out: bool  # A turn that no process runs waits for a worker and is not interrupted.

    async def open(self) -> None:
        """Resume every turn that no process runs, except those that only wait for a user."""

    async def close(self) -> None:
        """Stop without ending any turn. They resume at the next start."""

    def starting(self) -> AbstractContextManager[None]:
        """Mark that a turn is being stored and started, so that signals for it are not missed."""

    async def start(self, started: Started, fact: Fact) -> None:
        """Run a turn that was just stored."""

    async def start_queued(self, turn: str) -> None:
        """Run a turn from the queue if the turn it waits for is over."""

    async def adopt(self, turn: str, *, wanted: bool = False) -> bool:
        """Run a turn that was started elsewhere.

        Return False if it is over or its owner is alive. Also return False if this process adopts no turns,
        unless `wanted`. Raise TurnQuarantined if the turn cannot continue here.
        """

    def leaves(self, turn: str) -> bool:
        """Return whether a turn that no process runs stays so, because this process only inspects and
        answers."""

    async def wake(self, turn: str) -> None:
        """Let the turn read a new signal, in whichever process it runs."""

    async def will_run(self, turn: TurnRow) -> bool:
        """Return whether a turn that no process runs will resume by itself when a slot is free."""

    def forget(self, conversation: str) -> None:
        """Drop a deleted conversation from memory."""
