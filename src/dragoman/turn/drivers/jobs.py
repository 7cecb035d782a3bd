"""Runs turns that a queue of jobs hands out: on one machine within limits, on many in roles.

A web node stores what comes in and hands it over. A worker claims what the queue gives it and runs it until
it ends, or waits for a person: then it is given up, and whoever is there when the answer comes goes on.
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

_LOOKS = 4  # for turns that wait, in the time after which they are given up
_PARTING = 20.0  # seconds for the queue to let us go
_CROWDED = 1.0  # seconds before a turn is tried again that met a limit
_log = logging.getLogger("dragoman.turn")


@dataclass(slots=True, frozen=True)
class TurnLimits:
    """How many turns may run at once; None means any number. Those that wait for a person do not count."""

    per_node: int = 32
    per_person: int | None = None
    per_provider: int | None = None
    give_up_after: float = 2.0  # seconds of waiting for a person


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
        self._leaves_to_workers = False  # it is one of them, or hands out
        self._jobs = jobs
        self._works = role != "web"
        self._limits = limits or TurnLimits()
        self._places: dict[str, asyncio.Event] = {}  # turns that count here, until they end or wait
        self._waiting_since: dict[str, float] = {}
        self._known: dict[str, tuple[str, str]] = {}  # person and provider of turns that run somewhere
        self._admitted: dict[str, tuple[str, str]] = {}  # of those that count here
        self._put_off: dict[str, tuple[str, str]] = {}  # and of those that met a limit here
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
        """No new turns; what runs is handed over."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working], timeout=_PARTING)
            self._working = None  # it may be opened again, in another event loop, and not to the end
        self._freed.set()
        running = [live.log for live in self._bus.turns()]
        await super().close()
        left = [log for log in running if not log.turn.state.ended]
        open = {id for log in left for id, call in log.turn.calls.items() if not call.state.settled}
        for log in sorted(left, key=lambda log: log.conversation.call not in open):
            with suppress(DragomanError):
                if log.conversation.call in open:  # who takes the turn that gave this task takes it, too
                    await self._store.release(log.id, log.epoch)
                else:
                    await self._hand_over(log.id, log.epoch)
        await self._jobs.close()

    async def start(self, started: Started, fact: Fact) -> None:
        inner = started.conversation.parent is not None  # the turn it works for runs here, and counts
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
        except StoreUnavailable as error:  # it is stored: whoever looks for such turns finds it
            _log.warning("will hand over turn %s later: %s", started.turn.id, error)

    async def adopt(self, turn: str, *, wanted: bool = False) -> bool:
        """Here only where a turn of this process works with it; else by whoever is next in the queue."""
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
                await super().adopt(turn)  # places may be taken for long, and it needs none
            elif await self._may_go_on(turn):
                await self._jobs.put(turn, urgent=True)

    async def will_run(self, turn: TurnRow) -> bool:
        return not await is_quarantined(self._store, turn)

    # ── what nobody runs ──────────────────────────────────────────────────────────────────────────

    async def _adopt_all(self) -> None:
        await self._find_lost()
        await self._release_all()
        for row in await self._store.abandoned_turns(waiting=False):
            if self._bus.here(row.id) is None:
                await self._jobs.put(row.id)
        await self._start_queued()

    async def _may_go_on(self, turn: str) -> bool:
        """Whether there is something to do for it."""
        if (await self._store.turn(turn)).state != State.WAITING:
            return True
        return any(moves_waiting(signal) for signal in await self._store.signals(turn))

    async def _is_inner(self, conversation: str) -> bool:
        """Whether a call opened it: the turn that gave the task counts for both."""
        return (await self._store.conversation(conversation)).parent is not None

    async def _hand_over(self, turn: str, epoch: int) -> None:
        if not self._works:
            await self._store.post(turn, "follow", {})  # from its first event on: it was asked for here
        await self._store.release(turn, epoch)
        if await self._may_go_on(turn):
            await self._jobs.put(turn, urgent=True)

    # ── what the queue hands out ──────────────────────────────────────────────────────────────────

    async def _advance(self, turn: str) -> None:
        """One job: as long as the turn counts."""
        self._put_off.pop(turn, None)
        if turn in self._places or self._bus.here(turn) is not None:
            return  # it runs here, or is about to
        try:
            async with self._ended_if_cancelled(turn):
                if await self._take(turn) and (left := self._places.get(turn)) is not None:
                    await left.wait()
        except NotFound:
            pass  # it was deleted
        except StoreUnavailable as error:
            _log.warning("will resume turn %s later: %s", turn, error)
        except Exception:
            _log.exception("cannot resume turn %s", turn)
        finally:
            self._leave(turn)

    async def _take(self, turn: str) -> bool:
        """Claim it and run it here. False where it is over, runs elsewhere, or would be one too many."""
        if await self._needs_no_place(turn):
            return await super().adopt(turn)
        if len(self._places) >= self._limits.per_node:  # some began here, without the queue
            self._freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CROWDED):
                    await self._freed.wait()
        if len(self._places) >= self._limits.per_node or self._closing:
            await self._jobs.put(turn)  # somebody else may have room
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
        """It belongs to another turn, which would wait for it; or it is only to be cancelled."""
        inner = await self._is_inner((await self._store.turn(turn)).conversation)
        return inner or await self._is_cancelled(turn)

    async def _is_cancelled(self, turn: str) -> bool:
        return any(signal.kind == "cancel" for signal in await self._store.signals(turn))

    @property
    def _limited(self) -> bool:
        return self._limits.per_person is not None or self._limits.per_provider is not None

    async def _is_admitted(self, turn: str) -> bool:
        """N5: one more than run everywhere of this person, and of this provider."""
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
            self._known[turn] = "", ""  # if it cannot be read, it counts for nobody
            with suppress(DragomanError, ValueError):
                first = FACT.load((await self._store.facts(turn))[0])
                model = (first.options.started_with or "") if isinstance(first, TurnStarted) else ""
                person = await sender_of(self._store, await self._store.turn(turn))
                self._known[turn] = person, model.partition("/")[0]
        return self._known[turn]

    # ── what ends, or waits ───────────────────────────────────────────────────────────────────────

    def _leave(self, turn: str) -> None:
        self._waiting_since.pop(turn, None)
        if (whose := self._admitted.pop(turn, None)) is not None and not self._closing:
            self._try_next(whose)
        if (left := self._places.pop(turn, None)) is not None:
            left.set()
            self._freed.set()

    def _try_next(self, whose: tuple[str, str]) -> None:
        """The first that met a limit here of this person, and of this provider: there may be a place now."""
        for mine, left in enumerate(whose):
            turn = next((turn for turn, other in self._put_off.items() if other[mine] == left), None)
            if turn is not None:
                del self._put_off[turn]
                self._background.run(f"trying turn {turn} again", partial(self._jobs.put, turn, urgent=True))

    def _ended(self, log: TurnLog, task: asyncio.Task[None]) -> None:
        super()._ended(log, task)
        self._leave(log.id)

    async def _give_up_waiting(self) -> None:
        """Turns that have waited for a while count no more. Where nothing of them is only in memory they are
        anybody's; else they stay, since a tool of theirs runs here."""
        now, patience = asyncio.get_running_loop().time(), self._limits.give_up_after
        for live in self._bus.turns():
            turn = live.log.id
            if self._bus.here(turn) is not live:
                continue  # it ended while another was looked at
            if not self._idle(live.log):
                self._waiting_since.pop(turn, None)
                if live.log.conversation.parent is None:
                    self._places.setdefault(turn, asyncio.Event())  # it goes on, and counts again
            elif now - self._waiting_since.setdefault(turn, now) < patience or live.given_up:
                continue
            elif not _is_all_stored(live.log):
                self._leave(turn)
            elif await live.signals.all_recorded():
                if not self._idle(live.log) or not _is_all_stored(live.log) or turn not in self._runners:
                    live.signals.reopen()  # an answer was recorded meanwhile
                    continue
                live.given_up = True
                self._runners[turn].stop()
                self._background.run(f"giving up turn {turn}", partial(self._pass_on, turn, live.task))

    async def _pass_on(self, turn: str, task: asyncio.Task[None]) -> None:
        """It is anybody's from here on: also what came in for it meanwhile."""
        await asyncio.wait([task])
        await self._release_all()
        if await self._store.is_abandoned(turn) and await self._may_go_on(turn):
            await self._jobs.put(turn, urgent=True)

    def _idle(self, log: TurnLog) -> bool:
        """Nothing moves it but a person, or a client; nor the tasks it gave."""
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
    """Whether nothing of a turn that waits would be lost with this process: no tool runs in it."""
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
    """One that runs turns as they come, unless this process has a role among others, or there are limits."""
    if role not in (*ROLES, None):
        raise ConfigError(f"Unknown role {role!r}. Choose one of {', '.join(ROLES)}.")
    shared = job_queue_of(services.store)
    if role in ("web", "worker") and shared is None:
        raise ConfigError(f"Role {role!r} needs a store in PostgreSQL that multiple servers share.")
    if not adopts or (limits is None and (role is None or shared is None)):
        return TaskDriver(services, bus, background, adopts=adopts)
    jobs = MemoryJobs() if shared is None else shared()
    return JobDriver(services, bus, background, jobs, role=role or "both", limits=limits)
