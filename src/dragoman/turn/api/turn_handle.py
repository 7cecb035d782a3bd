"""Provides the handle of a turn: watch it, steer it, answer its approval requests, wait for its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Generic, cast

from pydantic import ValidationError
from typing_extensions import TypeVar

from dragoman.conversation.window import trail_and_answer
from dragoman.errors import (
    BadRequest,
    DragomanError,
    OutputInvalid,
    ProviderError,
    TurnInterrupted,
    Unanswered,
    Unreadable,
)
from dragoman.messages import events as e
from dragoman.messages.asked import question_in
from dragoman.messages.ids import check_ids
from dragoman.messages.message import Arguments, Message, Part, ToolResult
from dragoman.messages.questions import Answer, Question
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence
from dragoman.store.store import Store, TurnRow
from dragoman.turn.api.commands import Commands
from dragoman.turn.api.undo import Reverted, Undo, WorkspaceDiff
from dragoman.turn.drivers.tasks import Driver
from dragoman.turn.facts import FACT, Fact, TurnFailed
from dragoman.turn.live.event_bus import EventBus, LiveTurn
from dragoman.turn.live.log import Listener, Snapshot
from dragoman.turn.machine import State, Turn, replay
from dragoman.turn.output import TYPED_OUTPUT, Output, Unfit
from dragoman.turn.services import Services
from dragoman.turn.steps.family import sender_of
from dragoman.turn.steps.finalize import answer_of, finish_of
from dragoman.turn.steps.request_layers import ContextUse, RequestLayers, context_use, layers_of
from dragoman.turn.trace import TurnTrace, trace_turn

# The result of a turn.


_log = logging.getLogger("dragoman.turn")
T = TypeVar("T", default=str)


@dataclass(slots=True, frozen=True)
class TurnResult(Generic[T]):
    id: str
    state: State
    text: str
    messages: tuple[Message, ...]
    usage: Usage
    # A description of the limit that was reached. The answer was then requested without tools.
    limit: str = ""
    finish: str = ""  # The end of its last reply: stop, length, refusal, … (`messages/endings.py`).
    _output: Output[T] | None = field(default=None, repr=False)

    @property
    def trail_size(self) -> int:
        """Return the length of the trail: the turn's calls and results as one text.

        The trail precedes the answer if the policy for earlier tool use is `hint`.
        """
        return self.answer_slice[0]

    @property
    def answer_slice(self) -> tuple[int, int]:
        """Return the start and end of the answer within the text of trail and answer."""
        trail, answer = trail_and_answer(self.messages)
        return len(trail), len(trail) + len(answer)

    @property
    def output(self) -> T:
        """Return the answer as the requested type, or as text if none was requested.

        Raise OutputInvalid if a cancelled, refused or interrupted turn has no such answer.
        """
        if self._output is None:
            return cast("T", self.text)
        for last in takewhile(lambda message: message.role == "user", reversed(self.messages)):
            if last.author == TYPED_OUTPUT:  # The model was sent this correction, and was not asked again.
                raise OutputInvalid(sentence("output.none", turn=self.id, why=last.text))
        try:
            return self._output.parse(self.text)
        except Unfit as error:
            ended = self.finish if self.finish != "stop" else self.state
            raise OutputInvalid(sentence("output.ended", turn=self.id, ended=ended, error=error)) from error


def result_of(id: str, turn: Turn, messages: Sequence[Message], output: Output[T] | None) -> TurnResult[T]:
    text = answer_of(messages)
    return TurnResult(id, turn.state, text, tuple(messages), turn.usage, turn.limit, finish_of(turn), output)


def error_of(failed: TurnFailed) -> ProviderError:
    """Return the error of a failed turn, as far as it is stored."""
    if failed.kind == OutputInvalid.KIND:
        return OutputInvalid(failed.error)
    return ProviderError(failed.error, kind=failed.kind, retryable=failed.retryable)


# Reads the trace of a turn from the store, with the turns of sub-agents that its calls started.


async def load_trace(store: Store, row: TurnRow) -> TurnTrace:
    """Return the trace. Raise Unreadable if a fact is damaged or from a newer version."""
    try:
        facts = [FACT.load(body) for body in await store.facts(row.id)]
        trace = trace_turn(row.id, row.conversation, facts, await store.questions_of(row.id))
    except (ValueError, LookupError) as error:
        raise Unreadable("turn", row.id, "this version does not know one of its facts") from error
    if row.state == "waiting":
        trace.state = row.state
    if not row.live and trace.ended is None:
        trace.state = row.state  # The turn was closed from outside, without a fact.
    calls = {call.id: call for call in trace.calls}
    for inner in await store.within(row.conversation) if calls else ():
        try:
            conversation = await store.conversation(inner)
        except DragomanError:
            continue  # The conversation is gone or damaged. Show the rest anyway.
        call = calls.get(conversation.call or "")
        if call is not None and call.opened is None and (turns := await store.turns(inner)):
            call.opened = turns[0].id  # Name the first turn if the call asked several agents.
    return trace


_MANY = 1000  # Maximum number of events read in one batch.
_GLANCE = 0.1  # Seconds between checks of a turn that another process runs.


@dataclass(slots=True, frozen=True)
class Engine:
    """The components that a handle uses."""

    services: Services
    store: Store
    bus: EventBus
    driver: Driver
    commands: Commands
    undo: Undo


class TurnHandle(Generic[T]):
    """A turn that runs in this process or another, or is over."""

    def __init__(self, id: str, engine: Engine, output: Output[T] | None = None) -> None:
        check_ids(turn=id)
        self.id = id
        self._engine = engine
        self._output = output
        self._answered: set[str] = set()  # Answered requests that the turn may not have seen yet.
        self._store = engine.store
        self._live: LiveTurn | None = engine.bus.here(id)

    # ── watching ──────────────────────────────────────────────────────────────────────────────────

    async def events(self, after: int = 0) -> AsyncIterator[e.Event]:
        """Yield every event after this number until the turn ends, in whichever process it runs.

        For a turn that ended long ago, yield its messages and its end.
        """
        if after and (rest := self._engine.bus.rest(self.id, after)) is not None:
            await self._store.turn(self.id)  # Raise NotFound if another process deleted the turn.
            for event in rest:
                yield event
            return
        live = await self._attached()
        if live is None and not await self._can_be_followed():
            for event in await self._all_said():
                yield event
            return
        ended, seen = False, after
        while not ended:
            here = live.log.events.batches(after) if live is not None else None
            async for batch in here or self._engine.bus.follow(self.id, after):
                for event in batch:
                    yield event
                after, ended = batch[-1].seq, isinstance(batch[-1], e.TurnEnd)
            # The process that ran the turn published no end.
            if not ended and not (await self._store.turn(self.id)).live:
                for event in await self._all_said() if after == seen else [await self._end()]:
                    yield event
                ended = True
            if live is None or not live.given_up:
                return
            live = self._here()  # The turn may continue in another process.

    async def _can_be_followed(self) -> bool:
        """Return whether another process runs the turn, or just did and left events for clients that lag
        behind."""
        return (await self._store.turn(self.id)).live or bool(await self._store.events({self.id: 0}, 1))

    async def _all_said(self) -> list[e.Event]:
        """Return all messages and the end, for a caller that has seen none of them."""
        return [*(e.MessageAdded(message) for message in await self._messages()), await self._end()]

    async def end(self) -> e.TurnEnd | None:
        """Rebuild the last event from the store. None if the turn is not over."""
        return None if (await self._store.turn(self.id)).live else await self._end()

    async def _end(self) -> e.TurnEnd:
        turn = await self.turn()
        text = answer_of(await self._messages())
        error = turn.error.error if turn.error is not None else None
        return e.TurnEnd(turn.state, text, turn.usage, error, turn.limit or None, finish_of(turn))

    async def partial_outputs(self) -> AsyncIterator[T]:
        """Yield the answer while it is written, each time its text parses to a new value of the type.

        The last value is complete and has passed every check. `result` has it too.
        """
        if self._output is None:
            raise BadRequest(sentence("output.untyped"))
        text = ""
        last: list[T] = []  # The previous value, if any. A list because None can be a value.
        async for event in self.events():
            if isinstance(event, e.StepStart):
                text = ""
            if isinstance(event, e.TextDelta):
                text += event.text
                value = self._output.parse_partial(text)
                if value is not None and [value] != last:
                    last = [value]
                    yield value
        if last != [whole := (await self.result()).output]:
            yield whole

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener immediately with the current snapshot, then on every change.

        Raise LookupError if the turn does not run in this process.
        """
        live = self._here()
        if live is None:
            raise LookupError(f"Turn {self.id} does not run in this process. Read its snapshot instead.")
        return live.log.subscribe(listener)

    async def snapshot(self) -> Snapshot:
        live = self._here()
        if live is not None:
            await live.log.stored()
            return live.log.snapshot()
        for queued in await self._store.queued(turn=self.id):
            return Snapshot(self.id, queued.conversation, Turn(), (queued.message,), (), 0)
        row = await self._store.turn(self.id)
        # Read the number before the state, so that an event may arrive twice but is never lost.
        last = await self._last_told()
        questions = [q for q in await self._store.questions_of(self.id) if q.open]
        messages = tuple(await self._messages())
        return Snapshot(self.id, row.conversation, await self.turn(), messages, tuple(questions), last)

    async def _last_told(self) -> int:
        """Return the number of the last event that another process published for the turn."""
        last = 0
        while told := await self._store.events({self.id: last}, _MANY):
            last = told[-1].seq
        return last

    async def reached(self, state: State | str) -> bool:
        """Wait until the turn is in this state. Return False if it ends without reaching it."""
        if state not in [*State]:
            raise BadRequest(sentence("turn.no_state", state=state, states=", ".join(State)))
        live = await self._attached()
        while True:
            if live is not None and (arrived := await self._reached_here(live, state)) is not None:
                return arrived
            row = await self._store.turn(self.id)
            if not row.live or row.state == state:
                return row.state == state
            # Another process moves the turn, or it is queued.
            await self._engine.bus.until_here(self.id, _GLANCE)
            live = self._engine.bus.here(self.id)

    async def _reached_here(self, live: LiveTurn, state: State | str) -> bool | None:
        """Return None if the turn continues elsewhere or later."""
        arrived: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def look(snapshot: Snapshot) -> None:
            answered = [question.id in self._answered for question in snapshot.questions]
            if snapshot.state is State.WAITING and answered and all(answered):
                return  # All its requests are answered, so it is about to take the answers.
            if not arrived.done() and (snapshot.state == state or snapshot.state.ended):
                arrived.set_result(snapshot.state == state)

        await live.log.stored()  # Store requests first, so that a caller who sees one can answer it.
        unsubscribe = live.log.subscribe(look)
        try:
            either: list[asyncio.Future[Any]] = [arrived, live.task]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if arrived.done():
                return arrived.result()
            error = None if live.given_up or live.task.cancelled() else live.task.exception()
            if isinstance(error, TurnInterrupted):  # The runtime was closed.
                raise error
            return None
        finally:
            unsubscribe()

    async def result(self, *, strict: bool = False) -> TurnResult[T]:
        """Wait for the end and return the result. Raise the error of a failed turn. A cancelled turn has a
        result.

        If the turn waits for a user, a warning says how to answer. With `strict`, raise Unanswered
        instead.
        """
        live = self._here() or await self._attached()
        while live is not None or (await self._store.turn(self.id)).live:
            if live is None:
                await self._engine.bus.until_here(self.id, _GLANCE)  # See `reached`.
            else:
                await self._until_over(live, strict)
                if not live.given_up:
                    live.task.result()
                    return result_of(self.id, live.log.turn, live.log.messages, self._output)
            live = self._here()
        turn = await self.turn()
        if turn.error is not None:
            raise error_of(turn.error)
        return result_of(self.id, turn, await self._messages(), self._output)

    async def _until_over(self, live: LiveTurn, strict: bool) -> None:
        """Wait for the end, and report each waiting request once.

        A task is not watched: the conversation that gave it reports the request.
        """
        told: set[str] = set()
        waits: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def look(snapshot: Snapshot) -> None:
            fresh = [one for one in snapshot.questions if one.id not in told | self._answered]
            if snapshot.state is not State.WAITING or not fresh:
                return
            told.update(one.id for one in fresh)
            text = sentence("unanswered.waits", turn=self.id, question=fresh[0].text, id=fresh[0].id)
            if not strict:
                _log.warning("%s", text)
            elif not waits.done():
                waits.set_result(text)

        watched = live.log.conversation.parent is None
        unsubscribe = live.log.subscribe(look) if watched else lambda: None
        try:
            either: list[asyncio.Future[Any]] = [live.task, waits]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if waits.done():
                raise Unanswered(waits.result())
        finally:
            unsubscribe()

    async def facts(self) -> list[Fact]:
        """Return the facts, none for a queued turn. Raise NotFound if the turn does not exist."""
        bodies = await self._store.facts(self.id)
        if not bodies and not await self._store.is_queued(self.id):
            await self._store.turn(self.id)
        try:
            return [FACT.load(body) for body in bodies]
        except ValidationError as error:
            raise Unreadable("turn", self.id, error.errors()[0]["msg"]) from error

    async def turn(self) -> Turn:
        """Replay the stored facts into the turn's state."""
        return replay(await self.facts())

    async def request(self) -> RequestLayers:
        """Return the layers of its requests before plugins change them: prompt, options, tools, each with its
        source.

        The turn must have started.
        """
        return await layers_of(await self._services_of_sender(), self.id)

    async def context(self) -> ContextUse:
        """Return how much of the model's context the last request used, and for what."""
        return await context_use(await self._services_of_sender(), self.id)

    async def _services_of_sender(self) -> Services:
        sender = await sender_of(self._store, await self._store.turn(self.id))
        return await self._engine.services.seen_by(sender)

    async def trace(self) -> TurnTrace:
        """Return durations, waits, retries, and the reason why each call ran."""
        return await load_trace(self._store, await self._store.turn(self.id))

    def __repr__(self) -> str:
        return f"TurnHandle({self.id!r})"

    @property
    def question(self) -> str:
        """Return the ID of the first open request of a turn running here.

        Raise LookupError if none is open.
        """
        if not self.questions:
            raise LookupError(
                f"Turn {self.id} has no open approval request. Read `(await turn.snapshot()).questions`."
            )
        return self.questions[0].id

    @property
    def questions(self) -> tuple[Question, ...]:
        """Return the open requests of a turn running here that this handle has not answered."""
        live = self._here()
        found = live.log.snapshot().questions if live is not None else ()
        return tuple(question for question in found if question.id not in self._answered)

    async def asked(self) -> AsyncIterator[Question]:
        """Yield the requests to users one after another until the turn is over.

        This includes requests by calls of tasks, which work in separate conversations.
        """
        async for event in self.events():
            if (id := question_in(event)) is not None and (asked := await self._store.question(id)).open:
                yield asked

    # ── acting ────────────────────────────────────────────────────────────────────────────────────

    async def answer(self, question: str | Question, answer: Answer) -> Question:
        id = question.id if isinstance(question, Question) else question
        settled = await self._engine.commands.answer(id, answer)
        self._answered.add(id)
        return settled

    async def arguments_for_hunks(
        self, question: str | Question, hunks: Collection[int] | Mapping[int, str | None]
    ) -> Arguments:
        """Return arguments with which a call applies only part of the diff that its approval request shows.

        `hunks` are counted from 0. Each is applied as it is, or with another text as its new side. Pass the
        arguments to `allow_once`.
        """
        id = question.id if isinstance(question, Question) else question
        given: object = hunks
        if not isinstance(given, Collection) or not all(type(place) is int for place in given):
            raise BadRequest(sentence("answer.hunks", hunks=hunks))
        chosen = hunks if isinstance(hunks, Mapping) else dict.fromkeys(hunks)
        return await self._engine.commands.arguments_for_hunks(id, chosen)

    async def steer(self, said: str | Sequence[Part]) -> None:
        await self._engine.commands.steer(self.id, said)

    async def cancel(self, reason: str = "") -> bool:
        return await self._engine.commands.cancel(self.id, reason)

    async def resume(self) -> bool:
        """Resume here a turn that no process runs, even if this runtime adopts none by itself.

        Return False if it is over or runs elsewhere. TurnQuarantined names what the turn needs.
        """
        return await self._engine.driver.adopt(self.id, wanted=True)

    async def deliver(self, call: str, result: str | ToolResult, *, failed: bool = False) -> None:
        """Deliver the result of a call that this client ran."""
        whole = result if isinstance(result, ToolResult) else ToolResult(result)
        await self._engine.commands.deliver(call, whole, failed=failed)

    # ── the workspace ─────────────────────────────────────────────────────────────────────────────

    async def diff(self, call: str | None = None) -> WorkspaceDiff:
        """Return the changes of its calls to workspace files, or those of one call."""
        back = self._engine.undo
        return await (back.diff_turn(self.id) if call is None else back.diff_call(call))

    async def revert(
        self, *, files_only: bool = False, paths: Collection[str] = (), force: bool = False
    ) -> Reverted:
        """Undo the file changes of this turn and the turns after it, and move the conversation back before
        it.

        The messages stay on the tree, as a branch. `files_only` leaves the conversation where it is.
        `paths` undoes only these files, and leaves the conversation too. Raises RevertConflict and changes
        nothing if another process or user changed one of the files since, unless you pass `force`.
        """
        return await self._engine.undo.revert_turn(self.id, files_only=files_only, paths=paths, force=force)

    # ── location ──────────────────────────────────────────────────────────────────────────────────

    def _here(self) -> LiveTurn | None:
        if self._live is not None and self._live.given_up:
            self._live = None
        self._live = self._engine.bus.here(self.id) or self._live
        return self._live

    async def _attached(self) -> LiveTurn | None:
        """Return the turn running here, adopted if no process runs it.

        None if it is over or runs elsewhere.
        """
        while self._here() is None and await self._store.is_queued(self.id):
            await self._engine.bus.until_here(self.id, _GLANCE)
        if self._here() is None:
            await self._engine.driver.adopt(self.id)
        return self._here()

    async def _messages(self) -> list[Message]:
        row = await self._store.turn(self.id)
        messages, _ = await self._store.messages(row.conversation)
        return [message for message in messages if message.turn == self.id]
