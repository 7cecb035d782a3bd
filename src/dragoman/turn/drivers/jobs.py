"""Runs turns that a job queue hands out: on one machine within limits, on several machines in roles.

A web process stores incoming requests and hands turns over. A worker claims turns from the queue and runs
each until it ends or waits for a user. The worker then gives a waiting turn up, and any available process
resumes it when the answer arrives.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from dragoman.background import Background
from dragoman.errors import ConfigError, DragomanError, NotFound, StoreUnavailable
from dragoman.messages.message import CallState
from dragoman.store.store import Started, TurnRow
from dragoman.store.turns import JobQueue, MemoryJobs, job_queue_of
from dragoman.turn.drivers.tasks import Driver, TaskDriver
from dragoman.turn.facts import FACT, Fact, TurnStarted
from dragoman.turn.live.event_bus import EventBus
from dragoman.turn.live.event_log import is_quarantined
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.signals import moves_waiting
from dragoman.turn.machine import State
from dragoman.turn.services import Services
from dragoman.turn.steps.family import sender_of

Role: TypeAlias = Literal["web", "worker", "both"]
ROLES: tuple[Role, ...] = ("web", "worker", "both")

_LOOKS = 4  # Number of checks for waiting turns within the time after which they are given up.
_PARTING = 20.0  # Maximum seconds to wait for the queue to release this process.
_CROWDED = 1.0  # Seconds before retrying a turn that met a limit.
_log = logging.getLogger("dragoman.turn")


@dataclass(slots=True, frozen=True)
class TurnLimits:
    """The maximum number of turns running at the same time. None means no limit. Turns waiting for a user do
    not count."""

    per_node: int = 32
    per_person: int | None = None
    per_provider: int | None = None
    give_up_after: float = 2.0  # seconds of waiting for a user


class JobDriver(TaskDriver):
    """Implements `Driver` over a `JobQueue`."""

    hands_out = True

    def __init__(
        self,
        services: Services,
        bus: EventBus,
        background: Background,
        jobs: JobQueue,
        *,
        role: Role = "both",
        limits: TurnLimits | None = None,
    ) -> None:
        super().__init__(services, bus, background)
        self._leaves_to_workers = False  # This process is a worker itself, or hands turns out.
        self._jobs = jobs
        self._works = role != "web"
        self._limits = limits or TurnLimits()
        self._places: dict[str, asyncio.Event] = {}  # turns that count here, until they end or wait
        self._waiting_since: dict[str, float] = {}
        self._known: dict[str, tuple[str, str]] = {}  # user and provider of turns running in any process
        self._admitted: dict[str, tuple[str, str]] = {}  # user and provider of turns that count here
        self._put_off: dict[str, tuple[str, str]] = {}  # user and provider of turns that met a limit here
        self._admitting = asyncio.Lock()
        self._freed = asyncio.Event()
        self._working: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._admitting, self._freed = asyncio.Lock(), asyncio.Event()
        await self._jobs.open()
        await super().open()
        if self._works:
            self._working = asyncio.create_task(
                self._jobs.work(self._advance, places=self._limits.per_node), name="dragoman-worker"
            )
            self._background.repeat(
                "giving up turns that wait", self._give_up_waiting, every=self._limits.give_up_after / _LOOKS
            )

    async def close(self) -> None:
        """Accept no new turns and hand running ones over."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working], timeout=_PARTING)
            # The runtime may reopen in another event loop, or may not have closed completely.
            self._working = None
        self._freed.set()
        running = [live.log for live in self._bus.turns()]
        await super().close()
        left = [log for log in running if not log.turn.state.ended]
        open = {id for log in left for id, call in log.turn.calls.items() if not call.state.settled}
        for log in sorted(left, key=lambda log: log.conversation.call not in open):
            with suppress(DragomanError):
                # The process that resumes the parent turn resumes this task too.
                if log.conversation.call in open:
                    await self._store.release(log.id, log.epoch)
                else:
                    await self._hand_over(log.id, log.epoch)
        await self._jobs.close()

    async def start(self, started: Started, fact: Fact) -> None:
        # The parent turn of a task runs here and already counts.
        inner = started.conversation.parent is not None
        free = len(self._places) < self._limits.per_node and not self._limited
        if self._works and (inner or free) and not self._closing:
            if not inner:
                self._places[started.turn.id] = asyncio.Event()
            try:
                await super().start(started, fact)
            except BaseException:
                self._leave(started.turn.id)
                raise
            return
        self._bus.hand_over(started.turn.id, started.conversation.id)
        try:
            with self._given_up_on_error(started):
                await self._hand_over(started.turn.id, started.turn.epoch)
        except StoreUnavailable as error:  # The turn is stored. The check for abandoned turns finds it.
            _log.warning("will hand over turn %s later: %s", started.turn.id, error)

    async def adopt(self, turn: str, *, wanted: bool = False) -> bool:
        """Run the turn here if this process works and the caller wants it here, or another turn waits for it.

        Otherwise, queue an abandoned turn for any worker.
        """
        if await self._runs_here(turn):
            return True
        row = await self._store.turn(turn)
        if self._works and (wanted or await self._is_inner(row.conversation)):
            return await super().adopt(turn, wanted=wanted)
        if row.live and await self._store.is_abandoned(turn) and (wanted or await self._may_go_on(turn)):
            await self._jobs.put(turn, urgent=True)
        return False

    async def wake(self, turn: str) -> None:
        live = self._bus.here(turn)
        if live is not None:
            await live.signals.collect()
        elif await self._store.is_abandoned(turn):
            if self._works and await self._is_cancelled(turn):
                await super().adopt(turn)  # Slots may stay occupied for long, and ending a turn needs none.
            elif await self._may_go_on(turn):
                await self._jobs.put(turn, urgent=True)

    async def will_run(self, turn: TurnRow) -> bool:
        return not await is_quarantined(self._store, turn)

    # ── abandoned turns ───────────────────────────────────────────────────────────────────────────

    async def _adopt_all(self) -> None:
        await self._find_lost()
        await self._release_all()
        for row in await self._store.abandoned_turns(waiting=False):
            if self._bus.here(row.id) is None:
                await self._jobs.put(row.id)
        await self._start_queued()

    async def _may_go_on(self, turn: str) -> bool:
        """Return whether the turn has work to do."""
        if (await self._store.turn(turn)).state != State.WAITING:
            return True
        return any(moves_waiting(signal) for signal in await self._store.signals(turn))

    async def _is_inner(self, conversation: str) -> bool:
        """Return whether a call opened the conversation. The turn that gave the task counts for both."""
        return (await self._store.conversation(conversation)).parent is not None

    async def _hand_over(self, turn: str, epoch: int) -> None:
        if not self._works:
            # Mirror its events from the first on, since the request came to this process.
            await self._store.post(turn, "follow", {})
        await self._store.release(turn, epoch)
        if await self._may_go_on(turn):
            await self._jobs.put(turn, urgent=True)

    # ── jobs of the queue ─────────────────────────────────────────────────────────────────────────

    async def _advance(self, turn: str) -> None:
        """Run one job, for as long as the turn occupies a slot."""
        self._put_off.pop(turn, None)
        if turn in self._places or self._bus.here(turn) is not None:
            return  # The turn runs here, or is about to.
        try:
            async with self._ended_if_cancelled(turn):
                if await self._take(turn) and (left := self._places.get(turn)) is not None:
                    await left.wait()
        except NotFound:
            pass  # The turn was deleted.
        except StoreUnavailable as error:
            _log.warning("will resume turn %s later: %s", turn, error)
        except Exception:
            _log.exception("cannot resume turn %s", turn)
        finally:
            self._leave(turn)

    async def _take(self, turn: str) -> bool:
        """Claim the turn and run it here. Return False if it is over, runs elsewhere, or exceeds a limit."""
        if await self._needs_no_place(turn):
            return await super().adopt(turn)
        if len(self._places) >= self._limits.per_node:  # Some turns started here without the queue.
            self._freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CROWDED):
                    await self._freed.wait()
        if len(self._places) >= self._limits.per_node or self._closing:
            await self._jobs.put(turn)  # Another process may have a free slot.
            return False
        self._places[turn] = asyncio.Event()
        if not self._limited:
            return await super().adopt(turn)
        async with self._admitting, self._jobs.alone():
            if await self._is_admitted(turn):
                return await super().adopt(turn)
        await self._jobs.put(turn, delay=_CROWDED)
        return False

    async def _needs_no_place(self, turn: str) -> bool:
        """Return whether it belongs to another turn, which would wait for it, or only needs to be
        cancelled."""
        inner = await self._is_inner((await self._store.turn(turn)).conversation)
        return inner or await self._is_cancelled(turn)

    async def _is_cancelled(self, turn: str) -> bool:
        return any(signal.kind == "cancel" for signal in await self._store.signals(turn))

    @property
    def _limited(self) -> bool:
        return self._limits.per_person is not None or self._limits.per_provider is not None

    async def _is_admitted(self, turn: str) -> bool:
        """N5: return whether this user and this provider may run one more turn across all processes."""
        row = await self._store.turn(turn)
        person, provider = await self._person_and_provider(row.id, row.conversation)
        people, providers = Counter[str](), Counter[str]()
        everywhere = await self._store.running_turns()
        self._known = {one.id: self._known[one.id] for one in everywhere if one.id in self._known}
        for running in everywhere:
            who, where = await self._person_and_provider(running.id, running.conversation)
            people[who] += 1
            providers[where] += 1
        most, most_there = self._limits.per_person, self._limits.per_provider
        admitted = (most is None or people[person] < most) and (
            most_there is None or providers[provider] < most_there
        )
        (self._admitted if admitted else self._put_off)[turn] = person, provider
        return admitted

    async def _person_and_provider(self, turn: str, conversation: str) -> tuple[str, str]:
        if turn not in self._known:
            self._known[turn] = "", ""  # An unreadable turn counts for no user.
            with suppress(DragomanError, ValueError):
                first = FACT.load((await self._store.facts(turn))[0])
                model = (first.options.started_with or "") if isinstance(first, TurnStarted) else ""
                person = await sender_of(self._store, await self._store.turn(turn))
                self._known[turn] = person, model.partition("/")[0]
        return self._known[turn]

    # ── ending and waiting ────────────────────────────────────────────────────────────────────────

    def _leave(self, turn: str) -> None:
        self._waiting_since.pop(turn, None)
        if (whose := self._admitted.pop(turn, None)) is not None and not self._closing:
            self._try_next(whose)
        if (left := self._places.pop(turn, None)) is not None:
            left.set()
            self._freed.set()

    def _try_next(self, whose: tuple[str, str]) -> None:
        """Retry the first turns that met a limit for this user and for this provider: a slot may
        be free now."""
        for mine, left in enumerate(whose):
            turn = next((turn for turn, other in self._put_off.items() if other[mine] == left), None)
            if turn is not None:
                del self._put_off[turn]
                self._background.run(f"trying turn {turn} again", partial(self._jobs.put, turn, urgent=True))

    def _ended(self, log: TurnLog, task: asyncio.Task[None]) -> None:
        super()._ended(log, task)
        self._leave(log.id)

    async def _give_up_waiting(self) -> None:
        """Free the slots of turns that have waited for a while.

        A turn with all its state stored is released to any process. Otherwise it stays, since one of its
        tools runs here.
        """
        now, patience = asyncio.get_running_loop().time(), self._limits.give_up_after
        for live in self._bus.turns():
            turn = live.log.id
            if self._bus.here(turn) is not live:
                continue  # It ended while another turn was checked.
            if not self._idle(live.log):
                self._waiting_since.pop(turn, None)
                if live.log.conversation.parent is None:
                    self._places.setdefault(turn, asyncio.Event())  # It continues, and counts again.
            elif now - self._waiting_since.setdefault(turn, now) < patience or live.given_up:
                continue
            elif not _is_all_stored(live.log):
                self._leave(turn)
            elif await live.signals.all_recorded():
                if not self._idle(live.log) or not _is_all_stored(live.log) or turn not in self._runners:
                    live.signals.reopen()  # An answer was recorded meanwhile.
                    continue
                live.given_up = True
                self._runners[turn].stop()
                self._background.run(f"giving up turn {turn}", partial(self._pass_on, turn, live.task))

    async def _pass_on(self, turn: str, task: asyncio.Task[None]) -> None:
        """Make the turn available to any process, with the signals that arrived meanwhile."""
        await asyncio.wait([task])
        await self._release_all()
        if await self._store.is_abandoned(turn) and await self._may_go_on(turn):
            await self._jobs.put(turn, urgent=True)

    def _idle(self, log: TurnLog) -> bool:
        """Return whether only a user or a client can move the turn and the tasks it gave."""
        if log.turn.state is State.WAITING:
            return True
        open = {id: call for id, call in log.turn.calls.items() if not call.state.settled}
        inner = {
            live.log.conversation.call: live.log
            for live in self._bus.turns()
            if live.log.conversation.parent == log.conversation.id
        }
        return bool(open) and all(
            call.waits or (id in inner and self._idle(inner[id])) for id, call in open.items()
        )


def _is_all_stored(log: TurnLog) -> bool:
    """Return whether a waiting turn would lose nothing with this process: none of its tools runs here."""
    open = [call for call in log.turn.calls.values() if not call.state.settled]
    return log.conversation.parent is None and all(
        call.client or call.state in (CallState.ASKED, CallState.REVIEWING) for call in open
    )


def make_driver(
    services: Services,
    bus: EventBus,
    background: Background,
    *,
    adopts: bool,
    role: Role | None,
    limits: TurnLimits | None,
) -> Driver:
    """Return a driver that runs turns as they arrive, or one with a job queue if a role or limits are set."""
    if role not in (*ROLES, None):
        raise ConfigError(f"Unknown role {role!r}. Choose one of {', '.join(ROLES)}.")
    shared = job_queue_of(services.store)
    if role in ("web", "worker") and shared is None:
        raise ConfigError(f"Role {role!r} needs a store in PostgreSQL that multiple servers share.")
    if not adopts or (limits is None and (role is None or shared is None)):
        return TaskDriver(services, bus, background, adopts=adopts)
    jobs = MemoryJobs() if shared is None else shared()
    return JobDriver(services, bus, background, jobs, role=role or "both", limits=limits)
