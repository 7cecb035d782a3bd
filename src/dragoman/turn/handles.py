"""What a caller holds: a conversation to talk in, and a turn to watch, steer and wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from typing_extensions import TypedDict, Unpack

from dragoman.conversation.tree import Conversation, Tree
from dragoman.errors import NotFound, ProviderError
from dragoman.messages import events as e
from dragoman.messages.message import Message
from dragoman.messages.parts import Part, ToolResult
from dragoman.messages.questions import Answer, Mode, Question
from dragoman.messages.usage import Usage
from dragoman.store.store import Store
from dragoman.turn.commands import Commands
from dragoman.turn.drivers.driver import Driver
from dragoman.turn.facts import FACT, Fact, TurnOptions
from dragoman.turn.live.bus import EventBus, LiveTurn
from dragoman.turn.live.log import Listener, Snapshot
from dragoman.turn.load_trace import load_trace
from dragoman.turn.machine import State, Turn, replay
from dragoman.turn.settings import changed
from dragoman.turn.steps.finalize import answer_of, finish_of
from dragoman.turn.trace import TurnTrace
from dragoman.turn.way_back import Reverted, WayBack, WorkspaceDiff

_GLANCE = 0.1  # seconds between looks at a turn that another process runs


@dataclass(slots=True, frozen=True)
class TurnResult:
    """What came of a turn."""

    id: str
    state: State
    text: str
    messages: tuple[Message, ...]
    usage: Usage
    finish: str = ""  # how its last reply ended: stop, length, refusal, … (`messages/endings.py`)


@dataclass(slots=True, frozen=True)
class Engine:
    """What a handle works with."""

    store: Store
    bus: EventBus
    driver: Driver
    commands: Commands
    way_back: WayBack


class SendOptions(TypedDict, total=False):
    """What a send may say of its own turn; it comes before what conversation and agent say."""

    model: str | None
    mode: Mode | None
    system: str | None
    options: dict[str, JsonValue] | None
    disable: Sequence[str]  # plugins that stay out of it
    agent: str | None
    tools: dict[str, bool] | None  # switches of groups (`files`) and tools (`files.read_file`)
    dialect: str | None  # how calls are made: `auto`, `native`, or as text, such as `xml_tag`


def _result(id: str, turn: Turn, messages: Sequence[Message]) -> TurnResult:
    return TurnResult(id, turn.state, answer_of(messages), tuple(messages), turn.usage, finish_of(turn))


def turn_options(
    *,
    model: str | None = None,
    mode: Mode | None = None,
    system: str | None = None,
    options: dict[str, JsonValue] | None = None,
    disable: Sequence[str] = (),
    agent: str | None = None,
    tools: dict[str, bool] | None = None,
    dialect: str | None = None,
) -> TurnOptions:
    """As they are stored with the turn."""
    return TurnOptions(
        model, mode, system, options or {}, tuple(disable), agent, tools=tools or {}, dialect=dialect
    )


class TurnHandle:
    """A turn, here or in another process, running or over."""

    def __init__(self, id: str, engine: Engine) -> None:
        self.id = id
        self._engine = engine
        self._store = engine.store
        self._live: LiveTurn | None = engine.bus.here(id)

    # ── watching ──────────────────────────────────────────────────────────────────────────────────

    async def events(self, after: int = 0) -> AsyncIterator[e.Event]:
        """Every event after this number until the turn ends, wherever it runs; of one that has long been
        over, what it said."""
        live = await self._attached()
        if live is None and not await self._can_be_followed():
            for message in await self._messages():
                yield e.MessageAdded(message)
            yield await self._end()
            return
        ended = False
        while not ended:
            here = live.log.events.batches(after) if live is not None else None
            async for batch in here or self._engine.bus.follow(self.id, after):
                for event in batch:
                    yield event
                after, ended = batch[-1].seq, isinstance(batch[-1], e.TurnEnd)
            if not ended and not (await self._store.turn(self.id)).live:
                yield await self._end()  # whoever ran it did not live to tell
                ended = True
            if live is None or not live.given_up:
                return
            live = self._here()  # or it goes on elsewhere

    async def _can_be_followed(self) -> bool:
        """Another process runs it, or did so a moment ago and has left its events for who is behind."""
        return (await self._store.turn(self.id)).live or bool(await self._store.events({self.id: 0}, 1))

    async def _end(self) -> e.TurnEnd:
        turn = await self.turn()
        text = answer_of(await self._messages())
        error = turn.error.error if turn.error is not None else None
        return e.TurnEnd(turn.state, text, turn.usage, error, turn.limit or None, finish_of(turn))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call it at once with the present snapshot, then on every change. For a turn that runs here."""
        live = self._here()
        if live is None:
            raise LookupError(f"turn {self.id} does not run in this process: read its snapshot instead")
        return live.log.subscribe(listener)

    async def snapshot(self) -> Snapshot:
        live = self._here()
        if live is not None:
            await live.log.stored()
            return live.log.snapshot()
        for queued in await self._store.queued(turn=self.id):
            return Snapshot(self.id, queued.conversation, Turn(), (queued.message,), (), 0)
        row = await self._store.turn(self.id)
        questions = [q for q in await self._store.questions_of(self.id) if q.open]
        return Snapshot(
            self.id, row.conversation, await self.turn(), tuple(await self._messages()), tuple(questions), 0
        )

    async def reached(self, state: State | str) -> bool:
        """Wait until the turn is in this state. False where it ends without getting there."""
        live = await self._attached()
        if live is None:
            row = await self._store.turn(self.id)
            while row.live and row.state != state:  # another process moves it
                await asyncio.sleep(_GLANCE)
                row = await self._store.turn(self.id)
            return row.state == state
        arrived: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def look(snapshot: Snapshot) -> None:
            if not arrived.done() and (snapshot.state == state or snapshot.state.ended):
                arrived.set_result(snapshot.state == state)

        await live.log.stored()  # who is told of a question can answer it
        unsubscribe = live.log.subscribe(look)
        try:
            return await arrived
        finally:
            unsubscribe()

    async def result(self) -> TurnResult:
        """Wait for the end. Raises what the turn failed with; a cancelled turn is a result."""
        live = self._here() or await self._attached()
        if live is not None:
            await asyncio.wait([live.task])
            if not live.given_up:
                live.task.result()
                return _result(self.id, live.log.turn, live.log.messages)
        turn = await self._wait_until_over()
        if turn.error is not None:
            raise ProviderError(turn.error.error, kind=turn.error.kind, retryable=turn.error.retryable)
        return _result(self.id, turn, await self._messages())

    async def facts(self) -> list[Fact]:
        return [FACT.load(body) for body in await self._store.facts(self.id)]

    async def turn(self) -> Turn:
        """What the machine makes of the stored facts."""
        return replay(await self.facts())

    async def trace(self) -> TurnTrace:
        """What took how long, what waited for whom, what was tried again, and why each call ran."""
        return await load_trace(self._store, await self._store.turn(self.id))

    def __repr__(self) -> str:
        return f"TurnHandle({self.id!r})"

    @property
    def question(self) -> str:
        """The first open question of a turn that runs here."""
        if not self.questions:
            raise LookupError(
                f"turn {self.id} asks nothing here now: (await turn.snapshot()).questions knows"
            )
        return self.questions[0].id

    @property
    def questions(self) -> tuple[Question, ...]:
        live = self._here()
        return live.log.snapshot().questions if live is not None else ()

    # ── acting ────────────────────────────────────────────────────────────────────────────────────

    async def answer(self, question: str | Question, answer: Answer) -> Question:
        id = question.id if isinstance(question, Question) else question
        return await self._engine.commands.answer(id, answer)

    async def steer(self, said: str | Sequence[Part]) -> None:
        await self._engine.commands.steer(self.id, said)

    async def cancel(self, reason: str = "") -> bool:
        return await self._engine.commands.cancel(self.id, reason)

    async def resume(self) -> bool:
        """Go on here with a turn that nobody runs, also in a runtime that adopts none by itself. False where
        it is over, or runs elsewhere. TurnSetAside tells what it would need."""
        return await self._engine.driver.adopt(self.id, wanted=True)

    async def deliver(self, call: str, result: str | ToolResult, *, failed: bool = False) -> None:
        """The result of a call that this client ran."""
        whole = result if isinstance(result, ToolResult) else ToolResult(result)
        await self._engine.commands.deliver(call, whole, failed=failed)

    # ── the workspace ─────────────────────────────────────────────────────────────────────────────

    async def diff(self) -> WorkspaceDiff:
        """What its calls did to the files of the workspace."""
        return await self._engine.way_back.diff_turn(self.id)

    async def revert(self, *, files_only: bool = False, force: bool = False) -> Reverted:
        """Go back to before this turn, files and conversation, or files alone: what it and the turns after
        it did is taken back. RevertConflict, and nothing is changed, where somebody else changed one of the
        files since, unless `force` says to go on. What was said stays on the tree, as a branch."""
        return await self._engine.way_back.revert_turn(self.id, files_only=files_only, force=force)

    # ── where it is ───────────────────────────────────────────────────────────────────────────────

    def _here(self) -> LiveTurn | None:
        if self._live is not None and self._live.given_up:
            self._live = None
        self._live = self._engine.bus.here(self.id) or self._live
        return self._live

    async def _attached(self) -> LiveTurn | None:
        """The turn as it runs here, adopted if nobody runs it; None where it is over or elsewhere."""
        while self._here() is None and await self._store.is_queued(self.id):  # noqa: ASYNC110 - as below
            await asyncio.sleep(_GLANCE)
        if self._here() is None:
            await self._engine.driver.adopt(self.id)
        return self._here()

    async def _wait_until_over(self) -> Turn:
        while (await self._store.turn(self.id)).live:  # noqa: ASYNC110 - another process moves it
            await asyncio.sleep(_GLANCE)
        return await self.turn()

    async def _messages(self) -> list[Message]:
        row = await self._store.turn(self.id)
        messages, _ = await self._store.messages(row.conversation)
        return [message for message in messages if message.turn == self.id]


class ConversationHandle:
    """A conversation. Everything it does is stored when the call returns."""

    def __init__(self, id: str, engine: Engine) -> None:
        self.id = id
        self._engine = engine
        self._store = engine.store

    def __repr__(self) -> str:
        return f"ConversationHandle({self.id!r})"

    async def send(
        self,
        said: str | Sequence[Part],
        *,
        parent: str | None = None,
        queue: bool = False,
        **options: Unpack[SendOptions],
    ) -> TurnHandle:
        """Say something; a turn that answers begins. TurnBusy where one of this branch is running."""
        wanted = turn_options(**options)
        turn = await self._engine.commands.send(self.id, said, parent=parent, queue=queue, options=wanted)
        return self.turn(turn)

    async def edit(
        self, message: str, said: str | Sequence[Part], **options: Unpack[SendOptions]
    ) -> TurnHandle:
        """A new version of what a person said, and its answer. What `options` leave out is as it was."""
        await self._own(message)
        return self.turn(await self._engine.commands.edit(message, said, options=turn_options(**options)))

    async def rerun(self, message: str, **options: Unpack[SendOptions]) -> TurnHandle:
        """A new version of an answer. What `options` leave out is as it was for the send it repeats."""
        await self._own(message)
        return self.turn(await self._engine.commands.rerun(message, options=turn_options(**options)))

    def turn(self, id: str) -> TurnHandle:
        return TurnHandle(id, self._engine)

    async def info(self) -> Conversation:
        return await self._store.conversation(self.id)

    async def tree(self) -> Tree:
        messages, _ = await self._store.messages(self.id)
        return Tree(messages)

    async def messages(self) -> list[Message]:
        """The path to the leaf: what the conversation looks like now."""
        return (await self.tree()).path((await self.info()).leaf)

    async def move_to(self, message: str) -> None:
        """Look at another branch: its newest message becomes the leaf."""
        tree = await self.tree()
        await self._store.set_leaf(self.id, tree.tip(message), 0.0)

    async def diff(self) -> WorkspaceDiff:
        """What its turns did to the files of the workspace, less what was taken back."""
        return await self._engine.way_back.diff_conversation(self.id)

    async def revert_to(self, message: str, *, files_only: bool = False, force: bool = False) -> Reverted:
        """Go back to before a message, as `TurnHandle.revert` does to before a turn."""
        await self._own(message)
        return await self._engine.way_back.revert_message(message, files_only=files_only, force=force)

    async def redo(self, *, force: bool = False) -> Reverted:
        """Take the last revert back."""
        return await self._engine.way_back.redo(self.id, force=force)

    async def questions(self) -> list[Question]:
        return await self._store.questions(conversation=self.id)

    async def rename(self, title: str) -> None:
        await self._store.set_title(self.id, title)

    async def change(self, **settings: JsonValue) -> None:
        """Settings of this conversation: model, mode, system, options, tools. None takes one away."""
        await self._store.change_settings(self.id, lambda before: changed(before, settings))

    async def _own(self, message: str) -> None:
        if (await self._store.message(message)).conversation != self.id:
            raise NotFound("message", message)
