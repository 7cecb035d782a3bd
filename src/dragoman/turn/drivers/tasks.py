"""Turns in, running: who runs a turn, and where. Here it is a task in this process."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from dragoman.conversation.tree import Tree
from dragoman.messages.message import Message
from dragoman.messages.parts import CallState, ToolResult
from dragoman.store.store import Started, Store
from dragoman.turn.facts import FACT, Fact, ResultAsked, TurnStarted
from dragoman.turn.live.log import TurnLog
from dragoman.turn.machine import State
from dragoman.turn.runner import Runner
from dragoman.turn.services import Services

_KEPT = 100_000  # messages of conversations that may be used again soon
_ORPHANS = 5.0  # seconds between looks for turns whose process died
_GLANCE = 0.25  # seconds between looks for signals that another process posted


@dataclass(slots=True)
class Running:
    """A turn that runs here. Its task ends with it, and raises what it failed with."""

    runner: Runner
    task: asyncio.Task[None]

    @property
    def log(self) -> TurnLog:
        return self.runner.log


class Driver:
    """Runs turns as tasks of this process, takes up those whose process died, and wakes those that wait."""

    def __init__(self, services: Services, *, adopts: bool = True) -> None:
        self._services = services
        self._adopts = adopts  # takes up what other processes began
        self._store: Store = services.store
        self._paths = _Paths()
        self._taking: dict[str, asyncio.Task[Running | None]] = {}
        self._chores: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self._closing = False
        self.running: dict[str, Running] = {}
        self.launched = 0  # how many turns have begun to run here
        self.watchers: list[Callable[[TurnLog], None]] = []  # told of each turn before it begins to run here

    async def open(self) -> None:
        """Go on with every turn that nobody runs, except those that only wait for a person."""
        if not self._adopts:
            return
        signals = set(await self._store.turns_with_signals())
        for row in await self._store.live_turns():
            if row.state != State.WAITING or row.id in signals:
                await self.adopt(row.id)
        await self._begin_queued()
        self._watch = asyncio.create_task(self._look_for_signals())

    async def close(self) -> None:
        """Stop, without ending any turn: they go on at the next start."""
        self._closing = True
        tasks = [running.task for running in self.running.values()]
        others = [*self._chores, *self._taking.values(), *([self._watch] if self._watch else [])]
        for task in (*tasks, *others):
            task.cancel()
        if tasks or others:
            await asyncio.wait([*tasks, *others])

    async def begin(self, started: Started, fact: Fact) -> Running:
        """Run a turn that was just stored."""
        path = self._paths.take(started)
        if path is None:
            path = await self._load_path(started.conversation.id, started.turn.message)
        log = TurnLog(
            started.turn,
            store=self._store,
            conversation=started.conversation,
            facts=[fact],
            path=path,
            revision=started.revision,
            clock=self._services.clock,
        )
        return self._launch(log)

    async def adopt(self, turn: str) -> Running | None:
        """Run a turn that was begun elsewhere. None where it is over, or its owner is alive."""
        if turn in self.running or not self._adopts:
            return self.running.get(turn)
        if turn not in self._taking:
            self._taking[turn] = asyncio.create_task(self._take(turn))
            self._taking[turn].add_done_callback(lambda _: self._taking.pop(turn, None))
        return await asyncio.shield(self._taking[turn])

    async def wake(self, turn: str) -> None:
        """A signal came: let the turn read it, wherever it is."""
        running = self.running.get(turn) or await self.adopt(turn)
        if running is not None:
            await running.runner.signals.collect()

    # ── taking a turn up from its facts ───────────────────────────────────────────────────────────

    async def _take(self, turn: str) -> Running | None:
        if not await self._is_ours(turn):
            return None
        epoch = await self._store.claim(turn)
        if epoch is None:
            return None
        row = await self._store.turn(turn)
        facts = [FACT.load(body) for body in await self._store.facts(turn)]
        questions = await self._store.questions_of(turn)
        conversation = await self._store.conversation(row.conversation)
        messages, _ = await self._store.messages(row.conversation)
        tree = Tree(messages)
        log = TurnLog(
            row,
            store=self._store,
            conversation=conversation,
            facts=facts,
            path=tree.recent(_tip_of(tree, turn, row.message)),
            questions=questions,
            held=await self._held(facts),
            clock=self._services.clock,
        )
        return self._launch(log)

    async def _is_ours(self, turn: str) -> bool:
        """Whether it was begun for the folder that this house works in: its calls mean files there."""
        facts = await self._store.facts(turn)
        first = FACT.load(facts[0]) if facts else None
        there = first.options.workspace if isinstance(first, TurnStarted) else None
        return there is None or self._services.folder in (None, there)

    async def _held(self, facts: list[Fact]) -> dict[str, ToolResult]:
        """Results that wait for a person."""
        held = {}
        for fact in facts:
            if isinstance(fact, ResultAsked):
                call, _, result = await self._store.call(fact.call)
                if call.state is CallState.REVIEWING and result is not None:
                    held[fact.call] = result
        return held

    async def _load_path(self, conversation: str, leaf: str) -> list[Message]:
        messages, _ = await self._store.messages(conversation)
        return Tree(messages).recent(leaf)

    # ── tasks ─────────────────────────────────────────────────────────────────────────────────────

    def _launch(self, log: TurnLog) -> Running:
        self.launched += 1
        for watch in self.watchers:
            watch(log)
        runner = Runner(self._services, log)
        task = asyncio.create_task(runner.run(), name=log.id)
        self.running[log.id] = running = Running(runner, task)
        task.add_done_callback(lambda done: self._ended(log, done))
        return running

    def _ended(self, log: TurnLog, task: asyncio.Task[None]) -> None:
        self.running.pop(log.id, None)
        if not task.cancelled():
            task.exception()  # whoever waits for the turn raises it; nobody need
        log.events.close()
        if log.turn.state.ended:
            self._paths.keep(log)
            if not self._closing:
                self._chore(self._begin_queued())
        elif not self._closing:
            self._chore(self._store.release(log.id, log.epoch))

    def _chore(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _begin_queued(self) -> None:
        while ready := await self._store.queue():
            started = await self._store.begin_queued(ready[0])
            if started is not None:
                facts = await self._store.facts(ready[0])
                await self.begin(started, FACT.load(facts[0]))

    async def _look_for_signals(self) -> None:
        """Letters posted by this process are read at once; those of others are found here, also those for
        turns that nobody runs."""
        looked = asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(_GLANCE)
            if await self._store.changed():
                for turn in await self._store.turns_with_signals():
                    await self.wake(turn)
            if (now := asyncio.get_running_loop().time()) > looked + _ORPHANS:
                looked = now
                await self._adopt_orphans()

    async def _adopt_orphans(self) -> None:
        """Turns whose process died while this one lives."""
        for row in await self._store.live_turns():
            if row.id not in self.running and row.state != State.WAITING:
                await self.adopt(row.id)


class _Paths:
    """Paths of turns that ended here, so that the next turn need not read the conversation again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[int, list[Message]]] = OrderedDict()
        self._size = 0

    def keep(self, log: TurnLog) -> None:
        self._forget(log.conversation.id)
        if log.resumed:
            return  # its revision was not counted from the start
        self._kept[log.conversation.id] = (log.revision, log.path)
        self._size += len(log.path)
        while self._size > _KEPT and len(self._kept) > 1:
            self._forget(next(iter(self._kept)))

    def take(self, started: Started) -> list[Message] | None:
        """The path of this conversation, if nobody has changed it since, with the new message at its end."""
        if started.message is None:
            return None
        if started.message.parent is None and started.conversation.leaf is None:
            return [started.message]
        kept = self._forget(started.conversation.id)
        if kept is None:
            return None
        revision, path = kept
        if started.revision != revision + 1 or not path or path[-1].id != started.message.parent:
            return None
        path.append(started.message)
        return path

    def _forget(self, conversation: str) -> tuple[int, list[Message]] | None:
        kept = self._kept.pop(conversation, None)
        if kept is not None:
            self._size -= len(kept[1])
        return kept


def _tip_of(tree: Tree, turn: str, message: str) -> str:
    """The newest message of the turn on its own branch."""
    tip = message
    while True:
        own = [id for id in tree.children(tip) if tree[id].turn == turn]
        if not own:
            return tip
        tip = own[-1]
